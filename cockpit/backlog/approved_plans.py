"""What cockpit carries out itself when it is approved; each is loaded when it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cockpit.backlog.planning.plan import PLAN_ACTION

if TYPE_CHECKING:
    import sqlite3

    from cockpit.loop.decisions.approved_effects import Commission, Revised
    from cockpit.store.db.transaction import Tx
    from cockpit.store.sessions.proposals import Proposal


class _Plans:
    """Plans for the backlog (:mod:`cockpit.backlog.planning.propose_plan`)."""

    def carry_out(self, tx: Tx, proposal: Proposal, *, by: str) -> None:
        from cockpit.backlog.planning import propose_plan

        propose_plan.carry_out(tx, proposal, by=by)

    def editable(self, proposal: Proposal) -> tuple[str, str]:
        from cockpit.backlog.planning import propose_plan

        return propose_plan.editable(proposal)

    def edited(self, connection: sqlite3.Connection, proposal: Proposal, text: str) -> Revised:
        from cockpit.backlog.planning import propose_plan

        return propose_plan.edited(connection, text)


COMMISSIONS: Mapping[str, Commission] = {PLAN_ACTION: _Plans()}
"""What the settings of every face give to the runtime, by the type of the action."""
