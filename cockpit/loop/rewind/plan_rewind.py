"""What going back to a wave would do: the files that get their earlier content, and what stays as it is.

See ``docs/reference/loop.md``, rewind.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.access.confined_paths import Confined
from cockpit.access.run_program import run_git
from cockpit.act.text_edits import bytes_digest, digest_now, to_crlf
from cockpit.core.errors import CockpitError, IllegalTransition
from cockpit.loop.intake.fork_session import list_waves_to_fork
from cockpit.store.db.database import Store
from cockpit.store.sessions import outbox, proposals, sessions, waves
from cockpit.store.sessions.outbox import OutboxAction

_WRITES = ("write_file", "edit_file", "create_skill")
_HAPPENED = ("confirmed", "uncertain")
_MOST_BYTES = 5_000_000


class FileBack(Struct, frozen=True):
    """A file that gets the content that it had."""

    path: str
    now: str | None
    """The digest of its content now; None where it was removed since."""
    content: bytes | None
    """The content that it gets; None where it did not exist: it is removed."""


class RewindPlan(Struct, frozen=True):
    """Everything that going back does, and what it cannot undo."""

    session_id: str
    wave: int
    root: Path
    files: tuple[FileBack, ...]
    stays: tuple[str, ...]
    """What was done since and stays, each with its reason, as sentences."""


class _Done(Struct, frozen=True):
    action: OutboxAction
    before: Mapping[str, str]
    """The text of each file before, as it was shown."""


async def plan_rewind(store: Store, session_id: str, wave: int) -> RewindPlan:
    """List what going back to the state after ``wave`` would do. Changes nothing.

    A file can be undone where its content is still what the session wrote, and its earlier content is known:
    from the proposal that showed it, or from git, and its digest is that of the time. Raises
    :class:`IllegalTransition` for a session that runs, and for a wave after which it cannot be forked.
    """
    root, done = await store.read(lambda connection: _read(connection, session_id, wave))
    confined = Confined(root)
    by_path: dict[str, list[_Done]] = {}
    stays: list[str] = []
    for each in done:
        action = each.action
        if action.action_type in _WRITES and action.phase == "confirmed":
            by_path.setdefault(str(action.payload["path"]), []).append(each)
        elif action.phase == "confirmed":
            stays.append(f"{action.title}: what a {_name(action)} did is not undone.")
        else:
            stays.append(f"{action.title}: it is not known whether it happened.")
    files: list[FileBack] = []
    for path, writes in by_path.items():
        content = await _find_content(confined, path, writes)
        if isinstance(content, str):
            stays.append(f"{path}: {content}")
        elif content is not None:
            files.append(content)
    return RewindPlan(session_id, wave, root, tuple(files), tuple(stays))


def _read(connection: sqlite3.Connection, session_id: str, wave: int) -> tuple[Path, list[_Done]]:
    session = sessions.load(connection, session_id)
    if session.status == "running":
        raise IllegalTransition(f"Session {session_id} runs. Interrupt it first, then go back.")
    if wave not in list_waves_to_fork(connection, session_id):
        raise IllegalTransition(
            f"Session {session_id} cannot go back to wave {wave}: only the waves of a session of the built-in"
            " agent that have ended can be gone back to."
        )
    rows = waves.select_for_session(connection, session_id)
    later = {row.wave_id for row in rows if row.ordinal > wave}
    done = []
    for action in outbox.select_for_session(connection, session_id):
        if action.wave_id in later and action.phase in _HAPPENED:
            proposal = proposals.find(connection, action.proposal_id or "")
            diffs = proposal.body.get("diffs", ()) if proposal is not None else ()
            done.append(_Done(action, {d["path"]: d.get("before") or "" for d in diffs}))
    return Path(session.root), done


def _name(action: OutboxAction) -> str:
    return {"run": "command", "git_commit": "commit", "push": "push", "gh": "write to GitHub"}.get(
        action.action_type, action.action_type.replace("_", " ")
    )


async def _find_content(
    confined: Confined, path: str, writes: Sequence[_Done]
) -> FileBack | str | None:
    """Return the file with its earlier content, None where it has that already, or why it stays."""
    wanted = writes[0].action.payload.get("before_sha256")
    written = writes[-1].action.payload.get("after_sha256")
    now = await asyncio.to_thread(digest_now, confined, path)
    if now == wanted:
        return None
    if now != written:
        return "it changed since the session wrote it, and stays as it is."
    if wanted is None:
        return FileBack(path, now, None)
    for data in _list_candidates(path, writes):
        if bytes_digest(data) == wanted:
            return FileBack(path, now, data)
    for data in await _read_from_git(confined.root, path):
        if bytes_digest(data) == wanted:
            return FileBack(path, now, data)
    return "its earlier content was not kept (it may hold a secret) and is not in git."


def _list_candidates(path: str, writes: Sequence[_Done]) -> Iterator[bytes]:
    text = writes[0].before.get(path)
    if text is not None:
        yield text.encode()
        yield to_crlf(text).encode()


async def _read_from_git(root: Path, path: str) -> list[bytes]:
    try:
        done = await run_git("show", f"HEAD:./{path}", cwd=root, max_bytes=_MOST_BYTES)
    except CockpitError:
        return []
    return [done.stdout] if done.code == 0 and not done.truncated else []
