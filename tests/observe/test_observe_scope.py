"""Scope items and requests: what models write, and the words they get when it is wrong."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.observe.context_request import MAX_ITEMS, RequestRefused, parse_request
from cockpit.observe.scope_items import KINDS, ScopeItem, ScopeRefused, parse_item


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("file:src/a.py", ScopeItem("file", "src/a.py")),
        ("file:./src//a.py", ScopeItem("file", "src/a.py")),
        ("file:src/a.py:10-40", ScopeItem("file", "src/a.py", (10, 40))),
        ("file:src/a.py:7", ScopeItem("file", "src/a.py", (7, 7))),
        ("file:a b.py @outline", ScopeItem("file", "a b.py", level="outline")),
        ('file:"a\\nb":1-2 @reference', ScopeItem("file", "a\nb", (1, 2), level="reference")),
        ('file:"a:1"', ScopeItem("file", "a:1")),
        ('diff:main in "a⟦U+000A⟧b.py"', ScopeItem("diff", "main", glob="a\nb.py")),
        ("search:def \\w+\\(", ScopeItem("search", "def \\w+\\(")),
        ("search:load in src/**/*.py", ScopeItem("search", "load", glob="src/**/*.py")),
        ("search:x in y in *.py", ScopeItem("search", "x in y", glob="*.py")),
        ("search:error in loading", ScopeItem("search", "error in loading")),
        ('search:x in "a b"', ScopeItem("search", "x", glob="a b")),
        ("search:x in src/ @outline", ScopeItem("search", "x", glob="src/", level="outline")),
        ("tree:", ScopeItem("tree", ".")),
        ("symbol:Config.load()", ScopeItem("symbol", "Config.load")),
        ("diff:main..HEAD", ScopeItem("diff", "main..HEAD")),
        ("diff:v1.0...HEAD~2 in src/a.py", ScopeItem("diff", "v1.0...HEAD~2", glob="src/a.py")),
        ("log:feature/x@{upstream}", ScopeItem("log", "feature/x@{upstream}")),
        ("pr:#24", ScopeItem("pr", "24")),
    ],
)
def test_items_are_read(text: str, item: ScopeItem) -> None:
    assert parse_item(text) == item
    assert parse_item(str(item)) == item


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "file:src/app.py"),
        ("src/a.py", "file:src/app.py"),
        ("skill:../review", "names no skill"),
        ("receipt:3", "its wave and its number, like receipt:3.1"),
        ("handoff:S-1", "Write one like T-42"),
        ("note:two\nlines", "write a few words"),
        ("url:https://example.com", "not available in this version"),
        ("file:", "names nothing"),
        ("file:src/", "tree:src"),
        ("file:a.py:0-3", "count from 1"),
        ("file:a.py:10-end", ":10-40"),
        ('file:"open', "JSON"),
        ("file:a\0b", "NUL"),
        ("file:a @summary", "@outline"),
        ("search:a\nb", "single lines"),
        ("symbol:a;b", "not a name"),
        ("diff:--output=/tmp/x", "not a range"),
        ("diff:a..-b", "not a range"),
        ("diff:a..b..c", "not a range"),
        ("diff:ext::sh -c x", "not a range"),
        ("diff:$(id)", "not a range"),
        ("log:@{-1}", "not a range"),
        ("pr:-1", "not a number"),
        ("pr:٢٤", "not a number"),
        ("issue:0", "not a number"),
        ("file:" + "x" * 3000, "too long"),
    ],
)
def test_errors_say_what_to_write(text: str, words: str) -> None:
    with pytest.raises(ScopeRefused) as refused:
        parse_item(text)
    assert words in str(refused.value)


PIECES = (
    "src",
    "a.py",
    ":",
    "1",
    "-",
    "2",
    " in ",
    "*",
    "**",
    " @full",
    " @outline",
    '"',
    "\\",
    "/",
    " ",
)
piece = st.sampled_from(PIECES) | st.text(max_size=4)
texts = st.lists(piece, max_size=8).map("".join)
levels = st.sampled_from(["full", "outline", "reference"])
spans = st.tuples(st.integers(1, 10**6), st.integers(0, 1000)).map(lambda s: (s[0], s[0] + s[1]))


@pytest.mark.search
@settings(max_examples=examples(25))
@given(st.sampled_from(KINDS), texts)
def test_what_is_read_is_written_and_read_again(kind: str, text: str) -> None:
    try:
        item = parse_item(f"{kind}:{text}")
    except ScopeRefused:
        return
    assert parse_item(str(item)) == item


@pytest.mark.search
@settings(max_examples=examples(25))
@given(texts, st.none() | spans, levels)
def test_every_path_can_be_written(path: str, lines: tuple[int, int] | None, level: str) -> None:
    if path and "\0" not in path and path != "**":
        item = ScopeItem("diff", "a..b", glob=path, level=level)
        assert parse_item(str(item)) == item
    name = str(PurePosixPath(path))
    if not path or "\0" in path or name.endswith("/"):
        return
    item = ScopeItem("file", name, lines, level=level)
    assert parse_item(str(item)) == item
    assert str(item).isprintable()


GOOD = {"purpose": "why", "question": "what?", "scope": ["file:a.py"]}


def test_a_request_is_read() -> None:
    request = parse_request(
        {**GOOD, "scope": ["file:a.py", "file:./a.py", "pr:24"], "escalation": " ask "}, rev="abc"
    )
    assert [str(item) for item in request.scope] == ["file:a.py", "pr:24"]
    assert (request.purpose, request.escalation, request.rev) == ("why", "ask", "abc")
    assert parse_request(GOOD).escalation == ""


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"purpose": "  "}, "purpose"),
        ({"purpose": 3}, "purpose"),
        ({"question": ["x"]}, "question"),
        ({"scope": []}, "scope"),
        ({"scope": "file:a.py"}, "scope"),
        ({"scope": ["file:a.py", "nonsense"]}, "scope[1]"),
        ({"scope": ["file:a.py"] * (MAX_ITEMS + 1)}, "scope"),
        ({"escalation": 5}, "escalation"),
        ({"purpose": "x" * 5000}, "purpose"),
        ({"reason": "x"}, "reason"),
    ],
)
def test_a_faulty_request_is_refused_by_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        parse_request({**GOOD, **change})
    assert field in str(refused.value)
