"""Waves: the state machine of one walk through the loop.

created → observing → orienting → deciding → acting → learning → completed, or failed_retryable |
failed_terminal. No phase may be skipped. A failed_retryable wave may re-enter the phase it failed
in, a terminal one never. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from msgspec import Struct, structs

from cockpit.core.clock import milliseconds_between
from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.core.secrets import mask
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.detail import Detail
from cockpit.store.journal.details.waves import (
    WaveAdvanced,
    WaveCompleted,
    WaveCreated,
    WaveFailed,
    WaveMoved,
    WaveReentered,
    WaveStarted,
)

PHASES = ("created", "observing", "orienting", "deciding", "acting", "learning", "completed")
FAILED = ("failed_retryable", "failed_terminal")

_ENTERED: Mapping[str, type[WaveMoved]] = {"observing": WaveStarted, "completed": WaveCompleted}


class Wave(Struct, frozen=True):
    """One row of ``wave_runs``."""

    wave_id: str
    session_id: str
    ordinal: int
    """Its place in the session, from 1."""
    phase: str
    trace_id: str
    pinned_now: str
    """The time that the wave takes as now, so that it can be replayed."""
    packet_id: str
    """Empty until Orient compiled its packet."""
    profile_version: int | None
    reentry_phase: str | None
    """The phase to re-enter after a retryable failure."""
    event_id: str | None


_SELECT = (
    "SELECT wave_id, session_id, ordinal, phase, trace_id, pinned_now,"
    " coalesce(orientation_packet_id,''), orientation_profile_version, reentry_phase, event_id"
    " FROM wave_runs"
)


_ENTERED_AT = (
    "CASE phase WHEN 'created' THEN created_at WHEN 'observing' THEN observing_at"
    " WHEN 'orienting' THEN orienting_at WHEN 'deciding' THEN deciding_at"
    " WHEN 'acting' THEN acting_at WHEN 'learning' THEN learning_at END"
)


_SELECT_ENTERED = f"{_SELECT.replace(' FROM', f', {_ENTERED_AT} FROM')} WHERE wave_id=?"
_ADVANCE = {
    phase: (
        f"UPDATE wave_runs SET phase=?, {'ended' if phase == 'completed' else phase}_at=?,"  # noqa: S608 - our phases
        " orientation_packet_id=coalesce(?, orientation_packet_id),"
        " orientation_profile_version=coalesce(?, orientation_profile_version) WHERE wave_id=?"
    )
    for phase in PHASES[1:]
}
"""The statement that enters a phase."""


def wave_id_of(session_id: str, ordinal: int) -> str:
    """Return the id of a session's wave by its place, from 1."""
    return f"{session_id}-w{ordinal}"


def create(tx: Tx, *, session_id: str, trace_id: str, event_id: str | None = None) -> Wave:
    """Create the session's next wave in phase ``created``, with its time pinned.

    Raises :class:`IllegalTransition` while an earlier wave of the session is open.
    """
    last = find_latest_in(tx, session_id)
    if last is not None and last.phase not in ("completed", "failed_terminal"):
        raise IllegalTransition(
            f"Wave {last.ordinal} of session {session_id} is {last.phase}; it must end before the next."
        )
    ordinal = last.ordinal + 1 if last else 1
    wave_id = wave_id_of(session_id, ordinal)
    now = tx.now()
    tx.execute(
        "INSERT INTO wave_runs(wave_id, session_id, event_id, ordinal, phase, trace_id, pinned_now,"
        " created_at) VALUES (?,?,?,?,'created',?,?,?)",
        (wave_id, session_id, event_id, ordinal, trace_id, now, now),
    )
    wave = Wave(wave_id, session_id, ordinal, "created", trace_id, now, "", None, None, event_id)
    _journal(tx, wave, WaveCreated(ordinal=ordinal, event_id=event_id), at=now)
    return wave


def advance(
    tx: Tx,
    wave_id: str,
    phase: str,
    *,
    detail: WaveStarted | None = None,
    packet_id: str | None = None,
    profile_version: int | None = None,
    latency_ms: int | None = None,
) -> Wave:
    """Enter the next phase and journal it.

    ``detail`` is the journal's record of the first phase; its ordinal and phase are filled in.

    Raises :class:`IllegalTransition` for any other phase; then nothing changed.
    """
    wave, began = _load_entered(tx, wave_id)
    if wave.phase not in PHASES[:-1] or phase != PHASES[PHASES.index(wave.phase) + 1]:
        raise IllegalTransition(
            f"Wave {wave.ordinal} of session {wave.session_id} cannot go from {wave.phase} to {phase}."
        )
    now = tx.now()
    if latency_ms is None:
        latency_ms = milliseconds_between(began, now)
    tx.execute(_ADVANCE[phase], (phase, now, packet_id, profile_version, wave_id))
    moved = Wave(
        wave_id,
        wave.session_id,
        wave.ordinal,
        phase,
        wave.trace_id,
        wave.pinned_now,
        packet_id or wave.packet_id,
        wave.profile_version if profile_version is None else profile_version,
        wave.reentry_phase,
        wave.event_id,
    )
    if detail is None:
        event = _ENTERED.get(phase, WaveAdvanced)(ordinal=wave.ordinal, phase=phase)
    else:
        event = structs.replace(detail, ordinal=wave.ordinal, phase=phase)
    _journal(tx, moved, event, latency_ms=latency_ms, at=now)
    return moved


