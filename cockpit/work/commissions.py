"""What cockpit carries out itself when it is approved; each is loaded when it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from cockpit.loop.commission import Commission, Revised
    from cockpit.store.database import Tx
    from cockpit.store.proposals import Proposal

PLAN = "backlog_plan"


class _Plans:
    """Plans for the backlog (:mod:`cockpit.work.planning.proposing`)."""

    def carry_out(self, tx: Tx, proposal: Proposal, *, by: str) -> None:
        from cockpit.work.planning import proposing

        proposing.carry_out(tx, proposal, by=by)

    def editable(self, proposal: Proposal) -> tuple[str, str]:
        from cockpit.work.planning import proposing

        return proposing.editable(proposal)

    def edited(self, connection: sqlite3.Connection, proposal: Proposal, text: str) -> Revised:
        from cockpit.work.planning import proposing

        return proposing.edited(connection, text)


COMMISSIONS: Mapping[str, Commission] = {PLAN: _Plans()}
"""What the settings of every face give to the runtime, by the type of the action."""
