"""Groups of tasks that can run at once: no two members touch the same."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.store.backlog.batch_groups import claim_paths, find_conflict, group_tasks

NAMES = st.sampled_from(["a", "b", "c"])
CLAIMS = st.lists(st.lists(NAMES, max_size=3).map("/".join), max_size=3)


def inside(one: str, other: str) -> bool:
    return not other or one == other or one.startswith(f"{other}/")


def test_a_pattern_claims_the_directory_before_its_first_wildcard() -> None:
    assert claim_paths(["src/*.py", "docs/a[1].md", "./lib/x.py", "win\\dir\\f"], ["app/"]) == (
        "app",
        "docs",
        "lib/x.py",
        "src",
        "win/dir/f",
    )


def test_the_root_meets_everything() -> None:
    assert claim_paths(["."], ["*.py"]) == ("",)
    assert find_conflict(("src/a.py",), ("",)) == "src/a.py"
    assert find_conflict(("src/a",), ("src/ab",)) is None


@given(CLAIMS, CLAIMS)
def test_claims_meet_where_one_is_inside_the_other(ours: list[str], theirs: list[str]) -> None:
    meet = any(inside(one, other) or inside(other, one) for one in ours for other in theirs)
    assert (find_conflict(ours, theirs) is not None) == meet


@pytest.mark.search
@settings(max_examples=examples(25), deadline=None)
@given(st.lists(CLAIMS, max_size=8), st.lists(CLAIMS, max_size=2))
def test_no_two_of_a_group_meet_and_no_group_is_skipped(
    claims: list[list[str]], busy: list[list[str]]
) -> None:
    ready = [(f"T-{number}", one) for number, one in enumerate(claims)]
    running = [(f"R-{number}", one) for number, one in enumerate(busy)]
    groups = group_tasks(ready, running, {})
    held = {**dict(ready), **dict(running)}
    members = [(task, group) for task, group in groups.items()] + [(task, 1) for task, _ in running]
    for place, (task, group) in enumerate(members):
        for other, at in members[place + 1 :]:
            if group == at and not (task.startswith("R") and other.startswith("R")):
                assert find_conflict(held[task], held[other]) is None
    # Each is in the first group that has room: something holds it out of every one before.
    for place, (task, group) in enumerate(list(groups.items())):
        for before in range(1, group):
            earlier = [one for one, at in list(groups.items())[:place] if at == before]
            earlier += [one for one, _ in running] if before == 1 else []
            assert any(find_conflict(held[task], held[other]) is not None for other in earlier)
