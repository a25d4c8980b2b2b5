"""The session that words name: its id, the beginning of it, or ``last``."""

from __future__ import annotations

import sqlite3

from cockpit.core.errors import CockpitError, NotFound
from cockpit.store.sessions import sessions


class SessionUnclear(CockpitError):
    """Several sessions begin as the one that is named."""

    code = "usage"


def choose_session(
    connection: sqlite3.Connection, named: str | None, *, with_agents: bool = False
) -> str:
    """Return the id of a session by its id or the beginning of its id; None or ``last`` is the newest.

    Only ``with_agents`` is a session with an external agent the newest: it has turns, but no packets.

    Raises :class:`NotFound` without a match, :class:`SessionUnclear` with several.
    """
    if named is None or named == "last":
        newest = sessions.find_latest(connection, with_agents=with_agents)
        if newest is None:
            raise NotFound("There is no session yet. Start one with `cockpit run TASK`.")
        return newest.session_id
    matches = [
        str(identity)
        for (identity,) in connection.execute(
            "SELECT session_id FROM sessions WHERE substr(session_id, 1, ?)=? LIMIT 3",
            (len(named), named),
        )
    ]
    if named in matches:
        return named
    if not matches:
        raise NotFound(f"There is no session {named}. `cockpit sessions` lists all sessions.")
    if len(matches) > 1:
        raise SessionUnclear(
            f"Several sessions begin with {named}: {', '.join(matches)}. Write more of the id."
        )
    return matches[0]
