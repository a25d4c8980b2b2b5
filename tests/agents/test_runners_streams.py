"""Streams read line by line: real shapes, and any other shape."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.agents.runs.agent_process import LineReader
from cockpit.agents.streams.final_status import read_status
from cockpit.agents.streams.stream_events import (
    Finish,
    ToolStarted,
)
from cockpit.agents.streams.stream_formats import ClaudeStream, TextStream, open_stream


def line(body: Any) -> str:
    return json.dumps(body)


def test_what_a_helper_of_claude_codes_says_is_not_its_own_word() -> None:
    stream = ClaudeStream()
    block = {"type": "text", "text": "to my parent"}
    call = {"type": "tool_use", "id": "t", "name": "Read", "input": {}}
    body = {"type": "assistant", "parent_tool_use_id": "p", "message": {"content": [block, call]}}
    assert stream.feed(line(body)) == [ToolStarted("t", "Read", {})]


def test_a_command_tells_the_format_and_text_is_text_from_the_beginning() -> None:
    asks = ("claude", "-p", "--output-format", "stream-json")
    assert isinstance(open_stream("auto", asks), ClaudeStream)
    assert isinstance(open_stream("text", asks), TextStream)
    stream = open_stream("auto", ("claude", "-p"))
    told = [one for number in range(30) for one in stream.feed(f"line {number}")]
    assert len(told) == 30
    assert stream.close(1) is None
    whole = TextStream()
    whole.feed("a")
    assert whole.close(0) == Finish(True, "a")


NAMES = st.sampled_from(
    [
        *(
            "type", "subtype", "message", "content", "id", "name", "input", "usage", "result", "item",
        ),
        *("input_tokens", "modelUsage", "errors", "error", "event", "delta", "text", "changes"),
        *("exit_code", "is_error", "tool_use_id", "arguments", "path", "kind", "status"),
    ]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
TYPES = ["system", "assistant", "user", "result", "stream_event", "error"]


@settings(max_examples=examples(20), deadline=None)
@given(st.dictionaries(NAMES, JSON, max_size=5), st.sampled_from(TYPES))
def test_no_shape_of_a_line_breaks_a_stream(body: dict[str, Any], kind: str) -> None:
    for name in ("claude", "text", "auto"):
        stream = open_stream(name, ())
        stream.feed(json.dumps({**body, "type": kind}))
        stream.feed(json.dumps(body))
        stream.close(0)


@settings(max_examples=examples(15), deadline=None)
@given(st.binary(max_size=200), st.lists(st.integers(1, 20), max_size=20))
def test_lines_are_the_same_however_they_come(data: bytes, sizes: list[int]) -> None:
    cutter, found, rest = LineReader(), [], data
    for size in itertools.chain(sizes, [len(data) + 1]):
        found += cutter.feed(rest[:size])
        rest = rest[size:]
    found += cutter.end()
    whole = data.decode("utf-8", "replace") if data.isascii() else None
    expected = [one.removesuffix("\r") for one in (whole or "").split("\n")]
    if whole is not None:
        assert found == (expected[:-1] if whole.endswith("\n") or not whole else expected)


def test_a_line_that_is_too_long_is_passed_over_and_the_next_one_read() -> None:
    cutter = LineReader(longest=10)
    assert cutter.feed(b"short\n" + b"x" * 25) == ["short"]
    assert cutter.feed(b"x" * 25) == []
    assert cutter.feed(b"tail\nnext\n" + b"y" * 10) == [None, "next"]
    assert cutter.end() == ["y" * 10]
    assert LineReader(longest=3).feed(b"abcd\nabc\n") == [None, "abc"]


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("STATUS: done\nAll good.", ("done", "All good.")),
        ("**Status: BLOCKED**\nno spec", ("blocked", "no spec")),
        ("VERDICT: PASS\nAll good.", ("done", "VERDICT: PASS\nAll good.")),
        ("STATUS: nothing to do\nadd adds.", ("done", "NOTHING TO DO: add adds.")),
        ("I end as\n```\nSTATUS: done\n```", ("needs_answer", "I end as\n```\nSTATUS: done\n```")),
        ("> STATUS: done\nsays the task.", ("needs_answer", "> STATUS: done\nsays the task.")),
        ("```\nSTATUS: blocked\n```\nSTATUS: done", ("done", "```\nSTATUS: blocked\n```")),
        ("STATUS: done\nSTATUS: blocked", ("blocked", "")),
        ("", ("needs_answer", "")),
    ],
)
def test_a_status_is_a_line_of_its_own(words: str, read: tuple[str, str]) -> None:
    assert read_status(words) == read
