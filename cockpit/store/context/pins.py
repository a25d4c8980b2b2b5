"""Pins set by the user: a fact stays in every packet from the next wave on, or is released.

A compiled packet never changes, so a pin applies from the session's next wave, and a past wave
keeps the pins that it had. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import FactPinned

KEPT_BAND = "identity"
"""Facts of this band state what the user and the project always want; they stay pinned."""


class Pin(Struct, frozen=True):
    """A fact's pin after a change."""

    fact_id: str
    source_ref: str
    ordinal: int
    """The wave from which on the change applies."""
    pinned: bool


class KeptResult(Struct, frozen=True):
    """A call's result that cockpit pinned for its meaning when it was stored."""

    ordinal: int
    position: int
    least_tokens: int
    """What it takes at the least level that its pin allows."""
    provenance: Mapping[str, Any]


def select_kept_results(connection: sqlite3.Connection, session_id: str) -> list[KeptResult]:
    """Read the results that are pinned since they were stored, the newest first."""
    rows = connection.execute(
        "SELECT s.ordinal, s.position, CASE WHEN s.pin_level=1 AND s.cost_outline>0"
        " THEN s.cost_outline ELSE max(s.cost_full, s.tokens_full) END, f.provenance_json"
        " FROM session_facts AS s JOIN observed_facts AS f USING(fact_id)"
        " WHERE s.session_id=? AND s.source_type='exchange' AND s.pinned_from IS NOT NULL"
        " AND s.pinned_from=s.ordinal AND s.pinned_until IS NULL AND s.superseded_at IS NULL"
        " ORDER BY s.ordinal DESC, s.position DESC",
        (session_id,),
    )
    return [
        KeptResult(ordinal, position, tokens, msgspec.json.decode(provenance))
        for ordinal, position, tokens, provenance in rows
    ]


def release(tx: Tx, session_id: str, kept: KeptResult, ordinal: int) -> None:
    """Unpin a kept result from wave ``ordinal`` on."""
    tx.execute(
        "UPDATE session_facts SET pinned_until=? WHERE session_id=? AND ordinal=? AND position=?",
        (ordinal, session_id, kept.ordinal, kept.position),
    )


class _Link(Struct, frozen=True):
    ordinal: int
    position: int
    source_ref: str
    band: str
    since: int | None
    until: int | None

    @property
    def pinned(self) -> bool:
        """Whether the fact is pinned from the next wave on."""
        return self.since is not None and self.until is None


def select_pinned(connection: sqlite3.Connection, session_id: str) -> frozenset[str]:
    """Read the ids of facts that will be pinned in the session's next wave."""
    rows = connection.execute(
        "SELECT fact_id FROM session_facts WHERE session_id=? AND superseded_at IS NULL"
        " AND pinned_from IS NOT NULL AND pinned_until IS NULL",
        (session_id,),
    )
    return frozenset(identity for (identity,) in rows)


def find_fact_id(connection: sqlite3.Connection, session_id: str, name: str) -> str:
    """Find a fact by its id or by its source reference.

    Raises :class:`NotFound` when no current fact matches, or more than one.
    """
    rows = connection.execute(
        "SELECT fact_id FROM session_facts WHERE session_id=:session AND superseded_at IS NULL"
        " AND (fact_id=:name OR source_ref=:name) ORDER BY fact_id=:name DESC, ordinal, position",
        {"session": session_id, "name": name},
    ).fetchall()
    ids = [str(fact_id) for (fact_id,) in rows]
    if not ids or (len(ids) > 1 and name not in ids):
        several = f"more than one fact {name}; pass one of these ids: {', '.join(ids)}"
        missing = f"no fact {name} now; `cockpit debug packet explain` lists its facts"
        raise NotFound(f"Session {session_id} has {several if ids else missing}.")
    return ids[0]


def pin(tx: Tx, session_id: str, fact_id: str) -> Pin:
    """Keep a fact in every packet from the next wave on; a pinned fact stays as it is.

    Raises :class:`NotFound` for a fact that the session does not have now.
    """
    link, following = _link(tx, session_id, fact_id), _following(tx, session_id)
    if not link.pinned:
        if link.since is not None and link.until is not None and link.until < following:
            # One link records one span of pinned waves: keep the past span and begin another link.
            _link_again(tx, session_id, link, following)
        else:
            since = following if link.since is None else link.since
            _set(tx, session_id, link, since)
        _journal(tx, session_id, fact_id, link, following, pinned=True)
    return Pin(fact_id, link.source_ref, following, True)


def unpin(tx: Tx, session_id: str, fact_id: str) -> Pin:
    """Let a fact compete by its utility again, from the next wave on.

    Raises :class:`NotFound`, and :class:`IllegalTransition` for a fact of the identity band.
    """
    link, following = _link(tx, session_id, fact_id), _following(tx, session_id)
    if link.pinned and link.band == KEPT_BAND:
        raise IllegalTransition(
            f"{link.source_ref} belongs to the {KEPT_BAND} band and stays pinned. Change the file that it"
            " comes from instead."
        )
    if link.pinned:
        begun = link.since is not None and link.since < following
        _set(tx, session_id, link, link.since if begun else None, following if begun else None)
        _journal(tx, session_id, fact_id, link, following, pinned=False)
    return Pin(fact_id, link.source_ref, following, False)


def _link(tx: Tx, session_id: str, fact_id: str) -> _Link:
    row = tx.execute(
        "SELECT ordinal, position, source_ref, band, pinned_from, pinned_until FROM session_facts"
        " WHERE session_id=? AND fact_id=? AND superseded_at IS NULL",
        (session_id, fact_id),
    ).fetchone()
    if row is None:
        raise NotFound(
            f"Session {session_id} has no fact {fact_id} now. It never saw the fact, or a newer one"
            " replaced it."
        )
    return _Link(*row)


def _following(tx: Tx, session_id: str) -> int:
    """The next wave to be compiled: the last one, where it failed without a packet, or the one after it."""
    row = tx.execute(
        "SELECT ordinal, phase='failed_retryable' AND orientation_packet_id IS NULL FROM wave_runs"
        " WHERE session_id=? ORDER BY ordinal DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    if row is None:
        return 1
    ordinal, is_uncompiled = row
    return int(ordinal) if is_uncompiled else int(ordinal) + 1


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
    tx: Tx, session_id: str, fact_id: str, link: _Link, following: int, *, pinned: bool
) -> None:
    event = FactPinned(
        fact_id=fact_id,
        pinned=pinned,
        source_ref=link.source_ref,
        band=link.band,
        from_wave=following,
    )
    tx.journal(event, session_id=session_id, actor="person")
