"""What git has said of a checkout, remembered while its repository is as it was.

Each command asks git for the top of its checkout; hundreds of tests run several commands in one project. The
answer is that of git until the repository's folder, its head or its settings change, or the environment does.
"""

from __future__ import annotations

import os
from pathlib import Path

from cockpit.core import project_paths

_VARIABLES = ("PATH", "HOME", "XDG_CONFIG_HOME")
_FILES = ("", "HEAD", "config", "objects", "refs")
_answers: dict[tuple[object, ...], str] = {}
_ask = project_paths._git


def install() -> None:
    """Remember in this process, and in those that it forks, what git says of checkouts."""
    project_paths._git = _ask_once


def _ask_once(cwd: Path, *options: str) -> str | None:
    key = _describe(cwd, options)
    if key is None:
        return _ask(cwd, *options)
    answer = _answers.get(key)
    if answer is None:
        answer = _ask(cwd, *options)
        # Git itself may have written meanwhile; what it refuses or does not find is asked for each time.
        if answer is not None and key == _describe(cwd, options):
            _answers[key] = answer
    return answer


def _describe(cwd: Path, options: tuple[str, ...]) -> tuple[object, ...] | None:
    """Return all that the answer depends on; None where ``cwd`` is not the top of a plain checkout."""
    try:
        states = [os.lstat(f"{cwd}/.git/{name}") for name in _FILES]
    except OSError:
        return None
    environment = [
        (name, value)
        for name, value in os.environ.items()
        if name in _VARIABLES or name.startswith("GIT_")
    ]
    return (
        str(cwd),
        options,
        tuple(
            (each.st_ino, each.st_mode, each.st_size, each.st_ctime_ns, each.st_uid)
            for each in states
        ),
        tuple(sorted(environment)),
    )
