"""Reading a model's calls: what is right passes, what is wrong is told precisely."""

from __future__ import annotations

import json

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.act.model_tools import ACTIONS, TOOLS, MalformedCall, parse_call

pytestmark = pytest.mark.slow

GOOD = {
    "request_context": {"purpose": "p", "question": "q", "scope": ["file:a.py"]},
    "write_file": {"path": "a.py", "content": ""},
    "edit_file": {"path": "a.py", "old": "x", "new": ""},
    "run": {"argv": ["pytest", "-q"], "reason": "r"},
    "github": {"command": "gh pr comment 24 --body hi"},
    "git_commit": {"message": "m", "paths": ["a.py"]},
    "create_skill": {"name": "tea", "description": "Brew tea.", "body": "# Tea"},
    "resume_action": {"call": "3.1"},
    "propose_tool": {
        "name": "parse_pcab", "purpose": "p", "example_input": "i", "expected_output": "o", "reason": "r",
    },
    "propose_profile_change": {"base_profile_version": 1, "effective_waves": 3, "reason": "r"},
    "change_task_type": {"task_type": "implement", "reason": "r"},
    "propose_plan": {"tasks": [{"title": "t", "task_type": "bug", "acceptance": ["a"]}]},
    "update_wip": {"next_step": "n"},
    "finish": {"status": "done", "summary": "s"},
}  # fmt: skip


def test_the_tools_offered_are_the_tools_read() -> None:
    assert {tool.name for tool in TOOLS} == set(GOOD)
    assert set(ACTIONS) < set(GOOD)
    for tool in TOOLS:
        given = GOOD[tool.name]
        assert set(tool.parameters["required"]) <= set(given) <= set(tool.parameters["properties"])
        call = parse_call(tool.name, json.dumps(given))
        assert (call.name, call.arguments) == (tool.name, given)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("delete_file", "{}", "There is no tool 'delete_file'. The nearest is edit_file: "),
        ("write_file", "{", "not valid JSON: Expecting property name"),
        ("write_file", '{"path": "a"\n "content": ""}', "at line 2, column 2"),
        ("write_file", '{"path":"a"}', "needs 'content'; you gave path"),
        ("write_file", '{"path":"a","content":"","mode":1}', "no field 'mode'. It takes: path,"),
        ("write_file", '{"path":1,"content":""}', "Expected `str`, got `int` - at `$.path`"),
        ("write_file", '{"path":"a","path":"b","content":""}', "'path' is given twice"),
        ("write_file", '{"path":"a","content":"\\ud800"}', "surrogate"),
        ("edit_file", '{"path":"a","old":"","new":"x"}', "'old' is empty"),
        ("edit_file", '{"path":"a","old":"x","new":"x"}', "the same"),
        ("run", '{"reason":"r"}', "exactly one of the two"),
        ("run", '{"reason":"r","argv":["a"],"timeout_s":601}', "1 to 600 seconds, not 601"),
        ("run", '{"reason":"r","argv":["a"],"timeout_s":NaN}', "NaN is not a number"),
        ("run", '{"reason":"r","argv":["a","\\u0000"]}', "NUL"),
        ("run", '{"reason":"r","command":"a && b"}', "cockpit runs argv, not a shell"),
        ("finish", '{"status":"maybe","summary":""}', "Invalid enum value 'maybe'"),
        ("write_file", '{"a":' * 100_000, "nested too deeply"),
        ("write_file", " " * 2_000_001, "longer than"),
    ],
)
def test_wrong_calls_are_told_what_is_wrong(name: str, arguments: str, words: str) -> None:
    with pytest.raises(MalformedCall) as caught:
        parse_call(name, arguments)
    assert words in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.search
@settings(max_examples=examples(25))
@given(st.sampled_from(sorted(GOOD)), st.data())
def test_any_value_in_any_field_is_read_or_refused(name: str, data: st.DataObject) -> None:
    arguments = {
        field: data.draw(st.just(value) | json_values, label=field)
        for field, value in GOOD[name].items()
    }
    try:
        call = parse_call(name, json.dumps(arguments))
    except MalformedCall:
        return
    assert call.name == name
