"""What the screen asks of trust: rules, offers, evidence, and the user's decisions on them.

See ``docs/reference/trust.md``, on the screen.
"""

from __future__ import annotations

from msgspec import Struct

from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.trust.decide_rules import decide_rule
from cockpit.loop.trust.list_rules import (
    EvidenceRow,
    TrustOverview,
    list_evidence,
    read_overview,
)
from cockpit.store.db.database import Store


class TrustService(Struct, frozen=True):
    """The trust rules of an open project. The methods raise ``CockpitError`` with text for the user."""

    store: Store
    settings: RuntimeSettings

    async def read_overview(self) -> TrustOverview:
        """Return every rule and offer, and the state of the inner loops."""
        return await self.store.read(
            lambda connection: read_overview(connection, self.store.clock, self.settings)
        )

    async def read_evidence(self, rule_id: str) -> tuple[EvidenceRow, ...]:
        """Return the decisions that a rule or an offer stands on, oldest first."""
        return await self.store.read(
            lambda connection: list_evidence(connection, self.store.clock, self.settings, rule_id)
        )

    async def decide(self, verb: str, rule_id: str) -> None:
        """``accept``, ``suspend`` or ``revoke`` a rule as the user."""
        await self.store.write(lambda tx: decide_rule(tx, self.settings, verb, rule_id))
