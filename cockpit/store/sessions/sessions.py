"""Sessions: conversations with one agent, each run by one process at a time.

Specified in ``docs/reference/loop.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.clock import format_time
from cockpit.core.errors import IllegalTransition, NotFound, Stale
from cockpit.core.processes import current_process, is_process_alive
from cockpit.core.secrets import mask, mask_value, masked_json
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import (
    SessionChanged,
    SessionCompleted,
    SessionCreated,
    SessionEntered,
    SessionFailed,
    SessionResumed,
    SessionRunning,
    SessionStopped,
    SessionWaiting,
)
from cockpit.store.journal.event_types import Action

STATUSES = ("running", "waiting", "completed", "failed", "stopped")
NEEDS_ANSWER = "needs_answer"
"""The result's status of a headless session that ended in words, without ``finish``."""
POLICIES = ("ask", "trusted", "reads", "all")
"""Which proposals are approved without the user."""
STUCK = "stuck"
"""The result's status of a session that was ended because its calls repeated without anything new."""
OUTCOMES = ("blocked", "limit", "needs_answer", "stuck", "expired", "paused")
"""Ends that the status of a session does not show: it is ``completed``, or ``waiting`` for ``expired``."""
LEASE_S = 60.0
"""Seconds after which a process's lease on a session expires."""
EXTERNAL_AGENT = "outside"
"""The task type of a session whose agent is not driven by cockpit but calls it over MCP."""
RUNNER_PREFIX = "runner:"
"""Starts the model name of a session that an external agent runs; its runner's name follows, and behind a
space its own model where that is known."""
_STARTS_S = 120.0
"""Seconds that an agent has from its session's row to its process."""
_MOST_AGENTS = 1_000
CHANGEABLE = ("policy", "model", "task_type", "title", "target", "limits", "rev", "interactive")
"""Fields that :func:`change` accepts."""

_ENTERED: Mapping[str, type[SessionEntered]] = {
    "running": SessionRunning,
    "waiting": SessionWaiting,
    "completed": SessionCompleted,
    "failed": SessionFailed,
    "stopped": SessionStopped,
}


class Session(Struct, frozen=True):
    """One row of ``sessions``."""

    session_id: str
    trace_id: str
    task_type: str
    title: str
    words: str
    """The task in the user's words."""
    target: Mapping[str, Any]
    """What the task is about: a pull request, a range, paths."""
    model: str
    policy: str
    """One of :data:`POLICIES`."""
    interactive: bool
    status: str
    root: str
    rev: str | None
    """The commit that files are read at; None for the files on disk."""
    role: str
    """The role in a chain, empty outside one."""
    task_id: str | None
    profile_id: str
    limits: Mapping[str, Any]
    result: Mapping[str, Any]
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None
    """None until a call with a known price was made."""
    lease_owner: str | None
    """The process that runs it, or None."""
    created_at: str
    updated_at: str
    agent: str
    """The external agent's name in the registry; empty for the built-in agent."""
    transport: str
    """How cockpit reaches it: ``acp``, ``stdio`` or ``hook``; empty: built-in."""
    pid: str
    """The agent's process as ``PID/START``; empty while none runs."""
    cwd: str
    """Where the agent works: the checkout or a worktree; empty for the built-in agent."""
    branch: str
    """The branch there when the session began."""
    agent_session: str
    """The agent's own id of the session."""

    @property
    def source(self) -> str:
        """The name under which events for this session are ingested."""
        return f"session/{self.session_id}"


_COLUMNS = (
    "session_id, trace_id, task_type, title, words, target_json, model, policy, interactive, status,"
    " root, rev, role, task_id, profile_id, limits_json, result_json, input_tokens, output_tokens,"
    " cached_tokens, cost_usd, lease_owner, created_at, updated_at, agent, transport, pid, cwd, branch,"
    " agent_session"
)
_SELECT = f"SELECT {_COLUMNS} FROM sessions"  # noqa: S608 - fixed columns


