"""The single gateway: all context enters here. It previews a request and reads what was approved.

The gateway makes facts and stores nothing: the loop records requests, approvals and results. See
``docs/reference/loop.md``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask
from cockpit.observe.context_request import ContextRequest
from cockpit.observe.expand_globs import expand_item
from cockpit.observe.fan_out import (
    Job,
    JobOutcome,
    ObserveLimits,
    fan_out,
    run_jobs,
)
from cockpit.observe.knowledge.passage import KnowledgeSearch
from cockpit.observe.preview_cost import Preview, Source, band_for
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.rendered_cost import sum_costs
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sources.diff import DiffSource
from cockpit.observe.sources.docs import DOCS, KNOWLEDGE, NOTES
from cockpit.observe.sources.file import FileSource
from cockpit.observe.sources.gh_read import GhReadSource
from cockpit.observe.sources.github import IssueSource, PullRequestSource
from cockpit.observe.sources.log import LogSource
from cockpit.observe.sources.search import SearchSource
from cockpit.observe.sources.skill import SkillSource
from cockpit.observe.sources.stored import RecordSource
from cockpit.observe.sources.stored_records import StoredRecords
from cockpit.observe.sources.symbol import SymbolSource
from cockpit.observe.sources.tree import TreeSource
from cockpit.store.context.facts import Fact

T = TypeVar("T")

SOURCES: dict[str, Source] = {
    "file": FileSource(),
    "search": SearchSource(),
    "tree": TreeSource(),
    "symbol": SymbolSource(),
    "diff": DiffSource(),
    "log": LogSource(),
    "pr": PullRequestSource(),
    "issue": IssueSource(),
    "gh": GhReadSource(),
    "receipt": RecordSource(),
    "handoff": RecordSource(),
    "wip": RecordSource(),
    "note": NOTES,
    "docs": DOCS,
    "knowledge": KNOWLEDGE,
    "skill": SkillSource(),
}
"""The source of each kind of scope item."""

PER_SOURCE = {
    "search": 2,
    "symbol": 2,
    "diff": 4,
    "log": 4,
    "tree": 4,
    "pr": 4,
    "issue": 4,
    "gh": 4,
    "docs": 2,
    "note": 2,
    "knowledge": 2,
}
"""How many jobs of a source run at once; files have no quota."""


class Outcome(Struct, frozen=True):
    """The result of one item: how many facts and tokens (as a packet shows them), or the error."""

    item: ScopeItem
    facts: int
    tokens: int
    error: str = ""

    def body(self) -> dict[str, Any]:
        """Return the outcome as the journal's ``context.fetched`` lists it."""
        return {
            "item": str(self.item),
            "facts": self.facts,
            "tokens": self.tokens,
            "error": self.error,
        }


class Fetched(Struct, frozen=True):
    """The facts of the items, in the items' order, and an outcome for each item."""

    facts: tuple[Fact, ...]
    outcomes: tuple[Outcome, ...]


