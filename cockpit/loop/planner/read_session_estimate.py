"""A session's estimate as commands and programs read it: the first, the current, and what it took.

See ``docs/reference/planner.md``, JSON.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from cockpit.core.text import pluralize
from cockpit.loop.views.estimate_text import expected_text, unit_text
from cockpit.store.estimates import estimates
from cockpit.store.journal.details.detail import decode_detail, detail_body
from cockpit.store.journal.details.estimates import Expected


def read_session_estimate(connection: sqlite3.Connection, subject: str) -> dict[str, Any] | None:
    """Return the estimate of a session or of a run of a task (``T-4/1``); None where there is none.

    ``actual`` is None until it is done.
    """
    row = estimates.find(connection, subject)
    if row is None:
        return None
    return {
        "kind": row.kind,
        "counts": f"{unit_text(row.unit, row.model)}s",
        "first": detail_body(decode_detail(Expected, row.made_json)),
        "now": detail_body(decode_detail(Expected, row.now_json)),
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
    if row is None:
        return ""
    text = expected_text(decode_detail(Expected, row.now_json))
    return text if row.learned_seq is None else f"{text}; took {pluralize(row.waves, 'wave')}"
