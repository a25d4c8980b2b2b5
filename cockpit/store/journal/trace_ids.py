"""The trace, the packet and the profile that a journal row belongs to.

A writer names a wave or a session; the rest follows from that and is filled in here, so that no row of a
trace lacks it.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

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
    session_id: str,
    wave_id: str,
) -> TraceColumns:
    """Return the trace with missing values taken from the wave, or from the session outside a wave.

    Values that are there stay, and a profile that is there is never mixed with the wave's.
    """
    trace_id, packet_id, profile_id, version = trace
    if trace_id and packet_id and profile_id and version:
        return trace
    wave_trace, wave_packet, wave_profile, wave_version = _read(connection, session_id, wave_id)
    if version is None and (not profile_id or profile_id == wave_profile):
        version = wave_version
    if not profile_id and version is not None:
        profile_id = wave_profile
    return trace_id or wave_trace, packet_id or wave_packet, profile_id, version


_EMPTY = Trace()


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
