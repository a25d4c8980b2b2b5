"""An agent's own sessions, copied out of its home in the sandbox and back.

The agent made that home: a link in it could lead anywhere in the user's files, and what is copied is shown
to the next run. So no link is followed, at any depth, also while the agent runs. See
``docs/reference/agents.md``, sandbox.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

_MOST_FILES = 20_000
_DEEPEST = 32
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def copy_sessions(names: Sequence[str], source: Path, target: Path, most: int) -> None:
    """Copy the files and folders ``names`` of the folder ``source`` into ``target``, in place of those there.

    Only ordinary files are copied, ``most`` bytes at most; a folder that has more is left out.
    """
    left = most
    for name in names:
        place = target / name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        try:
            left -= _copy(source, Path(name), place, left)
        except OSError:
            # A part is missing, a link, or gone by now: nothing of it is taken.
            shutil.rmtree(place, ignore_errors=True)


def _copy(source: Path, name: Path, place: Path, most: int) -> int:
    """Copy one file or folder; returns the bytes. Raises ``OSError`` for a link on the way."""
    folder = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in name.parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        entry = os.stat(name.name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(entry.st_mode):
            place.parent.mkdir(parents=True, exist_ok=True)
            return _copy_file(folder, name.name, place, most)
        if not stat.S_ISDIR(entry.st_mode):
            return 0
        copied = _copy_folder(folder, name.name, place, most)
        if copied > most:
            shutil.rmtree(place, ignore_errors=True)
            return 0
        return copied
    finally:
        os.close(folder)


def _copy_folder(above: int, name: str, place: Path, most: int) -> int:
    """Copy a folder; returns its bytes, more than ``most`` as soon as it has more."""
    copied = count = 0
    for where, folders, files, folder in os.fwalk(name, dir_fd=above, follow_symlinks=False):
        inside = Path(where).relative_to(name)
        if len(inside.parts) >= _DEEPEST:
            folders.clear()
        (place / inside).mkdir(parents=True, exist_ok=True)
        for each in files:
            count += 1
            entry = os.stat(each, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(entry.st_mode):
                continue
            if count > _MOST_FILES or copied + entry.st_size > most:
                return most + 1
            copied += _copy_file(folder, each, place / inside / each, most - copied)
    return copied


def _copy_file(folder: int, name: str, place: Path, most: int) -> int:
    """Copy an ordinary file of at most ``most`` bytes; returns the bytes."""
    with open(os.open(name, _FILE, dir_fd=folder), "rb") as file:
        entry = os.fstat(file.fileno())
        if not stat.S_ISREG(entry.st_mode) or entry.st_size > most:
            return 0
        data = file.read(entry.st_size)
    with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as copy:
        copy.write(data)
    return len(data)