def create(
    tx: Tx,
    *,
    task_type: str,
    title: str,
    words: str,
    target: Mapping[str, Any],
    model: str,
    policy: str,
    interactive: bool,
    root: Path,
    rev: str | None,
    profile_id: str,
    limits: Mapping[str, Any],
    project: str,
    branch: str,
    role: str = "",
    task_id: str | None = None,
    actor: str = "person",
    agent: str = "",
    transport: str = "",
    cwd: Path | None = None,
    agent_session: str = "",
    session_id: str | None = None,
) -> Session:
    """Create a running session without an owner and journal it.

    ``session_id`` is an id that the caller has taken from the store's ids before. ``actor`` is who started
    it. ``agent`` is the external agent that has it, ``transport`` how cockpit reaches it, ``cwd`` where it
    works. Secrets in title, words, target and limits are masked.
    """
    session_id = session_id or tx.ids.new("s")
    trace_id, now = tx.ids.new("t"), tx.now()
    title, words, target = mask(title), mask(words), mask_value(dict(target))
    tx.execute(
        f"INSERT INTO sessions({_COLUMNS}) VALUES ({','.join('?' * 30)})",  # noqa: S608 - fixed columns
        (
            session_id,
            trace_id,
            task_type,
            title,
            words,
            canonical_json(target),
            model,
            policy,
            int(interactive),
            "running",
            str(root),
            rev,
            role,
            task_id,
            profile_id,
            masked_json(dict(limits)),
            "{}",
            0,
            0,
            0,
            None,
            None,
            now,
            now,
            agent,
            transport,
            "",
            "" if cwd is None else str(cwd),
            mask(branch),
            agent_session,
        ),
    )
    created = SessionCreated(
        task_type=task_type,
        title=title,
        words=words,
        target=target,
        model=model,
        policy=policy,
        project=project,
        branch=branch,
        interactive=interactive,
        role=role,
        task_id=task_id,
        agent=agent or UNSET,
        transport=transport or UNSET,
    )
    tx.journal(created, actor=actor, session_id=session_id, trace_id=trace_id)
    return load(tx.connection, session_id)


def set_status(
    tx: Tx,
    session_id: str,
    status: str,
    *,
    actor: str = "engine",
    error_code: str = "",
    detail: SessionEntered | None = None,
    result: Mapping[str, Any] | None = None,
) -> Session:
    """Put the session into ``status`` and journal it with ``detail``, the record of that status.

    A session that ended may run again, when a follow-up continues it. Entering ``running`` or
    ``stopped`` twice is journalled once. Raises :class:`IllegalTransition` for an unknown status.
    """
    session = load_in(tx, session_id)
    if status not in STATUSES:
        raise IllegalTransition(f"A session cannot be {status!r}.")
    event = detail or _ENTERED[status]()
    if type(event) is not _ENTERED[status]:
        raise TypeError(f"A session that is {status} is not journalled as {type(event).__name__}.")
    if session.status == status and status in ("running", "stopped"):
        return session
    body = mask_value(dict(result)) if result is not None else dict(session.result)
    tx.execute(
        "UPDATE sessions SET status=?, outcome=?, result_json=?, updated_at=? WHERE session_id=?",
        (status, _outcome(event), canonical_json(body), tx.now(), session_id),
    )
    tx.journal(
        event,
        actor=actor,
        session_id=session_id,
        trace_id=session.trace_id,
        result="error" if status == "failed" else "ok",
        error_code=error_code,
    )
    return load(tx.connection, session_id)


def set_agent_process(
    tx: Tx, session_id: str, *, pid: str | None = None, agent_session: str | None = None
) -> None:
    """Record the process of the session's external agent (empty: it ended), and its own session's id.

    None leaves a value as it is. The caller journals why.
    """
    tx.execute(
        "UPDATE sessions SET pid=coalesce(?, pid), agent_session=coalesce(?, agent_session), updated_at=?"
        " WHERE session_id=?",
        (pid, agent_session, tx.now(), session_id),
    )


def select_of_agents(connection: sqlite3.Connection, limit: int = 50) -> list[Session]:
    """Read the sessions of external agents, last changed first."""
    rows = connection.execute(
        f"{_SELECT} INDEXED BY idx_sessions_agent WHERE agent<>'' ORDER BY updated_at DESC LIMIT ?",
        (limit,),
    )
    return [_read(row) for row in rows]


async def store_new(store: Store, create: Callable[[Tx], str]) -> str:
    """Store the session that ``create`` returns the id of; '' for none.

    A caller that is cancelled never learns the id, so the session is stopped then: nothing would run it.
    """
    writing = asyncio.ensure_future(store.write(create))
    try:
        return await asyncio.shield(writing)
    except asyncio.CancelledError:
        if session_id := await writing:
            await store.write(lambda tx: stop_unowned(tx, session_id))
        raise


def stop_unowned(tx: Tx, session_id: str) -> None:
    """Stop a session whose run was interrupted before a process owned it; it can be resumed.

    Sessions of roles and of agents that cockpit does not drive belong to others and stay as they are.
    """
    session = load(tx.connection, session_id)
    is_ours = not session.role and session.task_type != EXTERNAL_AGENT
    if is_ours and session.status == "running" and session.lease_owner is None:
        detail = SessionStopped(reason="interrupted")
        set_status(tx, session_id, "stopped", actor="person", detail=detail)


