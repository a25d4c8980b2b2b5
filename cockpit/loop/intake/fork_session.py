"""Forking: a new session that knows what another one knew after a wave, and continues from there.

See ``docs/reference/loop.md``, forks.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from msgspec import Struct

from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.store.context import facts, prune
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionForked, SessionWaiting
from cockpit.store.sessions import messages, sessions, waves
from cockpit.store.sessions.sessions import EXTERNAL_AGENT, Session
from cockpit.store.sessions.waves import Wave

_ENDED = ("completed", "failed_terminal")
_CHANGED = (
    *("session_id", "wave_id", "ordinal", "position"),
    *("pinned_from", "pinned_until", "superseded_at", "seen_at"),
)
"""Columns of a linked fact that a fork has otherwise than its source."""


class Fork(Struct, frozen=True):
    """A session that was forked."""

    session: Session
    """The new session; it waits for the user's message."""
    source: str
    """The session that it was forked from."""
    wave: int
    """The last wave that both have in common."""
    messages: int
    facts: int


def list_waves_to_fork(connection: sqlite3.Connection, session_id: str) -> list[int]:
    """List the waves after which the session can be forked: those that ended; none for other agents' ones."""
    session = sessions.load(connection, session_id)
    if _why_not(connection, session):
        return []
    ended = waves.select_for_session(connection, session_id)
    return [wave.ordinal for wave in ended if wave.phase in _ENDED]


def fork_session(
    tx: Tx, session_id: str, ordinal: int | None = None, *, actor: str = "person"
) -> Fork:
    """Fork a session of the built-in agent after wave ``ordinal``, by default its last one that ended.

    The new session has the task, the target, the profile, the model and the policy of the old one, its
    messages, and links to its facts as they were after that wave. It begins in the wave that follows, and
    waits for a message. The old session and the files of the project stay as they are. The caller owns
    the journal row ``session.forked``, by ``actor``.

    Raises :class:`NotFound` for an unknown session or wave, and :class:`IllegalTransition` for a session of
    an external agent or of a role, one whose facts were pruned, and a wave that has not ended.
    """
    source = sessions.load(tx.connection, session_id)
    reason = _why_not(tx.connection, source)
    if reason:
        raise IllegalTransition(reason)
    last = _find_wave(tx.connection, source, ordinal)
    copied = waves.select_for_session(tx.connection, source.session_id, last=last.ordinal)
    session = sessions.create(
        tx,
        task_type=source.task_type,
        title=f"{source.title} (fork)",
        words=source.words,
        target=source.target,
        model=source.model,
        policy=source.policy,
        interactive=source.interactive,
        root=Path(source.root),
        rev=source.rev,
        profile_id=source.profile_id,
        limits=source.limits,
        project=Path(source.root).name,
        branch=source.branch,
        actor=actor,
    )
    _copy_waves(tx, source, session, copied)
    linked = _link_facts(tx, source, session, last)
    written = _copy_messages(tx, source, session, last)
    event = SessionForked(
        source=source.session_id,
        wave=last.ordinal,
        messages=written,
        facts=linked,
        profile_version=last.profile_version or 0,
    )
    tx.journal(event, actor=actor, session_id=session.session_id, trace_id=session.trace_id)
    detail = SessionWaiting(for_="person", why=f"forked from {source.session_id}")
    session = sessions.set_status(tx, session.session_id, "waiting", actor=actor, detail=detail)
    return Fork(session, source.session_id, last.ordinal, written, linked)


def _why_not(connection: sqlite3.Connection, source: Session) -> str:
    """Return why a session cannot be forked here; '' where it can."""
    if source.agent or source.task_type == EXTERNAL_AGENT:
        return (
            f"Session {source.session_id} belongs to an external agent, which keeps its own conversation."
            " /fork on the screen forks it, where the agent can."
        )
    if source.role:
        return (
            f"Session {source.session_id} is the {source.role} of a task. It works in the task's worktree and"
            " cannot be forked."
        )
    if prune.was_pruned(connection, source.session_id):
        return (
            f"The facts of session {source.session_id} were pruned. Restore them with"
            " `cockpit prune --restore ARCHIVE`, then fork it."
        )
    return ""


def _find_wave(connection: sqlite3.Connection, source: Session, ordinal: int | None) -> Wave:
    rows = waves.select_for_session(connection, source.session_id)
    if ordinal is None:
        ended = [wave for wave in rows if wave.phase in _ENDED]
        if not ended:
            raise IllegalTransition(
                f"No wave of session {source.session_id} has ended; there is nothing to fork yet."
            )
        return ended[-1]
    wave = next((wave for wave in rows if wave.ordinal == ordinal), None)
    if wave is None:
        raise NotFound(f"Session {source.session_id} has no wave {ordinal}; it has {len(rows)}.")
    if wave.phase not in _ENDED:
        raise IllegalTransition(
            f"Wave {ordinal} of session {source.session_id} is {wave.phase}. Fork an earlier wave, or wait"
            " until it has ended."
        )
    return wave


