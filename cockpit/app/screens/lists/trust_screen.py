"""Trust rules: offers, rules and their evidence, and how far the inner loops of each task type are.

Enter alone accepts nothing: it asks for a second key. Specified in ``docs/reference/trust.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.app.host import Host
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.core.text import pluralize
from cockpit.loop.trust.list_rules import ListedRule, TaskTypeState
from cockpit.loop.views.state_signs import state_sign
from widgets.text.detail import DetailRow, entries, fields, sentence
from widgets.text.style_names import DIM, STRONG, Part
from widgets.work.task_views import QueuedView

_ACCEPTABLE = ("offered", "suspended", "expired", "revoked")


class TrustScreen(ListScreen[ListedRule]):
    """Rules and offers, with the decisions that one stands on."""

    NAME = "Trust rules"
    PANE = "trust"
    EMPTY = "No rules and no offers yet. They appear after you approve the same shape of request a few times."
    ENTER = ("accept",)
    QUESTIONS = {"accept": "accepts exactly this", "revoke": "revokes it"}  # noqa: RUF012 -- read only

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._states: Sequence[TaskTypeState] = ()

    async def read_rows(self) -> tuple[Sequence[ListedRule], Sequence[str]]:
        overview = await (await self.host.engine.trust()).read_overview()
        self._states = overview.states
        return overview.rules, overview.problems

    async def read_detail(self, row: ListedRule) -> Any:
        return await (await self.host.engine.trust()).read_evidence(row.rule_id)

    def describe(self) -> Sequence[Part]:
        parts: list[Part] = []
        for each in self._states:
            states = f"orient {each.orient.state}, decide {each.decide.state}   "
            parts += [(f"{each.task_type} ", STRONG), (states, DIM)]
        return parts or [("what passes without asking, and why", DIM)]

    def verbs(self, row: ListedRule) -> Mapping[str, str]:
        if "/" in row.rule_id:
            return {}  # an attention rule ends with its profile
        verbs = {}
        if row.status in _ACCEPTABLE:
            verbs["accept"] = "accept"
        if row.status == "active":
            verbs["suspend"] = "suspend"
        if row.status != "revoked":
            verbs["revoke"] = "decline" if row.status == "offered" else "revoke"
        return verbs

    async def do(self, verb: str, row: ListedRule) -> None:
        await (await self.host.engine.trust()).decide(verb, row.rule_id)

    def draw_row(self, row: ListedRule) -> QueuedView:
        look = state_sign("offer", row.status)
        what = "short card" if row.effect == "card" else "passes"
        where = " · ".join(filter(None, (row.task_type or "any task type", row.agent, what)))
        uses = f" · {pluralize(row.uses, 'use')}" if row.uses else ""
        return QueuedView(row.rule_id, row.says, look.sign, look.tone, row.status, f"{where}{uses}")

    def draw_detail(self, row: ListedRule, detail: Any) -> Sequence[DetailRow]:
        facts = [
            ("stored in", row.stored_in),
            ("risk", f"at most {row.risk}" if row.risk else ""),
            ("accepted", (row.accepted_at or "")[:10]),
            ("expires", (row.expires_at or "")[:10]),
            ("last used", (row.last_used_at or "")[:16].replace("T", " ")),
            ("why", row.why),
        ]
        approved = [
            (f"{each.decided_at[:16].replace('T', ' ')}  {each.proposal_id}", each.title)
            for each in detail or ()
        ]
        return [
            sentence((row.rule_id, STRONG)),
            sentence(row.says),
            *fields(facts),
            *entries("evidence: what you approved", approved),
        ]