def works_agent_in(connection: sqlite3.Connection, folder: str, now: datetime) -> bool:
    """Whether an external agent that cockpit drives works in ``folder``, or is about to start there."""
    recent = format_time(now - timedelta(seconds=_STARTS_S))
    return any(
        is_process_alive(session.pid)
        if session.pid
        else session.status == "running" and session.created_at >= recent
        for session in select_of_agents(connection, _MOST_AGENTS)
        if session.cwd == folder and session.task_type != EXTERNAL_AGENT
    )


def find_agent_session(
    connection: sqlite3.Connection, agent: str, agent_session: str
) -> Session | None:
    """Read the session that an external agent calls ``agent_session``; None where there is none."""
    row = connection.execute(
        f"{_SELECT} WHERE agent=? AND agent<>'' AND agent_session=? ORDER BY created_at DESC LIMIT 1",
        (agent, agent_session),
    ).fetchone()
    return None if row is None else _read(row)


def set_profile(tx: Tx, session_id: str, profile_id: str) -> Session:
    """Let the session's next waves follow another profile: that of a larger budget."""
    tx.execute("UPDATE sessions SET profile_id=? WHERE session_id=?", (profile_id, session_id))
    return load(tx.connection, session_id)


def _outcome(event: SessionEntered) -> str:
    """Return how a session ended that did not do its task (:data:`OUTCOMES`), or empty."""
    status: object = ""
    if isinstance(event, SessionCompleted):
        status = event.status
    elif isinstance(event, SessionWaiting):
        status = event.for_
    return str(status) if status in OUTCOMES else ""


def change(tx: Tx, session_id: str, *, actor: str = "person", **fields: Any) -> Session:
    """Change fields (of :data:`CHANGEABLE`) of a session and journal them."""
    session = load(tx.connection, session_id)
    for name, value in fields.items():
        if name not in CHANGEABLE:
            raise IllegalTransition(f"A session's {name} cannot be changed.")
        column = f"{name}_json" if name in ("target", "limits") else name
        stored = mask_value(dict(value) if name in ("target", "limits") else value)
        tx.execute(
            f"UPDATE sessions SET {column}=?, updated_at=? WHERE session_id=?",  # noqa: S608 - checked above
            (canonical_json(stored) if column != name else stored, tx.now(), session_id),
        )
    tx.journal(
        SessionChanged(**fields),
        actor=actor,
        session_id=session_id,
        trace_id=session.trace_id,
    )
    return load(tx.connection, session_id)


def model_for_people(model: str) -> str:
    """Return the name of a session's model; that of an external agent only as far as it is known."""
    return model.partition(" ")[2] if model.startswith(RUNNER_PREFIX) else model


def attach_task(tx: Tx, session_id: str, task_id: str) -> None:
    """Record the task that a session works on, unless it has one."""
    tx.execute(
        "UPDATE sessions SET task_id=? WHERE session_id=? AND task_id IS NULL"
        " AND EXISTS (SELECT 1 FROM tasks WHERE tasks.task_id=?)",
        (task_id, session_id, task_id),
    )


def add_usage(
    tx: Tx,
    session_id: str,
    *,
    input_tokens: int,
    output_tokens: int,
    cached_tokens: int,
    cost_usd: float | None,
) -> None:
    """Add the usage of one model call to the session's totals."""
    tx.execute(
        "UPDATE sessions SET input_tokens=input_tokens+?, output_tokens=output_tokens+?,"
        " cached_tokens=cached_tokens+?, cost_usd=CASE WHEN ? IS NULL THEN cost_usd"
        " ELSE coalesce(cost_usd,0)+? END, updated_at=? WHERE session_id=?",
        (input_tokens, output_tokens, cached_tokens, cost_usd, cost_usd, tx.now(), session_id),
    )


def count_type_changes(tx: Tx, session_id: str) -> int:
    """Count how often the session's task type was changed, by its agent's tool or by the user."""
    (count,) = tx.execute(
        "SELECT count(*) FROM journal WHERE session_id=? AND action=?"
        " AND json_extract(detail_json, '$.task_type') IS NOT NULL",
        (session_id, str(Action.SESSION_CHANGED)),
    ).fetchone()
    return int(count)


def count_unpriced_tokens(tx: Tx, session_id: str) -> int:
    """Count the tokens of the session's model calls without a known price."""
    (tokens,) = tx.execute(
        "SELECT coalesce(sum(json_extract(detail_json, '$.input_tokens')"
        " + json_extract(detail_json, '$.output_tokens')), 0) FROM journal"
        " WHERE session_id=? AND action=? AND json_extract(detail_json, '$.cost_usd') IS NULL",
        (session_id, str(Action.MODEL_COMPLETED)),
    ).fetchone()
    return int(tokens)


