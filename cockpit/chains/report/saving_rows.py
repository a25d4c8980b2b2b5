"""The tokens that the guard, compiling and handovers saved, each as a row next to the measures of chains.

See ``docs/reference/measures.md``, saved tokens.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec import Struct, field

from cockpit.chains.report.guard_savings import GuardSavings, measure_guards
from cockpit.chains.report.measure_rows import MeasureRow
from cockpit.chains.report.measures import OPEN
from cockpit.chains.report.prompt_savings import (
    PromptSavings,
    measure_prompts,
)
from cockpit.core.text import pluralize
from cockpit.store.journal.event_types import Action

_ACTIONS = (Action.PACKET_COMPILED, Action.CONTEXT_REFUSED, Action.AGENT_HOOK)


class Savings(Struct, frozen=True):
    """What was saved from one time to another, in three separate sums."""

    guards: GuardSavings = field(default_factory=GuardSavings)
    prompts: PromptSavings = field(default_factory=PromptSavings)

    def body(self) -> dict[str, Any]:
        """Return the JSON objects ``guards``, ``compiling`` and ``handover`` of ``cockpit stats --json``."""
        return {"guards": self.guards.body(), **self.prompts.body()}


def measure_savings(connection: sqlite3.Connection, since: str = "", before: str = OPEN) -> Savings:
    """Measure the period from ``since`` up to ``before`` (stored timestamps)."""
    return Savings(
        measure_guards(connection, since, before), measure_prompts(connection, since, before)
    )


def newest_saving(connection: sqlite3.Connection) -> int:
    """Return the seq of the newest row that a saving is made of; 0 without any."""
    rows = (
        connection.execute("SELECT max(seq) FROM journal WHERE action=?", (str(action),)).fetchone()
        for action in _ACTIONS
    )
    return max(int(row[0] or 0) for row in rows)


def saving_rows(savings: Savings) -> tuple[MeasureRow, ...]:
    """Return refused reads and the three sums, each as a row."""
    guards, prompts = savings.guards, savings.prompts
    again = pluralize(guards.served, "item")
    return (
        MeasureRow(
            "Reads refused, built-in agent",
            float(guards.built_in),
            "number",
            detail=f"about {guards.built_in_tokens:,} tokens saved; {again} served again from stored facts",
        ),
        MeasureRow(
            "Reads refused, external agents",
            float(guards.external),
            "number",
            detail=f"about {guards.external_tokens:,} tokens saved",
        ),
        MeasureRow(
            "Tokens saved by the guard",
            float(guards.built_in_tokens + guards.external_tokens),
            "number",
            more_is_better=True,
            detail="estimated: the refused reads, counted once",
        ),
        MeasureRow(
            "Tokens saved by compiling",
            float(prompts.by_compiling) if prompts.prompts else None,
            "number",
            more_is_better=True,
            detail=_describe_compiling(prompts),
        ),
        MeasureRow(
            "Tokens saved by handover",
            float(prompts.by_handover) if prompts.handovers else None,
            "number",
            more_is_better=True,
            detail="estimated: against resuming the prompt of the session before;"
            f" {pluralize(prompts.handovers, 'handover')}",
        ),
    )


def _describe_compiling(prompts: PromptSavings) -> str:
    against = "estimated: against transcripts of all facts"
    if not prompts.transcript:
        return against
    share = 100 * prompts.by_compiling / prompts.transcript
    return f"{against}; {share:.0f}% of {pluralize(prompts.prompts, 'prompt')}"