def fail(tx: Tx, wave_id: str, *, retryable: bool, error_class: str, message: str) -> Wave:
    """End the wave as failed; a retryable one remembers the phase to re-enter."""
    wave = load(tx.connection, wave_id)
    if wave.phase in FAILED or wave.phase == "completed":
        raise IllegalTransition(f"Wave {wave.ordinal} is already {wave.phase}; it cannot fail.")
    phase, message = FAILED[0] if retryable else FAILED[1], mask(message)
    tx.execute(
        "UPDATE wave_runs SET phase=?, reentry_phase=?, error_class=?, error_detail=?, ended_at=?"
        " WHERE wave_id=?",
        (phase, wave.phase if retryable else None, error_class, message, tx.now(), wave_id),
    )
    failed = load(tx.connection, wave_id)
    tx.journal(
        WaveFailed(ordinal=wave.ordinal, phase=phase, message=message),
        session_id=wave.session_id,
        wave_id=wave_id,
        trace_id=wave.trace_id,
        result="error",
        error_code=error_class,
    )
    return failed


def reenter(tx: Tx, wave_id: str) -> Wave:
    """Put a failed_retryable wave back into the phase it failed in."""
    wave = load(tx.connection, wave_id)
    if wave.phase != "failed_retryable" or wave.reentry_phase is None:
        raise IllegalTransition(
            f"Wave {wave.ordinal} of session {wave.session_id} is {wave.phase}; only a "
            "failed_retryable wave can re-enter its phase."
        )
    tx.execute(
        "UPDATE wave_runs SET phase=?, reentry_phase=NULL, ended_at=NULL WHERE wave_id=?",
        (wave.reentry_phase, wave_id),
    )
    again = load(tx.connection, wave_id)
    _journal(tx, again, WaveReentered(ordinal=again.ordinal, phase=again.phase))
    return again


def find_failure(connection: sqlite3.Connection, wave_id: str) -> str:
    """Return the class of the wave's last failure; empty where it never failed."""
    row = connection.execute(
        "SELECT coalesce(error_class, '') FROM wave_runs WHERE wave_id=?", (wave_id,)
    ).fetchone()
    return "" if row is None else str(row[0])


def set_profile_version(tx: Tx, wave_id: str, version: int) -> Wave:
    """Pin another version of the profile for a wave that has no packet yet."""
    tx.execute(
        "UPDATE wave_runs SET orientation_profile_version=? WHERE wave_id=?"
        " AND orientation_packet_id IS NULL",
        (version, wave_id),
    )
    return load(tx.connection, wave_id)


def load(connection: sqlite3.Connection, wave_id: str) -> Wave:
    """Read the wave of that id. Raises :class:`NotFound`."""
    row = connection.execute(f"{_SELECT} WHERE wave_id=?", (wave_id,)).fetchone()
    if row is None:
        raise NotFound(f"There is no wave {wave_id}; `cockpit packet` lists the waves.")
    return Wave(*row)


def load_in(tx: Tx, wave_id: str) -> Wave:
    """Read the wave of that id in a write. Raises :class:`NotFound`."""
    return _load_entered(tx, wave_id)[0]


def _load_entered(tx: Tx, wave_id: str) -> tuple[Wave, str | None]:
    """Read a wave and when it entered its phase."""
    row = tx.execute(
        _SELECT_ENTERED,
        (wave_id,),
    ).fetchone()
    if row is None:
        return load(tx.connection, wave_id), None  # raises NotFound
    return Wave(*row[:-1]), row[-1]


def find_latest_in(tx: Tx, session_id: str) -> Wave | None:
    """Read the session's newest wave in a write, or None before the first."""
    return find_latest(tx.connection, session_id)


def find_latest(connection: sqlite3.Connection, session_id: str) -> Wave | None:
    """Read the session's newest wave, or None before the first."""
    row = connection.execute(
        f"{_SELECT} WHERE session_id=? ORDER BY ordinal DESC LIMIT 1", (session_id,)
    ).fetchone()
    return Wave(*row) if row else None


def select_for_session(
    connection: sqlite3.Connection, session_id: str, first: int = 1, last: int | None = None
) -> list[Wave]:
    """Read the waves of a session from ordinal ``first`` to ``last`` (all), in order."""
    rows = connection.execute(
        f"{_SELECT} WHERE session_id=? AND ordinal>=? AND ordinal<=coalesce(?, ordinal)"
        " ORDER BY ordinal",
        (session_id, first, last),
    )
    return [Wave(*row) for row in rows]


def _journal(
    tx: Tx,
    wave: Wave,
    event: Detail,
    *,
    latency_ms: int | None = None,
    at: str = "",
) -> None:
    tx.journal(
        event,
        session_id=wave.session_id,
        wave_id=wave.wave_id,
        trace_id=wave.trace_id,
        packet_id=wave.packet_id,
        profile_version=wave.profile_version,
        latency_ms=latency_ms,
        at=at,
    )
