"""What a journal row is about: the trace, the packet and the profile of the wave that it happened in.

A row names a wave or a session; the rest of RFC-003 §14.2's fields follows from that, and is filled in
here, so that whoever writes a row cannot forget it and whoever follows a trace misses no row of it.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

_OF_WAVE = (
    "SELECT w.trace_id, coalesce(w.orientation_packet_id, ''), s.profile_id,"
    " w.orientation_profile_version FROM wave_runs w JOIN sessions s USING (session_id)"
    " WHERE w.wave_id=?"
)


@dataclass(frozen=True, slots=True)
class Trace:
    """``packet_id`` is empty before the wave's packet; a profile is named by id and version, or by
    neither."""

    trace_id: str = ""
    packet_id: str = ""
    profile_id: str = ""
    profile_version: int | None = None

    def filled(self, connection: sqlite3.Connection, session_id: str, wave_id: str) -> Trace:
        """With what the wave (or, outside any, the session) knows in the place of what is missing.

        What is given stays; a profile that is given is never mixed with the wave's.
        """
        if self.trace_id and self.packet_id and self.profile_id and self.profile_version:
            return self
        known = _known(connection, session_id, wave_id)
        version = self.profile_version
        if version is None and self.profile_id in ("", known.profile_id):
            version = known.profile_version
        named = known.profile_id if version is not None else ""
        return Trace(
            self.trace_id or known.trace_id,
            self.packet_id or known.packet_id,
            self.profile_id or named,
            version,
        )


_NOTHING = Trace()


def _known(connection: sqlite3.Connection, session_id: str, wave_id: str) -> Trace:
    if wave_id:
        found = connection.execute(_OF_WAVE, (wave_id,)).fetchone()
        if found is not None:
            return Trace(*found)
    if session_id:
        found = connection.execute(
            "SELECT trace_id FROM sessions WHERE session_id=?", (session_id,)
        ).fetchone()
        if found is not None:
            return Trace(found[0])
    return _NOTHING
