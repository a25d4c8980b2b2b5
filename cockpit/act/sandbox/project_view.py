"""The project as a reading command may see it: without secrets, pipes, sockets and devices.

What the gateway refuses to read is covered by name, and a file that begins as a private key by its content.
A FIFO or a socket is covered because a process outside could be written to through it: a mount that is
read-only does not stop that. Of git there is nothing but for a command that prints names alone, because its
history has what was removed from the files. See ``docs/reference/security.md``, the reading sandbox.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.access.secret_files import is_sensitive

MOST_ENTRIES = 300_000
"""Files and folders that are looked at; a larger project is not known to be free of secrets."""
MOST_COVERED = 1_000
_LARGEST_KEY = 16_000
_KEY = b"PRIVATE KEY-----"
_DEPENDENCIES = frozenset({"node_modules", "site-packages", "__pycache__"})
"""Folders whose files are not opened: their names are looked at, too."""
_NAMING_VERBS = frozenset(
    "status ls-files rev-parse describe rev-list merge-base ls-tree count-objects check-ignore".split()  # noqa: SIM905
)
"""Verbs of git that print names and states, and no content of a file."""
_PRINTING = ("-v", "--verbose", "--patch", "-p", "--textconv", "--filters", "--format")


class TooLarge(Exception):
    """The project has more than can be looked at; the message says what."""


class Covers(Struct, frozen=True):
    """What is covered, as absolute paths."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


def names_only(argv: Sequence[str]) -> bool:
    """Whether a command is a plain ``git`` that prints names, with no option before its verb."""
    return (
        len(argv) > 1
        and argv[0] == "git"
        and argv[1] in _NAMING_VERBS
        and not any(word.startswith(_PRINTING) for word in argv[2:])
    )


def find_covers(root: Path, *, git: bool) -> Covers:
    """List what is covered of the project at ``root``. Raises :class:`TooLarge`. Blocks.

    With ``git`` repositories stay, for a command of which :func:`names_only` is true.
    """
    files: list[str] = []
    folders: list[str] = []
    waiting = [("", False)]
    left = MOST_ENTRIES
    while waiting:
        folder, installed = waiting.pop()
        for entry in _list(os.path.join(root, folder)):  # noqa: PTH118 - one for each folder
            left -= 1
            if left < 0:
                raise TooLarge(f"it has more than {MOST_ENTRIES:,} files and folders")
            name = posixpath.join(folder, entry.name)
            if entry.is_symlink():
                continue  # what it leads to is there, covered, or outside
            if entry.is_dir(follow_symlinks=False):
                if (entry.name == ".git" and not git) or _is_secret_folder(name):
                    folders.append(entry.path)
                elif entry.name != ".git":
                    waiting.append((name, installed or entry.name in _DEPENDENCIES))
            elif entry.name == ".git":
                files += [] if git else [entry.path]
            elif is_sensitive(name) or _is_special(entry, is_opened=not installed):
                files.append(entry.path)
        if len(files) + len(folders) > MOST_COVERED:
            raise TooLarge(f"it has more than {MOST_COVERED:,} files that would be hidden")
    return Covers(tuple(files), tuple(folders))


def _list(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return  # gone, or not the user's to read: then it is not the command's either


def _is_secret_folder(name: str) -> bool:
    # As the name of a file in it says; cockpit's own state is nobody's to read.
    return is_sensitive(f"{name}/x.py") or name.endswith(".cockpit/state")


def _is_special(entry: os.DirEntry[str], *, is_opened: bool) -> bool:
    """Whether a file is no ordinary one, or is a private key."""
    try:
        about = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(about.st_mode):
            return True
        if not is_opened or about.st_size > _LARGEST_KEY:
            return False
        opened = os.open(entry.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(opened, "rb") as file:
        return stat.S_ISREG(os.fstat(opened).st_mode) and _KEY in file.read(100)
