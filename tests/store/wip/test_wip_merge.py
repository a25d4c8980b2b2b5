"""Merging work in progress: in any grouping, once or twice, and nothing of either side is changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.store.backlog.wip import (
    KEYS,
    MOST_DECISIONS,
    MOST_ERRORS,
    WipInvalid,
    merge,
    validate,
)

pytestmark = [pytest.mark.slow, pytest.mark.search]
SOME = settings(max_examples=examples(25))

WORDS = st.text(max_size=12)
SCALARS = st.one_of(st.integers(-5, 5), st.booleans(), WORDS)


def entries(name: str, more: str) -> st.SearchStrategy[Any]:
    entry = st.fixed_dictionaries({name: WORDS}, optional={more: WORDS})
    return st.lists(WORDS | entry, max_size=4)


PARTS: dict[str, st.SearchStrategy[Any]] = {
    "phase": WORDS,
    "files_modified": st.lists(st.text(min_size=1, max_size=6), max_size=5),
    "uncommitted_changes": st.booleans(),
    "last_commit": WORDS,
    "decisions": entries("decision", "reason"),
    "test_results": st.dictionaries(
        st.sampled_from(["ran", "passed", "failed", "failing_test"]), SCALARS
    ),
    "errors": entries("message", "file"),
    "context": WORDS,
    "next_step": WORDS,
}
PATCHES = st.fixed_dictionaries({}, optional=PARTS).map(validate)


@SOME
@given(PATCHES, PATCHES)
def test_merging_twice_is_merging_once(old: dict[str, Any], new: dict[str, Any]) -> None:
    once = merge(old, new)
    assert merge(once, new) == once


@SOME
@given(PATCHES, PATCHES, PATCHES)
def test_any_patches_may_be_grouped_in_any_way(one, two, three) -> None:
    assert merge(merge(one, two), three) == merge(one, merge(two, three))


@SOME
@given(PATCHES, PATCHES)
def test_nothing_that_is_merged_is_changed_and_nothing_of_it_is_lost(old, new) -> None:
    before = copy.deepcopy((old, new))
    merged = merge(old, new)
    assert (old, new) == before
    for side in (old, new):
        assert set(side.get("files_modified", [])) <= set(merged.get("files_modified", []))
        for key in ("decisions", "errors"):
            assert all(entry in merged[key] for entry in side.get(key, []))
    assert merged.get("files_modified", []) == sorted(set(merged.get("files_modified", [])))
    for key in ("phase", "context", "next_step", "last_commit", "uncommitted_changes"):
        assert merged.get(key) == new.get(key, old.get(key))


@pytest.mark.parametrize(
    ("key", "word", "most"),
    [("decisions", "decision", MOST_DECISIONS), ("errors", "message", MOST_ERRORS)],
)
def test_the_newest_are_kept_and_a_repeat_is_the_newest_again(key, word, most) -> None:
    entries = [{word: str(number)} for number in range(most + 7)]
    merged = merge({key: entries[:-7]}, {key: entries[-7:]})
    assert merged[key] == entries[7:]
    assert merge(merged, {key: [entries[7]]})[key] == [*entries[8:], entries[7]]
    assert merge(merged, {key: entries}) == merge(merge(merged, {key: entries}), {key: entries})


def test_an_object_merges_by_key_and_a_null_says_nothing() -> None:
    old = validate({"test_results": {"passed": 1, "failing_test": "a"}, "phase": "testing"})
    new = validate({"test_results": {"passed": 2, "failing_test": None}, "phase": None})
    assert merge(old, new) == {
        "test_results": {"passed": 2, "failing_test": "a"},
        "phase": "testing",
    }
    assert merge(old, {"phase": None, "test_results": {"failing_test": None}}) == old


def test_the_seed_s_own_structure_goes_through_as_it_is() -> None:
    seed = {
        "phase": "testing",
        "files_modified": ["src/auth.ts", "src/types.ts"],
        "uncommitted_changes": True,
        "last_commit": "a1b2c3d",
        "decisions": [{"decision": "JWT over sessions", "reason": "Stateless, scales better"}],
        "test_results": {
            "ran": True,
            "passed": 12,
            "failed": 1,
            "failing_test": "auth.test.ts:validateToken expired",
        },
        "errors": [{"type": "type_error", "file": "src/auth.ts:42", "message": "..."}],
        "context": "Implementing auth hook for story S-12",
        "next_step": "Fix failing test - token expiry edge case",
    }
    assert validate(seed) == seed
    assert tuple(seed) == KEYS


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ([], "JSON object"),
        ({"stage": "testing"}, "has no stage; it has phase, files_modified"),
        ({"files_modified": "a.py"}, "Expected `array | null`"),
        ({"decisions": [{"reason": "why"}]}, "needs a text 'decision'"),
        ({"errors": [["a"]]}, "errors"),
        ({"phase": "x" * 8_001}, "length <= 8000"),
        ({"files_modified": [f"{number}/{'x' * 90}" for number in range(4_000)]}, "256,000"),
    ],
)
def test_what_is_no_patch_is_refused_in_words(patch: Any, words: str) -> None:
    with pytest.raises(WipInvalid) as refused:
        validate(patch)
    assert words in str(refused.value)


def test_plain_words_become_entries_and_paths_are_written_one_way() -> None:
    assert validate({"decisions": ["JWT"], "errors": ["it broke"]}) == {
        "decisions": [{"decision": "JWT"}],
        "errors": [{"message": "it broke"}],
    }
    assert validate({"files_modified": ["./a.py", "a.py", "././b"]}) == {
        "files_modified": ["a.py", "b"]
    }
