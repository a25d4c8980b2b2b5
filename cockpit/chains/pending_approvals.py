"""What of a session's tasks waits for a person: the proposals that nobody decided yet.

Source: seed 004, solution 7 (``notify``); design of work, "Report".
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A pending proposal, and the task whose step it holds up."""

    proposal_id: str
    task_id: str
    title: str


def pending_approvals(
    connection: sqlite3.Connection, task_ids: Sequence[str]
) -> tuple[PendingApproval, ...]:
    """The pending proposals of the steps that are under way in these tasks, the oldest first."""
    marks = ",".join("?" * len(task_ids))
    found = connection.execute(
        "SELECT p.proposal_id, r.task_id, p.title FROM proposals p"  # noqa: S608 - marks
        " JOIN task_runs r ON r.session_id=p.session_id"
        f" WHERE p.status='pending' AND r.outcome IS NULL AND r.task_id IN ({marks})"
        " ORDER BY p.created_at, p.proposal_id",
        tuple(task_ids),
    )
    return tuple(PendingApproval(*row) for row in found)
