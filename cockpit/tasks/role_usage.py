"""What the roles of a task have used: tokens, cost, and the share of facts without room.

See ``docs/reference/chains.md``.
"""

from __future__ import annotations

import json
import sqlite3

from cockpit.store.context.packets import packet_from_body


def task_usage(connection: sqlite3.Connection, task_id: str) -> tuple[int, float]:
    """Return the tokens and US dollars of all sessions that took steps of the task, here or elsewhere."""
    (tokens, cost) = connection.execute(
        "SELECT coalesce(sum(input_tokens+output_tokens),0), coalesce(sum(cost_usd),0.0)"
        " FROM sessions WHERE session_id IN"
        " (SELECT session_id FROM task_runs WHERE task_id=? AND session_id IS NOT NULL)",
        (task_id,),
    ).fetchone()
    (elsewhere, cost_elsewhere) = connection.execute(
        "SELECT coalesce(sum(tokens),0), coalesce(sum(cost_usd),0.0) FROM remote_runs WHERE task_id=?",
        (task_id,),
    ).fetchone()
    return int(tokens + elsewhere), float(cost + cost_elsewhere)


def unpriced_tokens(connection: sqlite3.Connection, task_id: str) -> int:
    """Return the tokens of the task's sessions whose price is not known."""
    (tokens,) = connection.execute(
        "SELECT coalesce(sum(input_tokens+output_tokens),0) FROM sessions WHERE cost_usd IS NULL"
        " AND session_id IN (SELECT session_id FROM task_runs WHERE task_id=? AND session_id IS NOT NULL)",
        (task_id,),
    ).fetchone()
    return int(tokens)


def dropped_share(connection: sqlite3.Connection, session_id: str) -> float:
    """Return the share of utility (0 to 1) that the newest packet of a session left out.

    A shortened fact counts by the part of its tokens that is in the packet.
    """
    row = connection.execute(
        "SELECT p.packet_json, w.ordinal FROM orientation_packets p JOIN wave_runs w USING(wave_id)"
        " WHERE w.session_id=? ORDER BY w.ordinal DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    if row is None:
        return 0.0
    packet_tokens = {
        entry.fact_id: entry.tokens for _, entry in packet_from_body(json.loads(row[0])).rendered()
    }
    facts = connection.execute(
        "SELECT fact_id, utility, tokens_full FROM session_facts WHERE session_id=? AND ordinal<=?"
        " AND (superseded_at IS NULL OR superseded_at>?)",
        (session_id, row[1], row[1]),
    ).fetchall()
    total = sum(utility for _, utility, _ in facts)
    included = sum(
        utility * min(1.0, packet_tokens.get(fact_id, 0) / max(1, tokens_full))
        for fact_id, utility, tokens_full in facts
    )
    return round(1.0 - included / total, 6) if total else 0.0
