"""The trace, the packet and the profile that a journal row belongs to.

A writer names a wave or a session; the rest follows from that and is filled in here, so that no row of a
trace lacks it.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from cockpit.store.db.row_cache import RowCache

_OF_WAVE = (
    "SELECT w.trace_id, coalesce(w.orientation_packet_id, ''), s.profile_id,"
    " w.orientation_profile_version FROM wave_runs w JOIN sessions s USING (session_id)"
    " WHERE w.wave_id=?"
)
_OF_SESSION = (
    "SELECT s.trace_id, coalesce(w.orientation_packet_id, ''), s.profile_id,"
    " w.orientation_profile_version FROM sessions s LEFT JOIN wave_runs w"
    " ON w.session_id=s.session_id AND w.ordinal="
    "(SELECT max(ordinal) FROM wave_runs o WHERE o.session_id=s.session_id) WHERE s.session_id=?"
)
"""Outside a wave: what the session's newest wave has."""


class Trace(NamedTuple):
    """The columns of a row that follow from its wave or session."""

    trace_id: str = ""
    packet_id: str = ""
    profile_id: str = ""
    profile_version: int | None = None


TraceColumns = tuple[str, str, str, int | None]
"""A :class:`Trace`, or just its columns: making a record for each row of the journal takes longer."""


def fill_trace(
    trace: TraceColumns,
    connection: sqlite3.Connection,
    rows: RowCache,
    session_id: str,
    wave_id: str,
) -> TraceColumns:
    """Return the trace with missing values taken from the wave, or from the session outside a wave.

    Values that are there stay, and a profile that is there is never mixed with the wave's.
    """
    trace_id, packet_id, profile_id, version = trace
    if trace_id and packet_id and profile_id and version:
        return trace
    wave_trace, wave_packet, wave_profile, wave_version = _load(
        connection, rows, session_id, wave_id
    )
    if version is None and (not profile_id or profile_id == wave_profile):
        version = wave_version
    if not profile_id and version is not None:
        profile_id = wave_profile
    return trace_id or wave_trace, packet_id or wave_packet, profile_id, version


_EMPTY = Trace()
_SESSIONS = "traces"


def drop_traces(rows: RowCache, session_id: str) -> None:
    """Read the traces of a session's rows again: its profile, its newest wave or a packet changed."""
    sessions = rows.get(_SESSIONS)
    if sessions is not None:
        sessions.pop(session_id, None)


def begin_trace(rows: RowCache, session_id: str, wave_id: str, trace_id: str) -> None:
    """Follow a session to its next wave, which has neither packet nor profile yet."""
    sessions = rows.get(_SESSIONS)
    traces = {} if sessions is None else sessions.get(session_id, {})
    profiles = {trace.profile_id for trace in traces.values()}
    drop_traces(rows, session_id)
    if len(profiles) == 1:
        sessions[session_id] = {wave_id: Trace(trace_id, "", profiles.pop())}


def move_trace(
    rows: RowCache, session_id: str, wave_id: str, packet_id: str, profile_version: int | None
) -> None:
    """Follow a wave that got its packet or another version of its profile."""
    sessions = rows.get(_SESSIONS)
    traces = {} if sessions is None else sessions.get(session_id, {})
    trace = traces.get(wave_id)
    drop_traces(rows, session_id)
    if trace is not None:
        moved = trace._replace(packet_id=packet_id, profile_version=profile_version)
        sessions[session_id] = {wave_id: moved}


def _load(connection: sqlite3.Connection, rows: RowCache, session_id: str, wave_id: str) -> Trace:
    if not session_id:
        return _read(connection, "", wave_id)
    sessions: dict[str, dict[str, Trace]] | None = rows.get(_SESSIONS)
    if sessions is None:
        sessions = {}
        rows.put(_SESSIONS, sessions)
    traces = sessions.setdefault(session_id, {})
    trace = traces.get(wave_id)
    if trace is None:
        trace = _read(connection, session_id, wave_id)
        if trace is not _EMPTY:
            traces[wave_id] = trace
    return trace


def _read(connection: sqlite3.Connection, session_id: str, wave_id: str) -> Trace:
    if wave_id:
        row = connection.execute(_OF_WAVE, (wave_id,)).fetchone()
        if row is not None:
            return Trace(*row)
    if session_id:
        row = connection.execute(_OF_SESSION, (session_id,)).fetchone()
        if row is not None:
            return Trace(*row)
    return _EMPTY
