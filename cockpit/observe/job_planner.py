"""The plan of a wave's fan-out: which jobs run, in which order, and why others do not.

Candidates are the approved items and the items to refresh; nothing else is ever read. The profile's
rules rank or disable sources; quotas and caps limit the number of jobs. Pure: the same candidates under
the same rules give the same plan. See ``docs/reference/loop.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from cockpit.store.context.observation_jobs import FACT_CAP, REFUSED, JobRow
from cockpit.store.context.profile_model import WEIGHT_ONE, Rule

SOURCE_DISABLED, SOURCE_QUOTA, JOB_CAP = "source_disabled", "source_quota", "job_cap"
RULE_QUOTA = "rule_quota"

REFRESH = "refresh"
"""The job name of items that are read again because their file changed."""

REASON_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        SOURCE_DISABLED: "the profile's attention rules have switched this source off",
        SOURCE_QUOTA: "past the most jobs of this source in one wave; ask for the rest later",
        RULE_QUOTA: "past the most jobs that the attention rule adds to one wave (its quota)",
        JOB_CAP: "past the most jobs of one wave (MAX_OBSERVATION_JOBS_PER_WAVE)",
        FACT_CAP: "past the most facts of one wave (MAX_FACTS_PER_WAVE)",
    }
)
"""Why an item was not read, for models and people."""

QUOTAS: Mapping[str, int] = MappingProxyType(
    {
        "search": 200,
        "symbol": 400,
        "diff": 400,
        "log": 200,
        "tree": 400,
        "pr": 50,
        "issue": 200,
        "gh": 50,
    }
)
"""The most jobs of a source in one wave; files have no quota but the cap."""


class Candidate(Struct, frozen=True):
    """A job that could run: ``job`` reads ``item`` for the approved item ``approved``."""

    job: str
    source: str
    approved: str
    item: str


def plan_jobs(
    candidates: Sequence[Candidate],
    rules: Sequence[Rule],
    *,
    max_jobs: int,
    quotas: Mapping[str, int] = QUOTAS,
    rule_quotas: Mapping[str, int] = MappingProxyType({}),
) -> list[JobRow]:
    """Plan the jobs of a wave: rows to run, then one refused row per approved item and reason.

    Items that a request names come before the files of a glob, then by their rule's priority, then in
    the order of ``candidates``. A source without a rule has weight 1, as in Orient; a source whose
    rules are all disabled is refused. An item is read once, and not refreshed if a request names it.

    ``rule_quotas`` names the jobs of attention rules that fetch, each with the most items that it reads.
    They come last, and leave out items that another job reads.
    """
    weights = [_weight(candidate, rules) for candidate in candidates]
    used: Counter[str] = Counter()
    used_by_rule: Counter[str] = Counter()
    jobs: list[JobRow] = []
    refused: dict[tuple[str, str, str, str], list[str]] = {}

    def rank(at: int) -> tuple[bool, bool, int]:
        # A glob's many files may pass the cap; they must not push out items named beside it, and
        # what a rule adds must not push out anything that was asked for.
        candidate = candidates[at]
        by_rule = candidate.job in rule_quotas
        return by_rule, candidate.item != candidate.approved, -(weights[at] or 0)

    for at in sorted(_distinct(candidates, rule_quotas), key=rank):
        candidate = candidates[at]
        reason = _refusal(candidate, weights[at], used, quotas, len(jobs) >= max_jobs)
        if not reason and used_by_rule[candidate.job] >= rule_quotas.get(candidate.job, max_jobs):
            reason = RULE_QUOTA
        if reason:
            refused.setdefault(
                (candidate.job, candidate.source, candidate.approved, reason), []
            ).append(candidate.item)
        else:
            used[candidate.source] += 1
            used_by_rule[candidate.job] += 1
            jobs.append(
                JobRow(
                    len(jobs) + 1,
                    candidate.job,
                    candidate.source,
                    candidate.approved,
                    candidate.item,
                )
            )
    for (job, source, approved, reason), items in refused.items():
        place = len(jobs) + 1
        jobs.append(JobRow(place, job, source, approved, items[0], REFUSED, reason, len(items)))
    return jobs


def _distinct(candidates: Sequence[Candidate], by_rule: Container[str]) -> list[int]:
    """The indices of candidates that no other candidate covers."""
    by_name = {
        (candidate.job, candidate.item)
        for candidate in candidates
        if candidate.approved == candidate.item
    }
    for_agent = [candidate for candidate in candidates if candidate.job not in by_rule]
    requested = {candidate.item for candidate in for_agent if candidate.job != REFRESH}
    taken = {candidate.item for candidate in for_agent}
    covered: set[tuple[str, str]] = set()
    indices: list[int] = []
    for at, candidate in enumerate(candidates):
        name = (candidate.job, candidate.item)
        in_glob = candidate.approved != candidate.item and name in by_name
        if in_glob or name in covered or (candidate.job == REFRESH and candidate.item in requested):
            continue
        if candidate.job in by_rule:
            if candidate.item in taken:
                continue
            taken.add(candidate.item)
        covered.add(name)
        indices.append(at)
    return indices


def _weight(candidate: Candidate, rules: Sequence[Rule]) -> int | None:
    """The priority of a candidate's rule; None where its source is disabled."""
    named = [rule for rule in rules if rule.source_type == candidate.source]
    enabled = [rule for rule in named if rule.enabled]
    if not enabled:
        return None if named else WEIGHT_ONE
    fitting = [
        rule.priority_weight
        for rule in enabled
        if candidate.item.startswith(rule.predicate.ref_prefix)
    ]
    # A rule for some paths of a source only ranks them; it does not forbid the others.
    return max(fitting, default=0)


def _refusal(
    candidate: Candidate,
    weight: int | None,
    used: Counter[str],
    quotas: Mapping[str, int],
    full: bool,
) -> str:
    if weight is None:
        return SOURCE_DISABLED
    if candidate.source in quotas and used[candidate.source] >= quotas[candidate.source]:
        return SOURCE_QUOTA
    return JOB_CAP if full else ""
