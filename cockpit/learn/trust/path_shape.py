"""The folder that stands for a file in a shape: narrow, and the same for each file directly in it."""

from __future__ import annotations

import posixpath
import re
import unicodedata

from cockpit.access.secret_files import is_sensitive

_NAME = re.compile(r"[^\x00-\x1f\x7f*?\[\]{}\\\"'`$|;&<>~!\s]+")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}")


def is_plain_text(text: str) -> bool:
    """Whether a text shows as it is: no control, invisible or compatibility characters."""
    return text.isprintable() and unicodedata.is_normalized("NFKC", text)


def is_plain_path(path: str) -> bool:
    """Whether a path from the project's root means itself, without ``..``, links in its text or signs."""
    return (
        bool(_NAME.fullmatch(path))
        and is_plain_text(path)
        and not path.startswith(("/", "-", "~"))
        and posixpath.normpath(path) == path
        and ".." not in path.split("/")
        and not any(part.casefold() == ".git" for part in path.split("/"))
        and not is_sensitive(path)
    )


def folder_pattern(path: str) -> str:
    """Return the files that stand for ``path``: those of its folder with its suffix, ``src/*.py``.

    Empty for a path that no rule may cover: of secrets, out of the project, hidden, or not plain. A name
    that begins like an option is not plain: a rule of a folder never passes it on.
    """
    if not is_plain_path(path) or any(part.startswith((".", "-")) for part in path.split("/")):
        return ""
    folder, name = posixpath.split(path)
    suffix = posixpath.splitext(name)[1]
    if not _SUFFIX.fullmatch(suffix):
        return path  # Makefile, Dockerfile: the one file
    return posixpath.join(folder, f"*{suffix}")
