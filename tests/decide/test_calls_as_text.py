"""Calls that small models print as text."""

from __future__ import annotations

import json

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.decide.calls_as_text import read_calls_as_text

CALL = '{"name": "run", "arguments": {"command": "ls"}}'
FORMS = (
    "{}", "  {}\n", "```json\n{}\n```", "```\n{}\n```\n", "<tool_call>{}</tool_call>",
    "<tool_call>\n{}\n</tool_call>",
)  # fmt: skip
NO_CALLS = (
    "", "I call it now: " + CALL, CALL + " That is the call.", "```json\n" + CALL,
    "<tool_call>" + CALL + "```",
    "```json\n" + CALL + "</tool_call>",
    CALL.replace('"name"', '"tool"'), CALL.replace("}}", '}, "why": 1}'), CALL.replace('"ls"', "NaN"),
    CALL.replace('{"command": "ls"}', "[]"),
    "[" + CALL + "]", "{" * 100_000,
)  # fmt: skip


@settings(max_examples=examples(12))
@given(st.lists(st.sampled_from(FORMS), min_size=1, max_size=4))
def test_an_answer_of_nothing_but_calls_is_those_calls(forms: list[str]) -> None:
    calls = read_calls_as_text("\n".join(form.replace("{}", CALL) for form in forms))
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("run", {"command": "ls"})
    ] * len(forms)


def test_every_other_answer_stays_text() -> None:
    for text in NO_CALLS:
        assert read_calls_as_text(text) == [], text[:80]
