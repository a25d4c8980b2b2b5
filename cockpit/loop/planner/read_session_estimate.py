"""A session's estimate as commands and programs read it: the first, the current, and what it took.

See ``docs/reference/planner.md``, JSON.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from cockpit.core.text import pluralize
from cockpit.loop.planner.stored_estimate import describe_expected, read_estimate
from cockpit.loop.views.estimate_text import expected_text, unit_text
from cockpit.store.estimates import estimates
from cockpit.store.journal.details.detail import detail_body


def read_session_estimate(connection: sqlite3.Connection, subject: str) -> dict[str, Any] | None:
    """Return the estimate of a session or of a run of a task (``T-4/1``); None where there is none.

    ``first`` and ``now`` are None for a session that is older than estimates, ``actual`` until it is done.
    """
    row = estimates.find(connection, subject)
    if row is None:
        return None
    return {
        "kind": row.kind,
        "counts": f"{unit_text(row.unit, row.model)}s",
        "size": row.size,
        "first": _body(row.made_json),
        "now": _body(row.now_json),
        "actual": None
        if row.learned_seq is None
        else {
            "waves": row.waves,
            "tokens": row.tokens,
            "cost_usd": row.cost_usd,
            "work_ms": row.work_ms,
        },
    }


def describe_task_estimate(connection: sqlite3.Connection, task_id: str) -> str:
    """Return the estimate of the newest run of a task and what it took, in words; '' before its first run."""
    (run,) = connection.execute(
        "SELECT max(run) FROM task_runs WHERE task_id=?", (task_id,)
    ).fetchone()
    row = None if run is None else estimates.find(connection, f"{task_id}/{run}")
    estimate = None if row is None else read_estimate(row.now_json)
    if row is None or estimate is None:
        return ""
    text = expected_text(describe_expected(estimate))
    return text if row.learned_seq is None else f"{text}; took {pluralize(row.waves, 'wave')}"


def _body(text: str) -> dict[str, Any] | None:
    estimate = read_estimate(text)
    return None if estimate is None else detail_body(describe_expected(estimate))
