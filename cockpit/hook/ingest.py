"""Turn stored hook events into work in progress and journal rows.

All pending events are taken in one transaction, in the order in which they happened: the events of one
second are one patch of their task, not twenty. See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import UNSET

from cockpit.access.git_folders import find_commit, locate_git_folders
from cockpit.agents.terminals.follow_events import follow_event
from cockpit.agents.terminals.terminal_sessions import TerminalAgent
from cockpit.core.canonical_json import canonical_json
from cockpit.core.clock import parse_time
from cockpit.core.state_folder import DATABASE
from cockpit.core.text import pluralize
from cockpit.hook import hook_log, spool, start_chain
from cockpit.hook.event_payload import READS
from cockpit.hook.task_attribution import read_task_change
from cockpit.learn.capture_wip import ToolUse, capture_tool_use, list_solved
from cockpit.loop.permissions.tool_names import SHELLS
from cockpit.store.backlog import wip
from cockpit.store.db.connection import is_fatal
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.hooks import pending_events
from cockpit.store.hooks.pending_events import HookEvent
from cockpit.store.journal.details.agents import AgentHook
from cockpit.store.sessions import sessions
from cockpit.store.sessions.seen_files import has_seen

AT_ONCE = 200
"""Events of one transaction."""
_LARGEST_SCRIPT = 200_000
_LARGEST_PATCH = 50_000
_FRESH = timedelta(seconds=20)
_SHORT = 10
"""Letters of a commit's id, enough for a repository with millions of objects."""


def serve(state: str, pause: Callable[[], None]) -> None:
    """Ingest until no event is left for the project with this state folder; ``pause`` between rounds.

    Renews the lease meanwhile and releases it at the end.
    """
    folder = Path(state)
    with Store.open(folder / DATABASE) as store:
        while True:
            store.write_now(lambda tx: pending_events.renew_lease(tx.connection, _now_ms(tx)))
            ingest_all(store, folder)
            if store.write_now(lambda tx: pending_events.release_lease(tx.connection)):
                return
            pause()


def ingest_now(state: str, busy_ms: int) -> None:
    """Ingest the waiting events of the project with the state folder ``state``.

    Waits up to ``busy_ms`` milliseconds for another process that has locked the store. Raises the errors of
    the store.
    """
    folder = Path(state)
    with Store.open(folder / DATABASE, busy_timeout_ms=busy_ms) as store:
        ingest_all(store, folder)


def ingest_all(store: Store, state: Path) -> int:
    """Ingest all waiting events, from the store and from the spool; returns their number.

    An event that fails is noted in the log and tried again; after a few failures it stays where it is. The
    last session that ended may be followed by a chain.
    """
    done = 0
    while True:
        paths = spool.list_files(str(state))[:AT_ONCE]
        count, trouble, over = store.write_now(partial(_absorb, paths=paths))
        # Only now are the events in the store permanently.
        spool.delete_files(paths)
        for words in trouble:
            hook_log.append_line(str(state), words)
        for seq, root in over[-1:]:
            start_chain.start_following_chain(state, seq, root)
        done += count
        if not count and not trouble and not paths:
            return done


def _now_ms(tx: Tx) -> int:
    return int(tx.clock.now().timestamp() * 1000)


def _absorb(tx: Tx, *, paths: list[str]) -> tuple[int, list[str], list[tuple[int, str]]]:
    """Ingest the events of one transaction.

    Returns their number, the failures, and for each session that ended its journal row and its folder.
    """
    trouble: list[str] = []
    events = list(spool.read_events(paths))
    if len(events) < len(paths):
        trouble.append(f"Unreadable in hook-spool: {pluralize(len(paths) - len(events), 'file')}")
    for event in events:
        pending_events.insert(tx.connection, event, None)
    work = _Work(tx)
    for event in pending_events.select_oldest(tx.connection, AT_ONCE):
        work.take(event)
    work.write()
    pending_events.delete_events(tx.connection, work.done)
    return len(work.done), trouble + work.trouble, work.over


class _Work:
    """The events of one transaction; successive events of a task are one patch of it."""

    def __init__(self, tx: Tx) -> None:
        self.done: list[str] = []
        self.trouble: list[str] = []
        self.over: list[tuple[int, str]] = []
        self._tx = tx
        self._task = ""
        self._patch: dict[str, Any] = {}
        self._behind: list[HookEvent] = []

    def take(self, event: HookEvent) -> None:
        """Journal the event and add its patch to that of its task."""
        try:
            patch = self._tx.attempt(partial(_journal_event, self._tx, event, self.over))
        except Exception as error:
            self._failed(event, error)
            return
        if not patch:
            self.done.append(event.key)
            return
        large = len(canonical_json(self._patch)) > _LARGEST_PATCH
        if large or (self._behind and event.task_id != self._task):
            self.write()
        self._task = event.task_id or ""
        self._patch = wip.merge(self._patch, patch)
        self._behind.append(event)

    def write(self) -> None:
        """Merge the collected patch into the task's work in progress."""
        behind, self._behind = self._behind, []
        patch, self._patch = self._patch, {}
        if not behind:
            return
        try:
            self._tx.attempt(lambda: wip.update(self._tx, self._task, patch, by="agent"))
        except Exception as error:
            for event in behind:
                self._failed(event, error)
        else:
            self.done += [event.key for event in behind]

    def _failed(self, event: HookEvent, error: Exception) -> None:
        if self._hopeless(error):
            raise error
        pending_events.count_failure(self._tx.connection, event.key)
        self.trouble.append(f"{event.agent} {event.event}: not ingested: {error!r}")

    def _hopeless(self, error: Exception) -> bool:
        """Whether the disk or the lock caused the error, not the event."""
        return is_fatal(error) or not self._tx.connection.in_transaction


