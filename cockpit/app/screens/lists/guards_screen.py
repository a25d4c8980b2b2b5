"""Guards: what each refuses, what it has refused, and the approval of those of yours.

Enter alone approves nothing: it asks for a second key, above the source. Specified in
``docs/reference/guards.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.chains.report.guard_overview import GuardRow, read_guards, read_refusals
from cockpit.core.text import pluralize
from cockpit.loop.views.state_signs import StateSign, state_sign
from widgets.text.detail import DetailRow, entries, fields, quoted, sentence
from widgets.text.style_names import DIM, STRONG, Part
from widgets.work.task_views import QueuedView


class GuardsScreen(ListScreen[GuardRow]):
    """cockpit's own guards, always on, then those of the user and of the project."""

    NAME = "Guards"
    PANE = "guards"
    EMPTY = "No guards."
    ENTER = ("approve",)
    QUESTIONS = {  # noqa: RUF012 -- read only
        "approve": "lets exactly this guard refuse calls of agents",
        "forget": "withdraws the approval: it is not asked any more",
    }
    READS_FILES = True

    async def read_rows(self) -> tuple[Sequence[GuardRow], Sequence[str]]:
        engine = self.host.engine
        own = await (await engine.guards()).list_own()
        return await engine.store.read(partial(read_guards, own=own)), ()

    async def read_detail(self, row: GuardRow) -> Any:
        return await self.host.engine.store.read(partial(read_refusals, name=row.name))

    def describe(self) -> Sequence[Part]:
        refused = sum(row.refused for row in self.rows)
        own = sum(row.own is not None for row in self.rows)
        text = f"{len(self.rows) - own} of cockpit's own, {own} of yours · {refused:,} refused"
        return [(text, DIM)]

    def verbs(self, row: GuardRow) -> Mapping[str, str]:
        if row.own is None:
            return {}
        is_approved = row.own.state.startswith(("approved", "changed"))
        approve = {"approve": "approve"} if row.own.file and row.own.state != "approved" else {}
        return {**approve, **({"forget": "forget"} if is_approved else {})}

    async def do(self, verb: str, row: GuardRow) -> None:
        if row.own is not None:
            service = await self.host.engine.guards()
            await (service.approve(row.own) if verb == "approve" else service.forget(row.own))

    def words(self, row: GuardRow) -> str:
        return row.why

    def draw_row(self, row: GuardRow) -> QueuedView:
        look = _sign(row)
        state = "built in" if row.own is None else row.own.state
        about = (
            f"refused {pluralize(row.refused, 'call')}" if row.refused else "refused nothing yet"
        )
        return QueuedView(row.name, row.refuses, look.sign, look.tone, state, about)

    def draw_detail(self, row: GuardRow, detail: Any) -> Sequence[DetailRow]:
        facts = [
            ("refuses", row.refuses),
            ("because", row.why),
            ("refused", pluralize(row.refused, "call")),
        ]
        sources: list[DetailRow] = []
        if row.own is not None:
            tools = ", ".join(row.own.tools) if row.own.tools else "all actions"
            facts += [("state", row.own.state), ("asked about", tools), ("digest", row.own.digest)]
            for path, text in row.own.sources.items():
                sources += quoted(path, text)
        refusals = [
            (f"{each.at[:16].replace('T', ' ')}  {each.session_id}", each.message)
            for each in detail or ()
        ]
        head = [sentence((row.name, STRONG)), *fields(facts)]
        return [*head, *sources, *entries("what it refused, the newest first", refusals)]


def _sign(row: GuardRow) -> StateSign:
    if row.own is None or row.own.state == "approved":
        return state_sign("offer", "approved")
    return state_sign("offer", "new" if row.own.file else "refused")
