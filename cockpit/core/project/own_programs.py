"""The programs that cockpit itself starts (git, gh, rg, bwrap, …), found where no project can put them.

A sandboxed command can write ``.venv/bin/git``, and a repository can ship ``node_modules/.bin/git``; where
such a folder is on PATH, the program would run outside the sandbox, unasked. So entries of PATH that are
relative, in a project, in one of its worktrees or in the state folder do not count here, and neither does a
link that leads there. Commands of agents find their programs in the sandbox, on the whole PATH. Specified
in ``docs/reference/security.md``.
"""

from __future__ import annotations

import os
from functools import lru_cache

from cockpit.core.find_checkout import Checkout, find_checkout
from cockpit.core.state_folder import state_root


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the absolute path of a program that cockpit starts; None where no safe folder has it.

    ``path`` is a PATH (None: this process's). An absolute ``name`` is one that the user wrote: it counts as
    it is, where it can be executed.
    """
    if os.path.isabs(name):  # noqa: PTH117
        return name if _is_executable(name) else None
    searched = os.environ.get("PATH", os.defpath) if path is None else path
    return _find(name, searched, _working_folder())


def safe_path() -> str:
    """Return PATH without the entries that do not count, for what such a program starts in its turn."""
    return os.pathsep.join(_safe_entries(os.environ.get("PATH", os.defpath), _working_folder()))


@lru_cache(maxsize=128)
def _find(name: str, path: str, folder: str) -> str | None:
    for entry in _safe_entries(path, folder):
        program = os.path.join(entry, name)  # noqa: PTH118 - the hook's path imports this
        if not _is_executable(program):
            continue
        if not _is_in_project(os.path.dirname(os.path.realpath(program)), folder):  # noqa: PTH120
            return program
    return None


def _is_executable(program: str) -> bool:
    return os.path.isfile(program) and os.access(program, os.X_OK)  # noqa: PTH113


@lru_cache(maxsize=16)
def _safe_entries(path: str, folder: str) -> tuple[str, ...]:
    return tuple(
        entry
        for entry in path.split(os.pathsep)
        if os.path.isabs(entry)  # noqa: PTH117
        and not _is_in_project(os.path.realpath(entry), folder)
    )


def _is_in_project(place: str, folder: str) -> bool:
    """Whether a real path is in the state folder, in the project around ``folder``, or in a known one."""
    if f"{place}/".startswith(f"{state_root()}/"):
        return True
    around = find_checkout(place)
    if around is None:
        return False
    here = find_checkout(folder)
    return (here is not None and here.identity == around.identity) or _is_known(around)


def _is_known(checkout: Checkout) -> bool:
    return os.path.isdir(checkout.state)  # noqa: PTH112


def _working_folder() -> str:
    try:
        return os.path.realpath(os.getcwd())  # noqa: PTH109
    except OSError:
        return "/"  # it was removed
