"""Facts of a session as they were observed, rebuilt from their rows.

See ``docs/reference/guards.md``, served again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from cockpit.store.context.facts import Fact, FactCost, Level, chunks


def load_facts(
    connection: sqlite3.Connection, session_id: str, identities: Sequence[str]
) -> tuple[Fact, ...]:
    """Return facts of the session in this order; empty where one is superseded or not stored."""
    by_id: dict[str, Fact] = {}
    for marks, chunk in chunks(identities):
        for row in connection.execute(
            "SELECT o.fact_id, o.source_type, o.source_ref, s.band, o.provenance_json,"  # noqa: S608 - only placeholders
            " o.normalized_json, coalesce(o.dedupe_key, ''), o.utility_score, s.sketch,"
            " s.tokens_full, s.tokens_outline, s.tokens_reference,"
            " s.cost_full, s.cost_outline, s.cost_reference, s.pin_level"
            " FROM session_facts AS s CROSS JOIN observed_facts AS o USING (fact_id)"
            f" WHERE s.session_id=? AND s.superseded_at IS NULL AND s.fact_id IN ({marks})",
            (session_id, *chunk),
        ):
            fact = _read_fact(row)
            # A fact that was altered since is not served: its id is the digest of its content.
            if fact.fact_id == row[0]:
                by_id[row[0]] = fact
    if any(identity not in by_id for identity in identities):
        return ()
    return tuple(by_id[identity] for identity in identities)


def _read_fact(row: sqlite3.Row | tuple[object, ...]) -> Fact:
    (_, source_type, source_ref, band, provenance, normalized, key, utility, sketch, *rest) = row
    full, outline, reference, cost_full, cost_outline, cost_reference, pin_level = map(_int, rest)
    levels = msgspec.json.decode(str(normalized))
    return Fact(
        source_type=str(source_type),
        source_ref=str(source_ref),
        band=str(band),
        full=Level(levels["full"], full),
        reference=Level(levels["reference"], reference),
        outline=None if levels["outline"] is None else Level(levels["outline"], outline),
        provenance=msgspec.json.decode(str(provenance)),
        dedupe_key=str(key),
        utility=_int(utility),
        quality=_int(levels["quality"]),
        sketch=_int(sketch),
        cost=FactCost(cost_full, cost_outline, cost_reference),
        pinned_short=bool(pin_level),
    )


def _int(value: object) -> int:
    return int(float(str(value)))
