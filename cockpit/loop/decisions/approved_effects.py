"""Actions that cockpit carries out itself, in the transaction of their approval.

They belong to no session and to no wave: nothing is queued and nothing can be half done. What they do is
given with the settings, by the type of the action.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx
    from cockpit.store.sessions.proposals import Proposal


class NoCommission(CockpitError):
    """Nothing here knows how to carry this action out; it was not approved."""

    code = "no_commission"


@dataclass(frozen=True, slots=True)
class Revised:
    """What the person made of a proposal in their editor: ``body`` is shown, and decided anew."""

    title: str
    body: Mapping[str, Any]


class Commission(Protocol):
    """One such type of action. Every method raises ``CockpitError``, and then nothing changed."""

    def carry_out(self, tx: Tx, proposal: Proposal, *, by: str) -> None:
        """Do what was approved, in the transaction of the approval."""
        ...

    def editable(self, proposal: Proposal) -> tuple[str, str]:
        """The text that a person may edit, and a suffix for the editor's file."""
        ...

    def edited(self, connection: sqlite3.Connection, proposal: Proposal, text: str) -> Revised:
        """The proposal that ``text`` makes of this one."""
        ...


Commissions = Mapping[str, Commission]


def commissioned(known: Commissions, proposal: Proposal) -> Commission | None:
    """The commission of an action that belongs to no session; None for any other proposal.

    Raises :class:`NoCommission` for one that this cockpit does not know.
    """
    if proposal.kind != "action" or proposal.session_id:
        return None
    kind = str(proposal.body.get("type", ""))
    if kind not in known:
        raise NoCommission(
            f"{proposal.proposal_id} is a {kind!r}, which this cockpit cannot carry out; reject it, or"
            " decide it with the cockpit that proposed it."
        )
    return known[kind]
