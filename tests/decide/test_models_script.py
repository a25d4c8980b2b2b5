from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from prompts import EXCHANGE, PLAIN, fact, text_in

from cockpit.decide.model import (
    Done,
    ModelError,
    ModelEvent,
    Prompt,
    PromptMessage,
    Retrying,
    TextDelta,
    ToolCall,
)
from cockpit.decide.offline.script_model import ScriptModel


async def play(
    path: Path, text: str, prompt: Prompt = PLAIN, waits: list[float] | None = None
) -> list[ModelEvent]:
    path.write_text(text, encoding="utf-8")

    async def note(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    return [event async for event in ScriptModel(path, sleep=note).stream(prompt)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scenario.toml"


async def test_a_turn_is_text_in_words_then_calls_then_the_end(path: Path) -> None:
    waits: list[float] = []
    events = await play(
        path,
        """
        pace = 0.5
        [[turn]]
        text = "I need  two files.\\n"
        [[turn.call]]
        name = "request_context"
        arguments = { purpose = "ü", scope = ["file:a.py"] }
        [[turn.call]]
        name = "note"
        raw_arguments = '{"a": ['
        """,
        replace(PLAIN, wave=3),
        waits,
    )
    assert [e.text for e in events if isinstance(e, TextDelta)] == [
        "I", " need", "  two", " files.", "\n",
    ]  # fmt: skip
    assert waits == [0.5] * 4
    assert [e for e in events if isinstance(e, ToolCall)] == [
        ToolCall("call-3-1", "request_context", '{"purpose": "ü", "scope": ["file:a.py"]}'),
        ToolCall("call-3-2", "note", '{"a": ['),
    ]
    done = events[-1]
    assert isinstance(done, Done)
    assert done.stop == "tool"
    assert done.usage.cost_usd == 0.0
    assert done.usage.input_tokens == (len("You steer.") + len("Review the change.")) // 4


STEPS = """
[[turn]]
text = "start"
[[turn]]
when = { called = ["request_context"] }
text = "have read"
[[turn]]
when = { contains = ["keep the OLD name"] }
text = "I keep it"
[[turn]]
when = { facts = ["^receipt:"], not_contains = ["denied"] }
text = "finished"
"""


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        (PLAIN, "start"), (replace(PLAIN, wave=9), "start"), (EXCHANGE, "have read"),
        (replace(EXCHANGE, facts=(fact("please keep the old name"),)), "I keep it"),
        (replace(EXCHANGE, messages=(PromptMessage("user", "Keep the old name!"),)), "I keep it"),
        (replace(EXCHANGE, facts=(fact("done", "receipt", "act-1"),)), "finished"),
        (replace(EXCHANGE, facts=(fact("denied", "receipt", "act-1"),)), "have read"),
    ],
)  # fmt: skip
async def test_the_last_turn_that_fits_is_played(path: Path, prompt: Prompt, words: str) -> None:
    assert text_in(await play(path, STEPS, prompt)) == words


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        ("wave = 2", True), ("wave_from = 3", False), ('task_type = "bug"', False),
        ('not_called = ["note"]', False),
        ('called = ["note", "request_context"]', True),
        ('called = ["note", "finish"]', False),
        ('contains = [\'"purpose":\\s*"see"\']', True),
        ('contains = ["the file", "absent"]', False),
        ('not_contains = ["absent", "the file"]', False),
        ('facts = ["file:a"]', True), ('facts = ["^a"]', False),
        ('wave = 2\nwhen.task_type = "bug"', False),
    ],
)  # fmt: skip
async def test_each_condition(path: Path, when: str, fits: bool) -> None:
    prompt = replace(EXCHANGE, wave=2, task_type="review_pr", facts=(fact("x"),))
    scenario = f'[[turn]]\nwhen.{when}\ntext = "fits"\n'
    if fits:
        assert text_in(await play(path, scenario, prompt)) == "fits"
    else:
        with pytest.raises(ModelError, match="no turn for wave 2 of review_pr") as caught:
            await play(path, scenario, prompt)
        assert caught.value.code == "script"


async def test_an_error_with_times_fails_so_often_and_then_plays(path: Path) -> None:
    waits: list[float] = []
    scenario = """
        [[turn]]
        text = "ok"
        error = { code = "rate_limit", times = 2, wait_s = 3, message = "busy" }
    """
    events = await play(path, scenario, waits=waits)
    assert [e for e in events if isinstance(e, Retrying)] == [
        Retrying("busy", 1, 3.0),
        Retrying("busy", 2, 3.0),
    ]
    assert waits == [3.0, 3.0]
    assert text_in(events) == "ok"


async def test_an_error_without_times_fails_always(path: Path) -> None:
    with pytest.raises(ModelError, match="no key") as caught:
        await play(path, '[[turn]]\nerror = { code = "auth", message = "no key" }\n')
    assert caught.value.code == "auth"


async def test_a_cut_keeps_the_text_and_loses_the_calls(path: Path) -> None:
    scenario = '[[turn]]\ntext = "half a"\ncut = true\n[[turn.call]]\nname = "finish"\n'
    events = await play(path, scenario)
    assert text_in(events) == "half a"
    assert not any(isinstance(event, ToolCall) for event in events)
    assert isinstance(events[-1], Done)
    assert events[-1].stop == "cut"


def test_a_scenario_that_is_not_there_or_not_text_says_so(path: Path) -> None:
    with pytest.raises(ModelError, match="No such file"):
        ScriptModel(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ModelError, match="byte 0 is not UTF-8"):
        ScriptModel(path)
    with pytest.raises(ModelError, match="directory"):
        ScriptModel(path.parent)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "turn"),
        ("[[turn]]\ntexte = 'x'", "texte"),
        ("[[turn]]\nwhen = { wave = 0 }", "$.turn[0].when.wave"),
        ("[[turn]]\npace = nan", "$.turn[0].pace"),
        ("[[turn]]\nerror = { code = 'boom' }", "$.turn[0].error.code"),
        ("[[turn]]\nwhen = { contains = ['('] }", "turn 1, when.contains[0]"),
        ("[[turn]]\n[[turn.call]]\nname='n'\narguments={}\nraw_arguments=''", "keep one"),
        ("[[turn]]\n[[turn.call]]\nname='n'\narguments={d=2020-01-01}", "not JSON"),
        ("title = x", "line 1"),
    ],
)
def test_a_scenario_that_does_not_read_says_where(path: Path, text: str, words: str) -> None:
    path.write_text(text)
    with pytest.raises(ModelError) as caught:
        ScriptModel(path)
    assert caught.value.code == "script"
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
