"""Plans: what one model call decided, stored before anything runs.

Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.secrets import mask, mask_value
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import PlanCommitted, PlannedCall


class Plan(Struct, frozen=True):
    """One row of ``plans``."""

    plan_id: str
    wave_id: str
    text: str
    calls: tuple[Mapping[str, Any], ...]
    """The tool calls in order: ``{call_id, name, arguments, key, title, error}``.

    A call that only reads has the arguments of the context request that replaces it in ``reads``.
    """
    stop: str
    """The model's stop reason."""


def commit(
    tx: Tx,
    *,
    wave_id: str,
    session_id: str,
    text: str,
    calls: Sequence[Mapping[str, Any]],
    stop: str,
) -> Plan:
    """Store the wave's plan and journal it; a second commit for the wave returns the first."""
    plan_id = f"plan-{wave_id}"
    safe = mask_value([dict(call) for call in calls])
    added = tx.execute(
        "INSERT INTO plans VALUES (?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
        (plan_id, wave_id, session_id, mask(text), canonical_json(safe), stop, tx.now()),
    )
    if added.rowcount != 1:
        plan = find(tx.connection, wave_id)
        if plan is not None:
            return plan
    shown = [
        PlannedCall(kind=call["name"], title=call.get("title", ""), key=call.get("key", ""))
        for call in safe
    ]
    tx.journal(
        PlanCommitted(plan_id=plan_id, calls=tuple(shown)),
        actor="agent",
        session_id=session_id,
        wave_id=wave_id,
    )
    return Plan(plan_id, wave_id, mask(text), tuple(safe), stop)


def find(connection: sqlite3.Connection, wave_id: str) -> Plan | None:
    """Read the plan of a wave, or None before it decided."""
    row = connection.execute(
        "SELECT plan_id, wave_id, text, calls_json, stop FROM plans WHERE wave_id=?", (wave_id,)
    ).fetchone()
    if row is None:
        return None
    plan_id, wave, text, calls, stop = row
    return Plan(plan_id, wave, text, tuple(parse_json(calls)), stop)
