"""The plan: what was approved and nothing else, in the rules' order, within quotas and caps."""

from __future__ import annotations

from collections import Counter

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.observe.job_planner import REFRESH, Candidate, plan_jobs
from cockpit.store.context.observation_jobs import JobRow
from cockpit.store.context.profile_model import Predicate, Rule, load_shipped

PLAIN = Rule("file", "file", Predicate(), 1_000, 0, 0, 0)


def rule(source: str, priority: int = 1_000, *, prefix: str = "", enabled: bool = True) -> Rule:
    return replace(
        PLAIN,
        rule_id=f"{source}{prefix}{priority}",
        source_type=source,
        predicate=Predicate(ref_prefix=prefix),
        priority_weight=priority,
        enabled=enabled,
    )


def named(item: str, job: str = "q-1", asked: str = "") -> Candidate:
    return Candidate(job, item.partition(":")[0], asked or item, item)


def items(rows: list[JobRow], status: str = "planned") -> list[str]:
    return [row.item for row in rows if row.status == status]


def test_jobs_run_by_the_priority_of_their_rule_and_then_as_they_were_named() -> None:
    wanted = [named("tree:src"), named("file:b.py"), named("file:a.py"), named("diff:a..b")]
    rows = plan_jobs(wanted, load_shipped().rules, max_jobs=10)
    assert items(rows) == ["diff:a..b", "file:b.py", "file:a.py", "tree:src"]
    assert [row.position for row in rows] == [1, 2, 3, 4]
    rules = [rule("file", 3_000, prefix="file:a")]
    assert items(plan_jobs(wanted, rules, max_jobs=10))[0] == "file:a.py"


CANDIDATES = st.lists(
    st.builds(
        lambda job, source, name, glob: Candidate(
            job, source, f"{source}:*" if glob else f"{source}:{name}", f"{source}:{name}"
        ),
        st.sampled_from(["q-1", "q-2", REFRESH]),
        st.sampled_from(["file", "search", "log"]),
        st.integers(0, 9),
        st.booleans(),
    ),
    max_size=40,
)


@pytest.mark.search
@settings(max_examples=examples(25), deadline=None)
@given(CANDIDATES, st.integers(1, 12), st.integers(0, 5), st.booleans())
def test_nothing_is_planned_that_nobody_named_and_everything_is_accounted_for(
    wanted: list[Candidate], cap: int, quota: int, off: bool
) -> None:
    rules = [rule("log", enabled=not off)]
    rows = plan_jobs(wanted, rules, max_jobs=cap, quotas={"search": quota})
    planned = [row for row in rows if row.status == "planned"]
    named_by = {(one.job, one.item) for one in wanted}
    assert {(row.job, row.item) for row in planned} <= named_by
    assert len({(row.job, row.item) for row in planned}) == len(planned) <= cap
    assert Counter(row.source_type for row in planned)["search"] <= quota
    assert not off or all(row.source_type != "log" for row in planned)
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    requested = {one.item for one in wanted if one.job != REFRESH}
    distinct = {pair for pair in named_by if pair[0] != REFRESH or pair[1] not in requested}
    assert sum(row.jobs for row in rows) == len(distinct)
    assert plan_jobs(wanted, rules, max_jobs=cap, quotas={"search": quota}) == rows
