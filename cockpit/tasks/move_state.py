"""Move a project's state: out of its checkout, or to the place that its repository has moved to.

The database goes last, so that a move that was interrupted is continued by the next one. Worktrees are
moved with it, and git is told where they are. Specified in ``docs/reference/configuration.md``.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from cockpit.access.run_program import run_git
from cockpit.core.errors import CockpitError
from cockpit.core.project.state_in_checkout import OldState
from cockpit.core.project_paths import PROJECT_FILE, ProjectPaths, read_project_record
from cockpit.core.state_folder import DATABASE, describe_problem
from cockpit.store.chains import worktrees
from cockpit.store.db.connection import connect
from cockpit.store.db.database import Store
from cockpit.store.db.migrate import check_file
from cockpit.store.journal.head_anchor import find_anchor_file

_SIDE_FILES = tuple(f"{DATABASE}{end}" for end in ("-wal", "-shm", "-journal"))


class StateRefused(CockpitError):
    """A state cannot be moved or adopted; the message says why, and nothing was changed."""

    code = "state_refused"


async def move_old_state(place: ProjectPaths, old: OldState) -> int:
    """Move the state in the checkout into the user's state folder; return the number of worktrees moved.

    Raises :class:`StateRefused` for one that is not this project's, is in use, or would replace another.
    """
    if old.foreign:
        raise StateRefused(f"{old.folder} is never opened: {old.foreign}.")
    _refuse_existing(place)
    _close_database(old.folder / DATABASE, old.folder / "worktrees")
    place.prepare()
    _move_entries(old.folder, place.state)
    moved = await _settle(place, str(old.folder))
    await asyncio.to_thread(_remove_empty, old.folder)
    return moved


async def adopt_state(place: ProjectPaths, state: Path) -> int:
    """Give ``place`` the state of a project that is gone; return the number of worktrees moved.

    Raises :class:`StateRefused` where that project still exists, or ``place`` has a state already.
    """
    record = read_project_record(state)
    if record is None:
        raise StateRefused(f"{state} does not say which project it belongs to.")
    if record.exists:
        raise StateRefused(
            f"{state} belongs to {record.home}, which still exists. Only the state of a project that is gone"
            " can be adopted."
        )
    _refuse_existing(place)
    _close_database(state / DATABASE, state / "worktrees")
    place.prepare()
    _move_anchor(state, place)
    _move_entries(state, place.state)
    moved = await _settle(place, str(state))
    await asyncio.to_thread(_remove_folder, state)
    return moved


def remove_state(state: Path) -> None:
    """Delete the state of a project that is gone, with its anchor.

    Raises :class:`StateRefused` where the project exists or a process uses the store, and ``OSError``.
    """
    record = read_project_record(state)
    if record is None or record.exists:
        home = record.home if record is not None else "a project that it does not name"
        raise StateRefused(f"{state} belongs to {home}; it was not deleted.")
    if problem := describe_problem(str(state)):
        raise StateRefused(problem)
    database = state / DATABASE
    if database.exists():
        with closing(sqlite3.connect(database, timeout=0.2)) as connection:
            try:
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise StateRefused(f"Another process uses {database}. End it first.") from error
            except sqlite3.DatabaseError:
                pass  # no database any more: nothing can use it
    if (anchor := find_anchor_file(database)) is not None:
        anchor.unlink(missing_ok=True)
    shutil.rmtree(state)


def _move_anchor(state: Path, place: ProjectPaths) -> None:
    """Take the anchor along: a moved store is compared with the end that it had."""
    before, after = find_anchor_file(state / DATABASE), find_anchor_file(place.database)
    if before is not None and after is not None and before.exists():
        before.replace(after)


def _remove_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()


def _remove_folder(state: Path) -> None:
    (state / PROJECT_FILE).unlink()
    _remove_empty(state)


def _refuse_existing(place: ProjectPaths) -> None:
    if place.database.exists():
        raise StateRefused(
            f"{place.home} already has a state in {place.state}; it would be replaced. Move that folder away"
            " first."
        )


def _close_database(database: Path, trees: Path) -> None:
    """Merge the log into the database, and refuse one that is in use or is another project's.

    Raises :class:`StateRefused`, and what opening a store raises: a schema that is not cockpit's is refused.
    """
    with closing(connect(database, busy_timeout_ms=200)) as connection:
        check_file(connection)
        names = "SELECT path FROM worktrees WHERE status<>'removed'"
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        for (path,) in connection.execute(names) if "worktrees" in tables else ():
            if Path(path).parent != trees:
                raise StateRefused(
                    f"{database} records the worktree {path[:200]}, which is not in {trees}: it is the state"
                    " of another repository, and came here with a copy."
                )
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as error:
            raise StateRefused(
                f"Another process uses {database}. End every cockpit of this project (`cockpit chain list`"
                " shows chains), then try again."
            ) from error


def _move_entries(source: Path, target: Path) -> None:
    """Move everything but links and what is not this user's, the database last."""
    names = sorted(os.listdir(source), key=lambda name: (name == DATABASE, name))  # noqa: PTH208
    for name in names:
        path = source / name
        info = path.lstat()
        if name in (PROJECT_FILE, *_SIDE_FILES) or info.st_uid != os.geteuid():
            continue
        if stat.S_ISLNK(info.st_mode):
            continue
        if name == ".gitignore":
            path.unlink()
            continue
        goal = target / name
        if os.path.lexists(goal):
            goal = target / f"{name}.moved"
        _move_entry(path, goal)


def _move_entry(path: Path, goal: Path) -> None:
    try:
        path.rename(goal)
        return
    except OSError:
        if path.stat().st_dev == goal.parent.stat().st_dev:
            raise
    # On another disk: complete under another name first.
    partial = goal.with_name(f".{goal.name}.moving")
    if partial.is_dir():
        shutil.rmtree(partial)
    if path.is_dir():
        shutil.copytree(path, partial, symlinks=True)
    else:
        shutil.copy2(path, partial, follow_symlinks=False)
    partial.rename(goal)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


async def _settle(place: ProjectPaths, before: str) -> int:
    """Tell git and the store where the worktrees are now; return their number."""
    trees = place.state / "worktrees"
    for folder in (place.state, trees):
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.is_file() and not path.is_symlink():
                path.chmod(0o600)
    paths = [path for path in trees.iterdir() if path.is_dir()] if trees.is_dir() else []
    if paths and place.git:
        for path in paths:
            _point_to_repository(path, place)
        await run_git("worktree", "repair", *map(str, paths), cwd=place.home)
    with Store.open(place.database) as store:
        return await store.write(
            lambda tx: worktrees.move_all(tx, str(trees), before=before, after=str(place.state))
        )


def _point_to_repository(tree: Path, place: ProjectPaths) -> None:
    """Let a worktree's ``.git`` file name the repository where it is now."""
    dot = tree / ".git"
    own = place.identity / "worktrees" / tree.name
    if dot.is_file() and not dot.is_symlink() and own.is_dir():
        dot.write_text(f"gitdir: {own}\n", encoding="utf-8", errors="surrogateescape")
