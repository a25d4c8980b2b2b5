"""Folders of Python's bytecode in the project: what is in one need not be of the file next to it.

A command that runs the project's code must run what was shown, so the sandbox covers them. Bytecode of the
system and of toolchains stays: to compile the standard library anew takes half a second for each command.
See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import os
from pathlib import Path

MOST_ENTRIES = 10_000
"""Files and folders that are looked at: a command must not wait for longer than a few milliseconds."""
MOST_COVERED = 200
_FOLDER = "__pycache__"
_APART = frozenset({".git", "node_modules", "site-packages", "dist-packages"})
"""Not installed packages: who can change their bytecode can change their sources, which nothing shows."""


def find_bytecode(root: Path) -> tuple[str, ...] | None:
    """Return the folders of bytecode in the project at ``root``; None where they cannot all be covered.

    That is a project that is too large, has too many of them, a link or a file in place of one, or a folder
    that cannot be read.
    """
    caches: list[str] = []
    waiting = [str(root)]
    left = MOST_ENTRIES
    try:
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0 or len(caches) > MOST_COVERED:
                        return None
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if entry.name == _FOLDER:
                        if not is_folder:
                            return None
                        caches.append(entry.path)
                    elif is_folder and entry.name not in _APART:
                        waiting.append(entry.path)
    except OSError:
        return None
    return tuple(caches)