def _copy_waves(tx: Tx, source: Session, session: Session, copied: list[Wave]) -> None:
    """Store the waves that both have in common, without packets and events of their own."""
    for wave in copied:
        tx.execute(
            "INSERT INTO wave_runs(wave_id, session_id, ordinal, phase, orientation_profile_version,"
            " trace_id, pinned_now, created_at, observing_at, orienting_at, deciding_at, acting_at,"
            " learning_at, ended_at, error_class, error_detail)"
            " SELECT ?, ?, ordinal, phase, orientation_profile_version, ?, pinned_now, created_at,"
            " observing_at, orienting_at, deciding_at, acting_at, learning_at, ended_at, error_class,"
            " error_detail FROM wave_runs WHERE wave_id=?",
            (
                waves.wave_id_of(session.session_id, wave.ordinal),
                session.session_id,
                session.trace_id,
                wave.wave_id,
            ),
        )


def _link_facts(tx: Tx, source: Session, session: Session, last: Wave) -> int:
    """Link the facts that were in force after wave ``last``, with what it had asked for.

    That was stored as the wave that followed began; without one it is read from the wave's plan.
    """
    columns = [str(row[1]) for row in tx.execute("PRAGMA table_info(session_facts)")]
    same = ", ".join(name for name in columns if name not in _CHANGED)
    wave_id = waves.wave_id_of(session.session_id, last.ordinal)
    following = waves.select_for_session(
        tx.connection, source.session_id, last.ordinal + 1, last.ordinal + 1
    )
    was_observed = bool(following) and following[0].phase not in ("created", "observing")
    tx.execute(
        f"INSERT INTO session_facts({', '.join(_CHANGED)}, {same})"  # noqa: S608 - the table's own columns
        " SELECT :session, :session || '-w' || min(ordinal, :last),"
        " min(ordinal, :last), CASE WHEN ordinal <= :last THEN position ELSE"
        " (SELECT coalesce(max(position), 0) FROM session_facts"
        " WHERE session_id=:source AND ordinal=:last) + row_number() OVER (ORDER BY ordinal, position) END,"
        " CASE WHEN pinned_from <= :last + 1 THEN pinned_from END,"
        " CASE WHEN pinned_until <= :last + 1 THEN pinned_until END,"
        " NULL,"
        f" min(seen_at, :last), {same}"
        " FROM session_facts WHERE session_id=:source AND ordinal<=:until"
        " AND NOT (ordinal > :last AND source_type='person')"
        " AND (superseded_at IS NULL OR superseded_at > :until)",
        {
            "session": session.session_id,
            "source": source.session_id,
            "last": last.ordinal,
            "until": last.ordinal + 1 if was_observed else last.ordinal,
        },
    )
    if not was_observed:
        # Late: it loads what runs a session, and the screen knows forks before it is drawn.
        from cockpit.loop.phases.tool_results import read_exchanges

        facts.record(
            tx,
            session_id=session.session_id,
            wave_id=wave_id,
            ordinal=last.ordinal,
            pinned_now=last.pinned_now,
            facts=[exchange.fact() for exchange in read_exchanges(tx.connection, last)],
            job="words",
        )
    (count,) = tx.execute(
        "SELECT count(*) FROM session_facts WHERE session_id=?", (session.session_id,)
    ).fetchone()
    return int(count)


def _copy_messages(tx: Tx, source: Session, session: Session, last: Wave) -> int:
    """Copy the messages up to the wave: what was written later belongs to the wave that follows."""
    rows = tx.execute(
        "SELECT m.role, m.text, m.interrupted, w.ordinal FROM messages m"
        " LEFT JOIN wave_runs w ON w.wave_id=m.wave_id"
        " LEFT JOIN wave_runs next ON next.session_id=m.session_id AND next.ordinal=?2 + 1"
        " WHERE m.session_id=?1 AND (w.ordinal <= ?2 OR w.ordinal IS NULL AND"
        " (next.created_at IS NULL OR m.created_at <"
        " (SELECT coalesce(orienting_at, ended_at) FROM wave_runs WHERE wave_id=?3)))"
        " ORDER BY m.created_at, m.rowid",
        (source.session_id, last.ordinal, last.wave_id),
    ).fetchall()
    for role, text, interrupted, ordinal in rows:
        messages.complete(
            tx,
            session_id=session.session_id,
            role=role,
            text=text,
            wave_id="" if ordinal is None else waves.wave_id_of(session.session_id, ordinal),
            interrupted=bool(interrupted),
        )
    return len(rows)