def load(connection: sqlite3.Connection, session_id: str) -> Session:
    """Read the session of that id. Raises :class:`NotFound`."""
    row = connection.execute(f"{_SELECT} WHERE session_id=?", (session_id,)).fetchone()
    if row is None:
        raise NotFound(f"There is no session {session_id}; `cockpit sessions` lists the sessions.")
    return _read(row)


def exists(connection: sqlite3.Connection, session_id: str) -> bool:
    """Whether there is a session of that id."""
    row = connection.execute("SELECT 1 FROM sessions WHERE session_id=?", (session_id,)).fetchone()
    return row is not None


def load_in(tx: Tx, session_id: str) -> Session:
    """Read the session of that id in a write. Raises :class:`NotFound`."""
    return load(tx.connection, session_id)


def select_recent(connection: sqlite3.Connection, limit: int = 50) -> list[Session]:
    """Read the sessions that changed last first."""
    rows = connection.execute(f"{_SELECT} ORDER BY updated_at DESC LIMIT ?", (limit,))
    return [_read(row) for row in rows]


def find_latest(connection: sqlite3.Connection, *, with_agents: bool = False) -> Session | None:
    """Read the session that changed last among those of the built-in agent.

    ``with_agents`` adds those in which cockpit drives an external agent for the user; never those of chains
    and of agents in terminals, which cockpit cannot resume.
    """
    row = connection.execute(
        f"{_SELECT} WHERE task_type<>? AND (model NOT LIKE ? OR (? AND role='' AND transport='acp'))"
        " ORDER BY updated_at DESC LIMIT 1",
        (EXTERNAL_AGENT, f"{RUNNER_PREFIX}%", with_agents),
    ).fetchone()
    return None if row is None else _read(row)


def acquire(tx: Tx, session_id: str) -> str:
    """Take the session for this process; returns the lease token.

    A lease is free when it expired, when its process is gone, or when this process gave it up. Raises
    :class:`Stale` while another live process runs the session.
    """
    row = tx.execute(
        "SELECT lease_owner, lease_expires_at, lease_token FROM sessions WHERE session_id=?",
        (session_id,),
    ).fetchone()
    if row is None:
        raise NotFound(f"There is no session {session_id}; `cockpit sessions` lists them.")
    owner, expires, given = row
    is_held = owner is not None and expires > tx.now() and is_process_alive(owner)
    if is_held and given not in tx.unreleased:
        raise Stale(
            f"Process {owner.split('/')[0]} of this machine runs session {session_id}. "
            "Stop it there, or watch it with `cockpit journal --follow`."
        )
    token = tx.ids.new("lease")
    tx.execute(
        "UPDATE sessions SET lease_owner=?, lease_token=?, lease_expires_at=? WHERE session_id=?",
        (current_process(), token, _expiry(tx), session_id),
    )
    tx.journal(SessionResumed(process=current_process()), session_id=session_id)
    return token


async def end_lease(store: Store, session_id: str, token: str) -> None:
    """Give up the session, even where that cannot be stored: the disk is full, say.

    The lease then names this process, which lives; without this nobody could go on before it expires: in a
    minute, or in a day where the clock was set back. Raises the store's errors.
    """
    try:
        await store.write(lambda tx: release(tx, session_id, token))
    except BaseException:
        store.unreleased.add(token)
        raise


def renew(tx: Tx, session_id: str, token: str) -> None:
    """Extend the lease. Raises :class:`Stale` when it was lost."""
    changed = tx.execute(
        "UPDATE sessions SET lease_expires_at=? WHERE session_id=? AND lease_token=?",
        (_expiry(tx), session_id, token),
    )
    if changed.rowcount != 1:
        raise Stale(f"Another process took over session {session_id}; this one stops.")


def release(tx: Tx, session_id: str, token: str) -> None:
    """Give up the session; a lease that was lost already is left alone."""
    tx.execute(
        "UPDATE sessions SET lease_owner=NULL, lease_token=NULL, lease_expires_at=NULL"
        " WHERE session_id=? AND lease_token=?",
        (session_id, token),
    )


def _expiry(tx: Tx) -> str:
    return format_time(tx.clock.now() + timedelta(seconds=LEASE_S))


def _read(row: tuple[Any, ...]) -> Session:
    values = list(row)
    for place in (5, 15, 16):
        values[place] = parse_json(values[place])
    values[8] = bool(values[8])
    return Session(*values)
