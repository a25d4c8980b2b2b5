"""The repository of a project, as places: what is read-only in the sandbox, and what must stay in place.

Settings are shown without addresses with passwords, headers and helpers of credentials. The checkouts of
submodules get their own protection: the user's git enters them by itself, and reads settings there.
See ``docs/reference/security.md``.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cockpit.core.secrets import mask

_MOST = 1_000_000
_GITDIR = re.compile(r"gitdir: (.+)")
_SECTION = re.compile(r"\s*\[\s*([A-Za-z0-9.-]+)")
_PRIVATE_SECTIONS = (
    "credential",
    "http",
    "https",
    "include",
    "includeif",
    "url",
    "sendemail",
    "gpg",
)
_USER_INFO = re.compile(r"(?<=://)[^/\s@\"']*+@")
_GITLINK_MODE = b"\x00\x00\xe0\x00"
"""How the index writes the mode of a submodule."""


class GitPlaces(Struct, frozen=True):
    """One repository."""

    private: Path
    """The git directory of this checkout."""
    common: Path
    """The one that all checkouts share."""
    directories: tuple[Path, ...]
    """Both, outermost first."""
    frozen: tuple[Path, ...]
    """What must not change beside them."""
    fixed: tuple[Path, ...]
    """Folders on the way to submodules: none may be moved away. Outermost first."""
    settings: tuple[tuple[Path, bytes], ...]
    """Files of settings, with the text to show."""


def find_git_places(root: Path) -> GitPlaces | None:
    """Return the repository whose checkout ``root`` is; None where there is none that git would take."""
    dot = root / ".git"
    try:
        mode = dot.lstat().st_mode
    except OSError:
        return None
    if stat.S_ISLNK(mode):
        return None
    frozen = []
    if stat.S_ISREG(mode):
        linked = _linked(dot)
        if linked is None:
            return None
        private, common = linked
        frozen.append(dot)
    else:
        private = common = dot
    if not (common / "objects").is_dir() or not (private / "HEAD").is_file():
        return None
    directories = [common] if private.is_relative_to(common) else [common, private]
    fixed: list[Path] = []
    for module in submodules(root, private):
        inner = root / module
        fixed += [root / parent for parent in (*reversed(Path(module).parents[:-1]), Path(module))]
        # One without a repository is an empty folder, in which a repository could be laid.
        frozen.append(inner / ".git" if (inner / ".git").exists() else inner)
    return GitPlaces(
        private,
        common,
        tuple(directories),
        tuple(frozen),
        tuple(dict.fromkeys(place for place in fixed if place.is_dir())),
        tuple(_settings(private, common)),
    )


def _linked(dot: Path) -> tuple[Path, Path] | None:
    """Return the private and the common git directory that a ``.git`` file leads to.

    A file that leads to what is not a git directory would show a folder that is none of the project's.
    """
    match = _GITDIR.match(dot.read_text("utf-8", "surrogateescape")[:5000])
    private = Path(os.path.realpath(dot.parent / match[1].strip())) if match else None
    if private is None or not (private / "HEAD").is_file():
        return None
    listed = private / "commondir"
    if not listed.is_file():
        return private, private
    text = listed.read_text("utf-8", "surrogateescape")[:5000].strip()
    common = Path(os.path.realpath(private / text))
    return (private, common) if private.parent.parent == common else None


def submodules(root: Path, private: Path) -> list[str]:
    """List the paths of the checkout's submodules, by its index."""
    try:
        data = (private / "index").read_bytes()
    except OSError:
        return []
    if _GITLINK_MODE not in data:
        return []
    return sorted(
        path for path, mode in read_index(data) if mode == 0o160000 and _inside(root, path)
    )


def read_index(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield path and mode of each entry of an index (versions 2 to 4); nothing for any other."""
    if data[:4] != b"DIRC" or len(data) < 12:
        return
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    # Object names have 20 or 32 bytes; the file ends with one more of them, which tells nothing.
    # cockpit reads repositories of either kind: the first that walks to the last entry is right.
    for size in (20, 32):
        entries = list(_entries(data, version, count, size))
        if len(entries) == count:
            yield from entries
            return


def _entries(data: bytes, version: int, count: int, size: int) -> Iterator[tuple[str, int]]:
    at, name = 12, b""
    for _ in range(count):
        start = at
        at += 40 + size
        if at + 2 > len(data) or version not in (2, 3, 4):
            return
        mode = int.from_bytes(data[start + 24 : start + 28], "big")
        flags = int.from_bytes(data[at : at + 2], "big")
        at += 4 if flags & 0x4000 else 2
        if version == 4:
            cut, at = _offset(data, at)
            end = data.find(b"\0", at)
            name = name[: len(name) - cut] + data[at:end]
            at = end + 1
        else:
            end = data.find(b"\0", at)
            name = data[at:end]
            at = start + ((end - start) // 8 + 1) * 8
        if end < 0 or (flags & 0xFFF) not in (len(name), 0xFFF):
            return
        yield os.fsdecode(name), mode


def _offset(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def _inside(root: Path, path: str) -> bool:
    parts = Path(path).parts
    place = root
    for part in parts:
        place /= part
        if place.is_symlink():
            return False
    return ".." not in parts and place.is_dir()


def _settings(private: Path, common: Path) -> Iterator[tuple[Path, bytes]]:
    for place in dict.fromkeys(
        (common / "config", private / "config", private / "config.worktree")
    ):
        try:
            info = place.lstat()
        except OSError:
            continue
        if stat.S_ISREG(info.st_mode) and info.st_size <= _MOST:
            text = place.read_text("utf-8", "surrogateescape")
            shown = clean_settings(text)
            if shown != text:
                yield place, shown.encode("utf-8", "surrogateescape")


def clean_settings(text: str) -> str:
    """Return git's settings without sections that hold credentials and without passwords in addresses."""
    lines, private = [], False
    for line in text.splitlines(keepends=True):
        section = _SECTION.match(line)
        if section is not None:
            name = section[1].partition(".")[0].lower()
            private = name in _PRIVATE_SECTIONS
        if not private:
            lines.append(_USER_INFO.sub("", line))
    return mask("".join(lines))