def _journal_event(tx: Tx, event: HookEvent, over: list[tuple[int, str]]) -> dict[str, Any]:
    """Journal one event; returns the patch of its task, empty without a task or a change.

    A session that ended is added to ``over``.
    """
    body = json.loads(event.body)
    if event.task_id is None:
        works_on, leaves = read_task_change(event.event, body)
        if works_on is not None:
            pending_events.set_active_task(tx.connection, event.session, works_on, event.at)
        event.task_id = pending_events.find_active_task(tx.connection, event.session)
        if leaves is not None:
            pending_events.clear_active_task(tx.connection, event.session, leaves)
    inside = body.get("inside")
    session_id = _own_session(tx, inside) if inside else _follow(tx, event, body)
    seq = _journal(tx, event, body, session_id)
    # What cockpit's own agents read stands in their streams.
    if session_id and not inside and "arguments" in body and not body["failed"]:
        _note_reads(tx, event, body, session_id)
    if start_chain.ends_session(event, body, tx.clock.now()):
        over.append((seq, body["root"]))
    if event.task_id is None or "arguments" not in body:
        return {}
    tool_use = _tool_use(body)
    patch = capture_tool_use(tool_use, _reading(body["root"]))
    if solved := list_solved(tool_use):
        patch[wip.SOLVED] = solved
    if patch.get("uncommitted_changes") is False and "last_commit" not in patch:
        patch |= _head(body["root"], tx.clock.now() - parse_time(event.at))
    return wip.validate(patch) if patch else {}


def _own_session(tx: Tx, named: object) -> str:
    """Return cockpit's session of an agent that cockpit started; '' where its hook names none of ours."""
    if not isinstance(named, str):
        return ""
    row = tx.execute("SELECT 1 FROM sessions WHERE session_id=?", (named,)).fetchone()
    return "" if row is None else named


def _follow(tx: Tx, event: HookEvent, body: Mapping[str, Any]) -> str:
    """Bring the session of an agent in the user's own terminal up to date; returns its id."""
    root = str(body.get("root", ""))
    if not event.session or not os.path.isabs(root):
        return ""
    agent = TerminalAgent(event.agent, event.session, root, event.task_id)
    return follow_event(tx, agent, event.event, body).session_id


def _note_reads(tx: Tx, event: HookEvent, body: Mapping[str, Any], session_id: str) -> None:
    """Journal what a tool read in the user's own terminal; the same part of a version once."""
    if body["tool"] not in READS | SHELLS:
        return
    # Imported late: most events read nothing, and an ingest is to start fast.
    from cockpit.agents.streams.seen_reads import SeenReads

    if event.task_id is not None:
        sessions.attach_task(tx, session_id, event.task_id)
    arguments = {"cwd": body["cwd"], **body["arguments"]}
    for seen in SeenReads(Path(body["root"])).look(body["tool"], arguments):
        if not has_seen(tx.connection, session_id, seen):
            tx.journal(seen, actor="agent", session_id=session_id)


def _tool_use(body: Mapping[str, Any]) -> ToolUse:
    return ToolUse(
        tool=body["tool"],
        arguments=body["arguments"],
        output=body["output"],
        exit_code=body["exit_code"],
        cwd=body["cwd"] or body["root"],
        root=body["root"],
        failed=body["failed"],
    )


def _reading(root: str) -> Any:
    """Return a reader of the project's scripts that refuses files outside the project."""
    top = os.path.realpath(root)

    def read(path: str) -> str | None:
        real = os.path.realpath(os.path.join(top, path))
        if not root or not real.startswith(top + os.sep) or not os.path.isfile(real):
            return None
        try:
            if os.path.getsize(real) > _LARGEST_SCRIPT:
                return None
            with open(real, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return None

    return read


def _head(root: str, ago: timedelta) -> dict[str, str]:
    """Return the commit that a silent ``git commit`` has just made; empty when that is no longer certain."""
    if ago > _FRESH:
        return {}
    commit = find_commit(Path(root), "HEAD") if locate_git_folders(Path(root)) else ""
    return {"last_commit": commit[:_SHORT]} if commit else {}


def _journal(tx: Tx, event: HookEvent, body: Mapping[str, Any], session_id: str) -> int:
    answered = any(name in body for name in ("answer", "by", "about"))
    hook = AgentHook(
        agent_session=event.session,
        agent=event.agent,
        task_id=event.task_id or "",
        at=event.at,
        event=event.event,
        reason=body.get("reason", "") if event.event in ("SessionStart", "SessionEnd") else "",
        tool=body.get("tool", ""),
        answer=body.get("answer", UNSET),
        by=body.get("by", UNSET),
        about=body.get("about", UNSET),
        path=_touched_path(body) or UNSET,
    )
    actor = body.get("by", "agent") if answered else "agent"
    return tx.journal(hook, actor=actor, session_id=session_id)


def _touched_path(body: Mapping[str, Any]) -> str:
    """Return the file that a tool changed, from the worktree's top; '' for none and for one outside."""
    arguments = body.get("arguments", {})
    path = arguments.get("file_path") if isinstance(arguments, dict) else None
    if body.get("tool") in READS or not isinstance(path, str) or body.get("failed") or "\0" in path:
        return ""
    top = os.path.realpath(str(body.get("root", "")))
    real = os.path.realpath(os.path.join(str(body.get("cwd") or top), path))
    return os.path.relpath(real, top)[:500] if real.startswith(top + os.sep) else ""
