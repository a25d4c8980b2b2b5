"""Plans of models for the backlog: the part of a planning session that knows the backlog.

The plan is one proposal of the session, with its estimate; approving it adds its tasks in the transaction of
the approval. See ``docs/reference/plans.md``, plans by a model.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cockpit.backlog.planning.plan import PLAN_ACTION
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    import sqlite3

    from cockpit.backlog.planning.plan import Plan
    from cockpit.loop.decisions.approval_effects import ApprovalEffect, RevisedProposal
    from cockpit.store.db.transaction import Tx
    from cockpit.store.sessions.proposals import Proposal
    from cockpit.store.sessions.sessions import Session

MOST_SHOWN = 12
"""Tasks whose estimate the proposal shows."""


class BacklogPlanTarget:
    """Implements :class:`~cockpit.loop.planner.plan_target.PlanTarget` on the store's backlog."""

    def find_problem(self, connection: sqlite3.Connection, arguments: Mapping[str, Any]) -> str:
        """Return why the plan cannot be used, for its model."""
        try:
            _read(connection, arguments)
        except CockpitError as error:
            return str(error)
        return ""

    def propose(
        self,
        tx: Tx,
        session: Session,
        proposal_id: str,
        arguments: Mapping[str, Any],
        usd_a_token: float | None,
    ) -> Proposal:
        """Propose the plan; an earlier plan of the session that waits is replaced by it."""
        from cockpit.backlog.planning.plan import PLAN_ACTION
        from cockpit.backlog.planning.propose_plan import proposal_body
        from cockpit.loop.decisions.await_decision import find_discussed_predecessor
        from cockpit.loop.decisions.revision_changes import list_changes
        from cockpit.store.sessions import proposals

        plan = _read(tx.connection, arguments)
        fields = [
            ["written by", session.model],
            *_estimate(tx.connection, plan, session, usd_a_token),
        ]
        title, body = proposal_body(plan, {"plan": plan.body()}, fields)
        for earlier in proposals.select_for_session(tx.connection, session.session_id):
            if earlier.status == "pending" and earlier.body.get("type") == PLAN_ACTION:
                proposals.decide(
                    tx, earlier.proposal_id, "expired", by="engine", reason="planned anew"
                )
        before = find_discussed_predecessor(
            tx.connection, session.session_id, "action", proposal_id
        )
        return proposals.create(
            tx,
            proposal_id=proposal_id,
            kind="action",
            session_id=session.session_id,
            wave_id="",
            title=title,
            body={**body, "changes": list_changes(before, body)} if before else body,
            risk="low",
            revises=None if before is None else before.proposal_id,
            actor="agent",
        )

    def describe_result(self, connection: sqlite3.Connection, proposal_id: str) -> str:
        """Return what an approved plan added to the backlog."""
        from cockpit.backlog.planning.propose_plan import describe_result, plan_result

        result = plan_result(connection, proposal_id)
        return "" if result is None else describe_result(result)


def _read(connection: sqlite3.Connection, arguments: Mapping[str, Any]) -> Plan:
    from cockpit.backlog.planning.model_plan import read_model_plan
    from cockpit.backlog.task_type_names import read_names_of_store

    return read_model_plan(connection, arguments, read_names_of_store(connection))


def _estimate(
    connection: sqlite3.Connection, plan: Plan, session: Session, usd_a_token: float | None
) -> list[list[str]]:
    """Return the fields that say what the plan takes, together and task by task."""
    from cockpit.decide.planner.estimate_total import add_up
    from cockpit.loop.planner.estimate_session import estimate_kind
    from cockpit.loop.views.estimate_text import expected_text, total_basis_text

    estimates = [
        estimate_kind(connection, "task", task.task_type, session.model, usd_a_token)
        for task in plan.tasks
    ]
    total = add_up(estimates)
    basis = total_basis_text(total, len(estimates))
    fields = [["estimate", f"{expected_text(total)}; {basis}"]]
    for task, estimate in list(zip(plan.tasks, estimates, strict=True))[:MOST_SHOWN]:
        fields.append([f"#{task.number}", expected_text(estimate)])
    return fields


class _PlanEffect:
    """Plans for the backlog (:mod:`cockpit.backlog.planning.propose_plan`)."""

    def apply(self, tx: Tx, proposal: Proposal, *, by: str) -> None:
        from cockpit.backlog.planning import propose_plan

        propose_plan.carry_out(tx, proposal, by=by)

    def turn_down(self, tx: Tx, proposal: Proposal) -> None:
        return  # a plan that is not wanted leaves nothing behind

    def describe_discussion(self, proposal: Proposal, words: str) -> str:
        return words

    def editable_text(self, proposal: Proposal) -> tuple[str, str]:
        from cockpit.backlog.planning import propose_plan

        return propose_plan.editable(proposal)

    def revise(
        self, connection: sqlite3.Connection, proposal: Proposal, text: str
    ) -> RevisedProposal:
        from cockpit.backlog.planning import propose_plan

        return propose_plan.edited(connection, text)


APPROVAL_EFFECTS: Mapping[str, ApprovalEffect] = {PLAN_ACTION: _PlanEffect()}
"""The approval effects that the settings give to the runtime, by the type of the action."""