class ContextGateway(Struct, frozen=True):
    """Previews and reads requests in one project."""

    ground: ProjectSnapshot
    limits: ObserveLimits = ObserveLimits()

    @classmethod
    def of(
        cls,
        *,
        root: Path,
        rev: str | None = None,
        repo: str | None = None,
        limits: ObserveLimits | None = None,
        records: StoredRecords | None = None,
        skills: Mapping[str, Path] | None = None,
        knowledge: KnowledgeSearch | None = None,
    ) -> ContextGateway:
        """Create the gateway of the project at ``root``; ``records`` are those of the session.

        ``skills`` are the folders of skills by name, ``knowledge`` searches the project's index.
        Raises ``PathRefused``.
        """
        ground = ProjectSnapshot.at(
            root, rev=rev, repo=repo, records=records, skills=skills, knowledge=knowledge
        )
        return cls(ground, limits or ObserveLimits())

    async def preview(self, request: ContextRequest) -> tuple[Preview, ...]:
        """Estimate every item's tokens and band, or say why it cannot be read.

        A glob is estimated with all of its files. Content read for an estimate is discarded.
        """
        jobs = [
            Job(
                item.kind,
                str(item),
                partial(SOURCES[item.kind].preview, item, self.ground),
            )
            for item in request.scope[: self.limits.max_jobs]
        ]
        outcomes = await self._run(jobs)
        previews = [
            outcome.value or Preview(item, 0, band_for(item.kind), refused=self.why(outcome))
            for item, outcome in zip(request.scope, outcomes, strict=False)
        ]
        over_cap = request.scope[len(previews) :]
        over = f"more than {self.limits.max_jobs} items at once"
        previews += [Preview(item, 0, band_for(item.kind), refused=over) for item in over_cap]
        return tuple(previews)

    async def expand(self, items: Sequence[ScopeItem]) -> list[list[ScopeItem]]:
        """Expand each approved item to itself or to the files of its glob.

        An item that cannot be expanded stays as it is; reading it reports the error.
        """
        jobs = [
            Job(item.kind, str(item), partial(expand_item, item, self.ground)) for item in items
        ]
        outcomes = await self._run(jobs)
        return [outcome.value or [item] for item, outcome in zip(items, outcomes, strict=True)]

    async def read(
        self,
        items: Sequence[ScopeItem],
        settle: Callable[[int, JobOutcome[list[Fact]]], None],
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read approved, expanded items concurrently; ``settle`` is called as each one ends.

        ``now`` tells what each took, in seconds of a monotonic clock.
        When cancelled, it ends every running read before it returns.
        """
        await run_jobs(
            [
                Job(item.kind, str(item), partial(SOURCES[item.kind].fetch, item, self.ground))
                for item in items
            ],
            settle,
            limit=self.limits.max_concurrent,
            per_source=PER_SOURCE,
            timeout_s=self.limits.job_timeout_s,
            now=now,
        )

    async def fetch(
        self, request: ContextRequest, items: Sequence[ScopeItem] | None = None
    ) -> Fetched:
        """Expand and read the approved ``items`` of a request (None: all of its scope).

        For callers without a store. A failing item costs its own facts only. Facts past the cap of a
        wave are left out, and the outcome says so. A fact that two items name is returned once.
        """
        approved = tuple(request.scope if items is None else items)
        expanded = [
            (item, part)
            for item, parts in zip(approved, await self.expand(approved), strict=True)
            for part in parts
        ][: self.limits.max_jobs]
        ended: dict[int, JobOutcome[list[Fact]]] = {}
        await self.read([part for _, part in expanded], ended.__setitem__)
        facts: dict[str, Fact] = {}
        outcomes: dict[ScopeItem, Outcome] = {}
        for number, (item, part) in enumerate(expanded):
            all_facts = ended[number].value or []
            within_cap = all_facts[: max(0, self.limits.max_facts - len(facts))]
            facts.update({fact.fact_id: fact for fact in within_cap if fact.fact_id not in facts})
            error = "" if ended[number].status == "done" else self.why(ended[number])
            if len(within_cap) < len(all_facts):
                error = (
                    f"{len(all_facts) - len(within_cap)} facts are past the limit of"
                    f" {self.limits.max_facts}"
                )
            if error and part != item:
                error = f"{part}: {error}"
            before = outcomes.get(item, Outcome(item, 0, 0))
            tokens = sum_costs(within_cap)
            outcomes[item] = Outcome(
                item,
                before.facts + len(within_cap),
                before.tokens + tokens,
                "; ".join(filter(None, (before.error, error))),
            )
        return Fetched(tuple(facts.values()), tuple(outcomes.values()))

    def why(self, outcome: JobOutcome[T]) -> str:
        """Explain a failure, with secrets masked and without paths of this machine."""
        if outcome.status == "timed_out":
            return f"it took longer than {self.limits.job_timeout_s:.0f} s"
        if isinstance(outcome.error, CockpitError):
            return mask(str(outcome.error))
        return f"it failed unexpectedly ({type(outcome.error).__name__})"

    async def _run(self, jobs: Sequence[Job[T]]) -> list[JobOutcome[T]]:
        return await fan_out(
            jobs,
            limit=self.limits.max_concurrent,
            per_source=PER_SOURCE,
            timeout_s=self.limits.job_timeout_s,
        )
