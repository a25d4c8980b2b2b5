"""Notice that an agent without a sandbox wrote into a checkout of the user's, where its work does not belong.

The checkouts are compared before and after: their commits and all files that git does not ignore. Who changed
them is not known, since the user works there too. See ``docs/reference/agents.md``, sandbox.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from cockpit.access.git_folders import list_checkouts, locate_git_folders, name_checkout
from cockpit.access.run_program import ProgramMissing, run_git
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import OWN_FOLDER, ProjectPaths

_MOST_CHECKOUTS = 10
_MOST_NAMES = 5

Note = Callable[[str], Awaitable[None]]


class _State(Struct, frozen=True):
    """What a checkout contains."""

    head: str
    files: Mapping[str, tuple[object, ...]]
    """By path: git's letters for a file that its commit does not have as it is, with its size and times."""


@asynccontextmanager
async def watch_checkouts(
    place: ProjectPaths, worktree: Path, agent: str, note: Note
) -> AsyncIterator[None]:
    """Tell ``note`` which of the user's files changed within the context; ``agent`` works in ``worktree``.

    An agent that works in a checkout of the user's may change that one.
    """
    tops = await asyncio.to_thread(_list_tops, place, worktree)
    before = [await _read(top) for top in tops]
    try:
        yield
    finally:
        for top, state in zip(tops, before, strict=True):
            if changed := _compare(state, await asyncio.shield(_read(top))):
                await asyncio.shield(
                    note(
                        f"While {agent} worked in {worktree} without a sandbox, your checkout {top} changed:"
                        f" {changed}. If that was not you, look at it with `git -C {top} status`."
                    )
                )


def _list_tops(place: ProjectPaths, worktree: Path) -> list[Path]:
    """List the checkouts of the project that are the user's own, without the one that the agent works in."""
    folders = locate_git_folders(place.home)
    if folders is None:
        return []
    try:
        tops = [name_checkout(each) or place.home for each in list_checkouts(folders)]
    except OSError:
        tops = [place.home]
    state, inside = place.state.resolve(), worktree.resolve()
    apart = [top for top in tops if not top.resolve().is_relative_to(state) and top.is_dir()]
    return [top for top in apart if not inside.is_relative_to(top.resolve())][:_MOST_CHECKOUTS]


async def _read(top: Path) -> _State | None:
    """Read a checkout; None where git cannot."""
    try:
        head = await run_git("rev-parse", "--verify", "--quiet", "HEAD", cwd=top)
        status = await run_git(
            "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", cwd=top
        )
    except (ProgramMissing, CockpitError):
        return None
    if not status.ok:
        return None
    entries = os.fsdecode(status.stdout).split("\0")
    return await asyncio.to_thread(_look_at, top, head.text.strip(), entries)


def _look_at(top: Path, head: str, entries: list[str]) -> _State:
    files: dict[str, tuple[object, ...]] = {}
    for entry in filter(None, entries):
        letters, path = entry[:2], entry[3:]
        if path.startswith(f"{OWN_FOLDER}/"):
            continue  # cockpit's own reports
        try:
            info = os.lstat(top / path)
        except OSError:
            files[path] = (letters,)
        else:
            files[path] = (letters, info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns)
    return _State(head, files)


def _compare(before: _State | None, after: _State | None) -> str:
    """Say what differs; '' for nothing, and where it is not known."""
    if before is None or after is None:
        return ""
    paths = sorted(
        path
        for path in {*before.files, *after.files}
        if before.files.get(path) != after.files.get(path)
    )
    more = f" and {len(paths) - _MOST_NAMES:,} more files" if len(paths) > _MOST_NAMES else ""
    names = ", ".join(paths[:_MOST_NAMES]) + more
    moved = f"its commit is {after.head[:10]}" if before.head != after.head else ""
    return "; ".join(filter(None, (moved, names)))
