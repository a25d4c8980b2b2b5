"""Pins by hand: a person keeps a fact in every packet from the next wave on, or lets it go again.

A packet that is compiled already never changes: a pin holds from the session's next wave, and what a
past wave knew as pinned stays so. Source: design of the screen (the band meter's facts).
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action

KEPT_BAND = "identity"
"""What the person and the project state for good is not let go from a list of facts."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A fact's pin after a change: whether it holds from wave ``ordinal`` on."""

    fact_id: str
    source_ref: str
    ordinal: int
    pinned: bool


@dataclass(frozen=True, slots=True)
class _Link:
    ordinal: int
    position: int
    source_ref: str
    band: str
    since: int | None
    until: int | None

    @property
    def pinned(self) -> bool:
        """Pinned from the next wave on, as things stand."""
        return self.since is not None and self.until is None


def select_pinned(connection: sqlite3.Connection, session_id: str) -> frozenset[str]:
    """The facts that will be pinned in the session's next wave."""
    rows = connection.execute(
        "SELECT fact_id FROM session_facts WHERE session_id=? AND superseded_at IS NULL"
        " AND pinned_from IS NOT NULL AND pinned_until IS NULL",
        (session_id,),
    )
    return frozenset(identity for (identity,) in rows)


def find_fact_id(connection: sqlite3.Connection, session_id: str, name: str) -> str:
    """The id of the one fact that a person means by its id or by its source reference.

    Raises :class:`NotFound` where none is called so now, or more than one.
    """
    rows = connection.execute(
        "SELECT fact_id FROM session_facts WHERE session_id=:session AND superseded_at IS NULL"
        " AND (fact_id=:name OR source_ref=:name) ORDER BY fact_id=:name DESC, ordinal, position",
        {"session": session_id, "name": name},
    ).fetchall()
    ids = [str(fact_id) for (fact_id,) in rows]
    if not ids or (len(ids) > 1 and name not in ids):
        several = f"more than one fact {name}: name one of {', '.join(ids)}"
        nobody = f"no fact {name} now; `cockpit packet explain` lists those there are"
        raise NotFound(f"Session {session_id} has {several if ids else nobody}.")
    return ids[0]


def pin(tx: Tx, session_id: str, fact_id: str) -> Pin:
    """Keep a fact in every packet from the next wave on; one that is pinned stays as it is.

    Raises :class:`NotFound` for a fact that the session does not have, or not any more.
    """
    link, following = _link(tx, session_id, fact_id), _following(tx, session_id)
    if not link.pinned:
        if link.since is not None and link.until is not None and link.until < following:
            # One link tells one span of pinned waves: the past span is kept, another link begins.
            _link_again(tx, session_id, link, following)
        else:
            since = following if link.since is None else link.since
            _set(tx, session_id, link, since)
        _journal(tx, Action.FACT_PINNED, session_id, fact_id, link, following)
    return Pin(fact_id, link.source_ref, following, True)


def unpin(tx: Tx, session_id: str, fact_id: str) -> Pin:
    """Let a fact be chosen or dropped by its worth again, from the next wave on.

    Raises :class:`NotFound`, and :class:`IllegalTransition` for a fact of the identity band.
    """
    link, following = _link(tx, session_id, fact_id), _following(tx, session_id)
    if link.pinned and link.band == KEPT_BAND:
        raise IllegalTransition(
            f"{link.source_ref} states what holds always and stays pinned; change the file that it"
            " comes from instead."
        )
    if link.pinned:
        begun = link.since is not None and link.since < following
        _set(tx, session_id, link, link.since if begun else None, following if begun else None)
        _journal(tx, Action.FACT_UNPINNED, session_id, fact_id, link, following)
    return Pin(fact_id, link.source_ref, following, False)


def _link(tx: Tx, session_id: str, fact_id: str) -> _Link:
    row = tx.execute(
        "SELECT ordinal, position, source_ref, band, pinned_from, pinned_until FROM session_facts"
        " WHERE session_id=? AND fact_id=? AND superseded_at IS NULL",
        (session_id, fact_id),
    ).fetchone()
    if row is None:
        raise NotFound(
            f"Session {session_id} has no fact {fact_id} now: it was never seen there, or a newer"
            " one stands in its place."
        )
    return _Link(*row)


def _following(tx: Tx, session_id: str) -> int:
    (last,) = tx.execute(
        "SELECT coalesce(max(ordinal), 0) FROM wave_runs WHERE session_id=?", (session_id,)
    ).fetchone()
    return int(last) + 1


def _set(tx: Tx, session_id: str, link: _Link, since: int | None, until: int | None = None) -> None:
    tx.execute(
        "UPDATE session_facts SET pinned_from=?, pinned_until=?"
        " WHERE session_id=? AND ordinal=? AND position=?",
        (since, until, session_id, link.ordinal, link.position),
    )


def _link_again(tx: Tx, session_id: str, link: _Link, following: int) -> None:
    place = (session_id, link.ordinal, link.position)
    tx.execute(
        "UPDATE session_facts SET superseded_at=? WHERE session_id=? AND ordinal=? AND position=?",
        (following, *place),
    )
    (last,) = tx.execute(
        "SELECT coalesce(max(position), 0) FROM session_facts WHERE session_id=? AND ordinal=?",
        (session_id, following),
    ).fetchone()
    changed = {
        "ordinal": following,
        "position": last + 1,
        "job": "",
        "pinned_from": following,
        "pinned_until": None,
        "superseded_at": None,
    }
    names = [str(row[1]) for row in tx.execute("PRAGMA table_info(session_facts)")]
    values = ", ".join(f":{name}" if name in changed else name for name in names)
    tx.execute(
        f"INSERT INTO session_facts({', '.join(names)}) SELECT {values} FROM session_facts"  # noqa: S608 - the table's own columns
        " WHERE session_id=:session AND ordinal=:was AND position=:place",
        {**changed, "session": session_id, "was": link.ordinal, "place": link.position},
    )


def _journal(
    tx: Tx, action: Action, session_id: str, fact_id: str, link: _Link, following: int
) -> None:
    tx.journal(
        action,
        session_id=session_id,
        actor="person",
        detail={
            "fact_id": fact_id,
            "source_ref": link.source_ref,
            "band": link.band,
            "from_wave": following,
        },
    )
