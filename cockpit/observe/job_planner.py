"""The plan of a wave's fan-out: which jobs run, in which order, and why the others do not.

Candidates are what was approved and what is refreshed; nothing else is ever read. The profile's rules
say which sources count and how much, quotas and caps how many jobs there may be. Pure: the same
candidates under the same rules give the same plan. Source: RFC-003 §10.1 (steps 1 and 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from cockpit.store.context.observation_jobs import FACT_CAP, REFUSED, JobRow
from cockpit.store.context.profile_model import WEIGHT_ONE, Rule

SOURCE_DISABLED, SOURCE_QUOTA, JOB_CAP = "source_disabled", "source_quota", "job_cap"

REFRESH = "refresh"
"""The name of jobs that read again what was granted before."""

WORDS: Mapping[str, str] = MappingProxyType(
    {
        SOURCE_DISABLED: "the profile's attention rules have switched this source off",
        SOURCE_QUOTA: "past the most jobs of this source in one wave; ask for the rest later",
        JOB_CAP: "past the most jobs of one wave (MAX_OBSERVATION_JOBS_PER_WAVE)",
        FACT_CAP: "past the most facts of one wave (MAX_FACTS_PER_WAVE)",
    }
)
"""Why something was not read, for a model and a person."""

QUOTAS: Mapping[str, int] = MappingProxyType(
    {"search": 200, "symbol": 400, "diff": 400, "log": 200, "tree": 400, "pr": 50, "issue": 200}
)
"""Most jobs of a source in one wave; files have no quota but the cap."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that could run: ``item`` is read for the approved item ``asked``, in the name of ``job``."""

    job: str
    source: str
    asked: str
    item: str


def plan(
    candidates: Sequence[Candidate],
    rules: Sequence[Rule],
    *,
    max_jobs: int,
    quotas: Mapping[str, int] = QUOTAS,
) -> list[JobRow]:
    """The rows of the plan: what is named before what a glob means, by the priority of its rule, then
    as it came; then refusals.

    A source that no rule names has weight 1, as in Orient; one whose rules are all disabled is
    refused. What a request names twice is read once, and what a request names is not refreshed. A
    refused row stands for all jobs of one approved item and reason.
    """
    weights = [_weight(candidate, rules) for candidate in candidates]
    used: Counter[str] = Counter()
    jobs: list[JobRow] = []
    refused: dict[tuple[str, str, str, str], list[str]] = {}

    def rank(at: int) -> tuple[bool, int]:
        # Of a glob's many files some may be past the cap; what stands beside it is not pushed out.
        return candidates[at].item != candidates[at].asked, -(weights[at] or 0)

    for at in sorted(_once(candidates), key=rank):
        one = candidates[at]
        reason = _refusal(one, weights[at], used, quotas, len(jobs) >= max_jobs)
        if reason:
            refused.setdefault((one.job, one.source, one.asked, reason), []).append(one.item)
        else:
            used[one.source] += 1
            jobs.append(JobRow(len(jobs) + 1, one.job, one.source, one.asked, one.item))
    for (job, source, asked, reason), items in refused.items():
        place = len(jobs) + 1
        jobs.append(JobRow(place, job, source, asked, items[0], REFUSED, reason, len(items)))
    return jobs


def _once(candidates: Sequence[Candidate]) -> list[int]:
    """The indices of candidates that nothing else stands for."""
    by_name = {(one.job, one.item) for one in candidates if one.asked == one.item}
    requested = {one.item for one in candidates if one.job != REFRESH}
    taken: set[tuple[str, str]] = set()
    kept: list[int] = []
    for at, one in enumerate(candidates):
        name = (one.job, one.item)
        in_glob = one.asked != one.item and name in by_name
        if in_glob or name in taken or (one.job == REFRESH and one.item in requested):
            continue
        taken.add(name)
        kept.append(at)
    return kept


def _weight(candidate: Candidate, rules: Sequence[Rule]) -> int | None:
    """The priority of the rule for a candidate; None where its source is switched off."""
    named = [rule for rule in rules if rule.source_type == candidate.source]
    enabled = [rule for rule in named if rule.enabled]
    if not enabled:
        return None if named else WEIGHT_ONE
    fitting = [
        rule.priority_weight
        for rule in enabled
        if candidate.item.startswith(rule.predicate.ref_prefix)
    ]
    # A rule for some places of a source does not forbid to read the others: it only ranks them.
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
