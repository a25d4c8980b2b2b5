"""What the guard against redundant reads saved: refused reads and their tokens, by whose agent it was.

Computed from the journal alone. See ``docs/reference/measures.md``, guards.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec import Struct

from cockpit.core.text import pluralize
from cockpit.store.journal.event_types import Action

GUARD = "redundant_read"
BY_HOOK = f"guard:{GUARD}"
"""Who refused, in the rows of external agents' hooks."""


class GuardSavings(Struct, frozen=True):
    """The reads that the guard refused from one time to another."""

    built_in: int = 0
    """Requests of cockpit's own agent."""
    built_in_tokens: int = 0
    external: int = 0
    """Calls of Claude Code and Codex, by their hooks."""
    external_tokens: int = 0
    served: int = 0
    """Items that were served again from stored facts, with nothing read."""

    def body(self) -> dict[str, Any]:
        """Return the JSON object that ``cockpit stats --json`` prints as ``guards``."""
        return {
            "built_in": {
                "refused_reads": self.built_in,
                "tokens_saved": self.built_in_tokens,
                "served_again": self.served,
            },
            "external": {
                "refused_reads": self.external,
                "tokens_saved": self.external_tokens,
            },
        }

    def list_rows(self) -> tuple[tuple[str, str, str], ...]:
        """Return name, number and detail of each row of the table."""
        again = pluralize(self.served, "item")
        return (
            (
                "Redundant reads refused, built-in agent",
                f"{self.built_in:,}",
                f"about {self.built_in_tokens:,} tokens saved; {again} served again from stored facts",
            ),
            (
                "Redundant reads refused, external agents",
                f"{self.external:,}",
                f"about {self.external_tokens:,} tokens saved",
            ),
        )


def measure_guards(connection: sqlite3.Connection, since: str, before: str) -> GuardSavings:
    """Measure the period from ``since`` up to ``before`` (stored timestamps)."""
    refused = (
        "SELECT count(*), coalesce(sum(json_extract(detail_json, '$.tokens')), 0) FROM journal"
        " WHERE action=? AND at>=? AND at<? AND json_extract(detail_json, {}) = ?"
    )
    built_in, built_in_tokens = connection.execute(
        refused.format("'$.guard'"), (str(Action.CONTEXT_REFUSED), since, before, GUARD)
    ).fetchone()
    external, external_tokens = connection.execute(
        refused.format("'$.by'"), (str(Action.AGENT_HOOK), since, before, BY_HOOK)
    ).fetchone()
    (served,) = connection.execute(
        "SELECT coalesce(sum(json_extract(detail_json, '$.stored')), 0) FROM journal"
        " WHERE action=? AND at>=? AND at<?",
        (str(Action.CONTEXT_REQUESTED), since, before),
    ).fetchone()
    return GuardSavings(
        int(built_in), int(built_in_tokens), int(external), int(external_tokens), int(served)
    )
