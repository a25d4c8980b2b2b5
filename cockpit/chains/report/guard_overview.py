"""Every guard with what it refused: cockpit's own in their order, then those of users and projects.

Computed from the journal and the guards' files. See ``docs/reference/guards.md``, on the screen.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cockpit.act.guards.guard_registry import GUARDS
from cockpit.loop.session_state.list_own_guards import OwnGuardRow
from cockpit.store.journal.event_types import Action

MOST_SHOWN = 50
"""Refusals of one guard that are shown, the newest."""
_REFUSED = (Action.ACTION_REFUSED, Action.CONTEXT_REFUSED)
_BY_HOOK = "guard:"
"""Begins who refused, in the rows of external agents' hooks; the guard's name follows."""


class GuardRefusal(Struct, frozen=True):
    """One call that a guard refused."""

    at: str
    session_id: str
    message: str


class GuardRow(Struct, frozen=True):
    """One guard."""

    name: str
    refuses: str
    """What it refuses, as a phrase or in its own words."""
    why: str = ""
    refused: int = 0
    """Calls and requests that it refused in this project."""
    own: OwnGuardRow | None = None
    """The guard of the user or the project; None for one of cockpit's own."""
    refusals: tuple[GuardRefusal, ...] = ()
    """The newest ones, the newest first, where the guard is shown alone."""


def read_guards(
    connection: sqlite3.Connection | None, own: Sequence[OwnGuardRow]
) -> tuple[GuardRow, ...]:
    """Return every guard, cockpit's own first, in the order in which they are asked, then ``own``."""
    counts = {} if connection is None else _count_refusals(connection)
    rows = [
        GuardRow(guard.name, guard.refuses, guard.why, counts.get(guard.name, 0))
        for guard in GUARDS
    ]
    rows += [
        GuardRow(row.guard_id, row.note, refused=counts.get(row.guard_id, 0), own=row)
        for row in own
    ]
    listed = {row.name for row in rows}
    rows += [
        GuardRow(name, "calls of a role, or of an external agent", refused=count)
        for name, count in sorted(counts.items())
        if name not in listed
    ]
    return tuple(rows)


def read_refusals(connection: sqlite3.Connection, guard: GuardRow) -> GuardRow:
    """Return a guard with its newest refusals."""
    rows = connection.execute(
        "SELECT at, session_id, json_extract(detail_json,'$.message') FROM journal"
        " WHERE action IN (?,?) AND json_extract(detail_json,'$.guard')=? ORDER BY seq DESC LIMIT ?",
        (*map(str, _REFUSED), guard.name, MOST_SHOWN),
    )
    newest = [GuardRefusal(str(at), str(sid or ""), str(words or "")) for at, sid, words in rows]
    return replace(guard, refusals=tuple(newest))


def _count_refusals(connection: sqlite3.Connection) -> Mapping[str, int]:
    """Count by guard: calls of cockpit's own agent, and those that hooks of external agents refused."""
    rows = connection.execute(
        "SELECT json_extract(detail_json,'$.guard') AS name, count(*) FROM journal"
        " WHERE action IN (?,?) GROUP BY name"
        " UNION ALL SELECT json_extract(detail_json,'$.by') AS name, count(*) FROM journal"
        " WHERE action=? AND name LIKE ? GROUP BY name",
        (*map(str, _REFUSED), str(Action.AGENT_HOOK), f"{_BY_HOOK}%"),
    )
    counts: Counter[str] = Counter()
    for name, count in rows:
        if name:
            counts[str(name).removeprefix(_BY_HOOK)] += int(count)
    return counts
