"""Groups of tasks that can run at once: no two members touch the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cockpit.store.backlog.batch_groups import claim_paths, find_conflict

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
