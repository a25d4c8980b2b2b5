from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from loop.intake.repositories import Repo

from cockpit.core.parse_diff import parse_diff
from cockpit.decide.offline.rules.changed_definitions import narrower, signature

KINDS = ["a", "b", "", "-- x", "++ y", "diff --git a/q b/q", "@@ -1 +1 @@", " c", "--- a/f"]
LINES = st.lists(st.sampled_from(KINDS), max_size=30)


def test_what_git_says_of_odd_files(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    names = ["tab\tname", "new\nline", 'quo"te', "é🙂", "a b/c d", "back\\slash"]
    repo.commit("a", {"gone.py": "x = 1\n", "old name.py": "y\n" * 20, "mode.sh": "1\n"})
    (repo.root / "mode.sh").chmod(0o755)
    contents: dict[str, str | bytes | None] = dict.fromkeys(names, "1\n")
    moved: dict[str, str | bytes | None] = {"old name.py": None, "new name.py": "y\n" * 20}
    repo.commit("b", {**contents, **moved, "gone.py": None, "b b/b": b"\0\1", "empty": ""})
    for quoting in ("true", "false"):
        text = repo.git("-c", f"core.quotePath={quoting}", "diff", "-M", "HEAD~1", "HEAD")
        found = {one.path: one for one in parse_diff(text)}
        assert set(names) | {"gone.py", "new name.py", "mode.sh", "b b/b", "empty"} == set(found)
        assert found["gone.py"].status == "removed"
        assert (found["new name.py"].status, found["new name.py"].old_path) == (
            "renamed",
            "old name.py",
        )
        assert found["mode.sh"].mode == ("100644", "100755")
        assert found["b b/b"].binary
        assert (found["empty"].status, found["empty"].hunks) == ("added", ())
        assert found["new\nline"].added[0].text == "1"


@pytest.mark.search
@settings(max_examples=examples(25))
@given(st.text(max_size=400), LINES)
def test_nothing_that_is_not_a_diff_raises(noise: str, lines: list[str]) -> None:
    parse_diff(noise)
    parse_diff("diff --git " + noise + "\n".join(lines))
    parse_diff("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n" + "\n".join(lines))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("def f(a):", "def f(a, b=1):", ""),
        ("def f(a):", "def f(a, b):", "now needs `b`"),
        ("def f(a, b):", "def f(a):", "no longer takes `b`"),
        ("def f(a, b):", "def f(b, a):", "takes its arguments in another order"),
        ("def f(a, b):", "def f(a, *rest, **more):", ""),
        ("def f(self, a):", "def f(self, a, *, c):", "now needs `c`"),
        ("def f(a=1):", "def f(a):", "now needs `a`"),
        ("def f(a: int) -> int:", "def f(a: str) -> str:", ""),
        ("async def f(a, /):", "async def f(b, /):", "now needs `b`"),
    ],
)
def test_how_a_signature_got_narrower(old: str, new: str, said: str) -> None:
    before, after = signature(old), signature(new)
    assert before is not None
    assert after is not None
    assert narrower(before, after) == said


@pytest.mark.search
@settings(max_examples=examples(25))
@given(st.data())
def test_numbers_and_text_are_those_of_the_files(data: st.DataObject) -> None:
    lines = st.lists(st.sampled_from(KINDS), min_size=1, max_size=12)
    old, new = data.draw(lines), data.draw(lines)
    text = "\n".join(difflib.unified_diff(old, new, "a/f x", "b/f x", lineterm=""))
    if not text:
        return
    (one,) = parse_diff(f"diff --git a/f x b/f x\n{text}\n")
    assert one.path == "f x"
    for line in one.lines():
        assert (old if line.sign == "-" else new)[line.number - 1] == line.text
    assert len(one.added) - len(one.removed) == len(new) - len(old)


def test_a_hunk_that_is_cut_keeps_what_is_there() -> None:
    text = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@ def x\n a\n+b\n[Diff truncated"
    (one,) = parse_diff(text)
    kept = [(line.sign, line.number, line.text) for line in one.lines()]
    assert kept == [(" ", 1, "a"), ("+", 2, "b")]
    assert one.hunks[0].heading == "def x"
