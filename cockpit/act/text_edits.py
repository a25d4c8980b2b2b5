"""Text files as they are now, and exact replacements in them.

Line ends stay as they are: in a file whose lines all end in CRLF, text from a model (which writes LF)
is converted to CRLF before it is searched or inserted. A missing final newline stays missing.
See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import hashlib
import re

from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.core.errors import CockpitError

MAX_BYTES = 2 * 1024 * 1024
"""The largest file that is written or edited."""

WITHHELD = (
    "cockpit neither stores nor shows secrets, so it cannot be approved. Refer to it by the name of "
    "an environment variable, or ask the user to set it. If it is not a secret, write it as plain "
    "words, like 'not-a-secret'."
)
"""What a model is told whose call holds something that looks like a secret."""

_LONE_LF = re.compile(r"(?<!\r)\n")


class ActionRefused(CockpitError):
    """The action cannot be done as requested. The message is written for the model."""

    code = "action_refused"


class TextDiffers(ActionRefused):
    """The text to replace is not in the file as it is now, or not once: it has to be looked at again."""


class TextNow(Struct, frozen=True):
    """A file's text at one moment; ``sha256`` is over its bytes."""

    text: str
    sha256: str

    @property
    def crlf(self) -> bool:
        """Whether every line ends in CRLF, and there is at least one."""
        return "\r\n" in self.text and not _LONE_LF.search(self.text)


def bytes_digest(data: bytes) -> str:
    """Return the sha256 (hex) of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def as_now(text: str) -> TextNow:
    """Return a text as it will be in a file."""
    return TextNow(text, bytes_digest(text.encode()))


def read_now(confined: Confined, path: str) -> TextNow | None:
    """Return the text of the file ``path``, or None where there is no file.

    Raises :class:`ActionRefused` for files that are not UTF-8 text or too large, ``PathRefused`` for paths
    that may not be written.
    """
    if not confined.inside(path, write=True).exists():
        return None
    with confined.open_read(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ActionRefused(f"{path} is larger than {MAX_BYTES} bytes; it is not edited from here.")
    if b"\0" in data:
        raise ActionRefused(f"{path} is a binary file; only text files are written.")
    try:
        return TextNow(data.decode("utf-8"), bytes_digest(data))
    except UnicodeDecodeError as error:
        raise ActionRefused(
            f"{path} is not UTF-8 text (byte {error.start}); only UTF-8 text files are written."
        ) from error


def digest_now(confined: Confined, path: str) -> str | None:
    """Return the sha256 of the file's bytes; None where there is no file."""
    try:
        if not confined.inside(path, write=True).exists():
            return None
        with confined.open_read(path) as file:
            digest = hashlib.sha256()
            while chunk := file.read(1 << 20):
                digest.update(chunk)
            return digest.hexdigest()
    except PathRefused:
        # What became a link, a directory or a device since is certainly not what was shown.
        return "refused"


def digest_read(confined: Confined, path: str) -> str | None:
    """Return the sha256 of what a reader of ``path`` gets, through links; None where it gets nothing."""
    try:
        with confined.open_read(path) as file:
            digest = hashlib.sha256()
            while chunk := file.read(1 << 20):
                digest.update(chunk)
            return digest.hexdigest()
    except (PathRefused, OSError):
        return None


def to_crlf(text: str) -> str:
    """Return ``text`` with every line end as CRLF."""
    return _LONE_LF.sub("\r\n", text)


def find_offsets(text: str, old: str) -> list[int]:
    """List every offset at which ``old`` occurs in ``text``, overlapping ones too."""
    offsets, at = [], text.find(old)
    while at >= 0:
        offsets.append(at)
        at = text.find(old, at + 1)
    return offsets


def fit_edit(now: TextNow, path: str, old: str, new: str, *, replace_all: bool) -> tuple[str, str]:
    """Return ``old`` and ``new`` with the file's own line ends, checked to be applicable.

    Raises :class:`TextDiffers` unless ``old`` occurs exactly once (at least once with ``replace_all``).
    """
    if now.crlf or (old not in now.text and to_crlf(old) in now.text):
        old, new = to_crlf(old), to_crlf(new)
    offsets = find_offsets(now.text, old)
    if not offsets:
        raise TextDiffers(f"{path}: 'old' does not occur in the file.{_near(now.text, old)}")
    if len(offsets) > 1 and not replace_all:
        lines = ", ".join(str(now.text.count("\n", 0, at) + 1) for at in offsets[:8])
        raise TextDiffers(
            f"{path}: 'old' occurs in the file {len(offsets)} times (lines {lines}"
            f"{', …' if len(offsets) > 8 else ''}). Give more of the text around the one that you "
            "mean, or set replace_all."
        )
    if old == new:
        raise ActionRefused(f"{path}: 'old' and 'new' are the same; nothing would change.")
    return old, new


def replace_text(text: str, old: str, new: str, *, replace_all: bool) -> str:
    """Return the text after the edit; ``old`` occurs in it (see :func:`fit_edit`)."""
    return text.replace(old, new) if replace_all else text.replace(old, new, 1)


def _near(text: str, old: str) -> str:
    """Say where a text like ``old`` is, so that the next attempt can succeed."""
    first_line = next((line.strip() for line in old.splitlines() if line.strip()), "")
    if not first_line:
        return ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() == first_line:
            return (
                f" Its first line is at line {number}, but what follows or its indentation "
                "differs. Ask for the file again and copy the text exactly."
            )
    return " The file may have changed since you saw it: ask for it again."
