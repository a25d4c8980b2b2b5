"""The backlog as a planning session needs it. ``cockpit.backlog`` implements it and the settings inject it.

See ``docs/reference/plans.md``, plans by a model.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx
    from cockpit.store.sessions.proposals import Proposal
    from cockpit.store.sessions.sessions import Session

PLAN_TYPE = "plan"
"""The task type of sessions that plan."""
PLAN_TOOL = "propose_plan"
"""The tool with which their model proposes the plan."""


class PlanTarget(Protocol):
    """Reads, checks and proposes plans for the backlog."""

    def find_problem(self, connection: sqlite3.Connection, arguments: Mapping[str, Any]) -> str:
        """Return why the plan of these arguments cannot be used, for its model; '' where it can."""
        ...

    def propose(
        self,
        tx: Tx,
        session: Session,
        proposal_id: str,
        arguments: Mapping[str, Any],
        usd_a_token: float | None,
    ) -> Proposal:
        """Propose the plan as one proposal of the session. Raises ``CockpitError`` with the problem."""
        ...

    def describe_result(self, connection: sqlite3.Connection, proposal_id: str) -> str:
        """Return what an approved plan added to the backlog, in words; '' while nothing was added."""
        ...
