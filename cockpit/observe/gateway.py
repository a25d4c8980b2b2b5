"""The single gateway: all context enters here. Propose (preview), then, when approved, fetch.

The gateway reads and makes facts; it stores nothing. Who asked, who approved and what came of it is
written by the loop. Source: RFC-09 (invariants 1 and 3), RFC-003 §10.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask
from cockpit.observe.context_request import ContextRequest
from cockpit.observe.expand_globs import expand
from cockpit.observe.fan_out import (
    JOB_TIMEOUT_S,
    MAX_CONCURRENT,
    MAX_FACTS,
    MAX_JOBS,
    Job,
    JobOutcome,
    fan_out,
    run_jobs,
)
from cockpit.observe.preview_cost import Preview, Source, band
from cockpit.observe.project_snapshot import Ground
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sources.diff import DiffSource
from cockpit.observe.sources.file import FileSource
from cockpit.observe.sources.github import IssueSource, PullRequestSource
from cockpit.observe.sources.log import LogSource
from cockpit.observe.sources.search import SearchSource
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
}
"""The sources by the kinds of scope items that they read."""

PER_SOURCE = {"search": 2, "symbol": 2, "diff": 4, "log": 4, "tree": 4, "pr": 4, "issue": 4}
"""How many jobs of a source run at once; files have no quota of their own."""

__all__ = ["PER_SOURCE", "SOURCES", "ContextGateway", "Fetched", "Limits", "Outcome", "Preview"]


class Limits(Protocol):
    """RFC-003 §10.1's caps, as the caller's settings hold them."""

    @property
    def max_jobs(self) -> int: ...

    @property
    def max_concurrent(self) -> int: ...

    @property
    def max_facts(self) -> int: ...

    @property
    def job_timeout_s(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Caps:
    """The caps by default."""

    max_jobs: int = MAX_JOBS
    max_concurrent: int = MAX_CONCURRENT
    max_facts: int = MAX_FACTS
    job_timeout_s: float = JOB_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one item: how many facts and tokens, or why nothing."""

    item: ScopeItem
    facts: int
    tokens: int
    error: str = ""

    def body(self) -> dict[str, Any]:
        """As the journal's ``context.fetched`` lists it."""
        return {
            "item": str(self.item),
            "facts": self.facts,
            "tokens": self.tokens,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Fetched:
    """The facts of the items, in the items' order, and an outcome for each item."""

    facts: tuple[Fact, ...]
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class ContextGateway:
    """Previews and fetches requests on one ground."""

    ground: Ground
    limits: Limits = Caps()

    @classmethod
    def of(
        cls,
        *,
        root: Path,
        rev: str | None = None,
        repo: str | None = None,
        limits: Limits | None = None,
    ) -> ContextGateway:
        """The gateway of the project at ``root``. Raises ``PathRefused``."""
        return cls(Ground.at(root, rev=rev, repo=repo), limits or Caps())

    async def preview(self, request: ContextRequest) -> tuple[Preview, ...]:
        """Every item with its estimated tokens and band, or the reason why it cannot be read.

        A glob is estimated with all of its files. Nothing that is read for an estimate is kept.
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
            outcome.value or Preview(item, 0, band(item.kind), refused=self.why(outcome))
            for item, outcome in zip(request.scope, outcomes, strict=False)
        ]
        left = request.scope[len(previews) :]
        over = f"more than {self.limits.max_jobs} items at once"
        previews += [Preview(item, 0, band(item.kind), refused=over) for item in left]
        return tuple(previews)

    async def expand(self, items: Sequence[ScopeItem]) -> list[list[ScopeItem]]:
        """What each approved item means: itself, or the files of a glob.

        An item that cannot be expanded stands for itself; reading it says why.
        """
        jobs = [Job(item.kind, str(item), partial(expand, item, self.ground)) for item in items]
        outcomes = await self._run(jobs)
        return [outcome.value or [item] for item, outcome in zip(items, outcomes, strict=True)]

    async def read(
        self,
        items: Sequence[ScopeItem],
        settle: Callable[[int, JobOutcome[list[Fact]]], None],
    ) -> None:
        """Read approved, expanded items, many at once; ``settle`` hears of each as it ends.

        Cancelling ends all that runs before it returns.
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
        )

    async def fetch(
        self, request: ContextRequest, items: Sequence[ScopeItem] | None = None
    ) -> Fetched:
        """Read the approved ``items`` of a request (None: all of its scope), for callers that keep
        nothing: :meth:`expand` and :meth:`read` in one.

        One failing item costs its own facts only. Facts past the cap of a wave are left out and
        said so. The same fact named by two items comes once.
        """
        asked = tuple(request.scope if items is None else items)
        meant = [
            (item, one)
            for item, each in zip(asked, await self.expand(asked), strict=True)
            for one in each
        ][: self.limits.max_jobs]
        ended: dict[int, JobOutcome[list[Fact]]] = {}
        await self.read([one for _, one in meant], ended.__setitem__)
        facts: dict[str, Fact] = {}
        outcomes: dict[ScopeItem, Outcome] = {}
        for number, (item, one) in enumerate(meant):
            made = ended[number].value or []
            kept = made[: max(0, self.limits.max_facts - len(facts))]
            facts.update({fact.fact_id: fact for fact in kept if fact.fact_id not in facts})
            error = "" if ended[number].status == "done" else self.why(ended[number])
            if len(kept) < len(made):
                error = (
                    f"{len(made) - len(kept)} facts are past the limit of {self.limits.max_facts}"
                )
            if error and one != item:
                error = f"{one}: {error}"
            before = outcomes.get(item, Outcome(item, 0, 0))
            tokens = sum(fact.full.tokens for fact in kept)
            outcomes[item] = Outcome(
                item,
                before.facts + len(kept),
                before.tokens + tokens,
                "; ".join(filter(None, (before.error, error))),
            )
        return Fetched(tuple(facts.values()), tuple(outcomes.values()))

    def why(self, outcome: JobOutcome[T]) -> str:
        """The reason of a failure in words, secrets masked, nothing of this machine's paths."""
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
