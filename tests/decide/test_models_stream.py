from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from loopback.replies import Say, Use
from prompts import PLAIN, text_in

from cockpit.decide.model import Done, TextDelta, ToolCall

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from models_talk import Talk

CALL = Use("finish", {"status": "done", "ü": "ß"}, call_id="call_7")


async def test_text_comes_in_fragments_then_calls_then_the_end(talk: Talk) -> None:
    talk.server.play([Say("One two three.", calls=(CALL, Use("note", {"text": "x"})))])
    events = await talk.say(PLAIN)
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["One", " two", " three."]
    first, second = (e for e in events if isinstance(e, ToolCall))
    assert (first.call_id, first.name, first.arguments) == ("call_7", "finish", CALL.text)
    assert second.name == "note"
    done = events[-1]
    assert isinstance(done, Done)
    assert done.stop == "tool"
    assert (done.usage.input_tokens, done.usage.cached_tokens) == (1200, 1000)
    assert done.usage.output_tokens == 34


async def test_thinking_is_not_text(talk: Talk) -> None:
    talk.server.play([Say("Out loud.", thinking="in silence", calls=(CALL,))])
    events = await talk.say(PLAIN)
    assert text_in(events) == "Out loud."
    assert [e.name for e in events if isinstance(e, ToolCall)] == ["finish"]


async def test_malformed_arguments_come_through_as_written(talk: Talk) -> None:
    raw = ("", '{"a": [1', "[1, 2]")
    calls = tuple(Use("note", text, call_id=f"call_{at}") for at, text in enumerate(raw))
    talk.server.play([Say("So.", calls=(*calls, CALL))])
    events = await talk.say(PLAIN)
    told = [e.arguments for e in events if isinstance(e, ToolCall)]
    assert told == ["{}", *raw[1:], CALL.text]


@pytest.mark.parametrize("raw", ["", '{"text": "ha'])
async def test_the_token_limit_says_length_and_passes_a_half_call_as_it_is(
    talk: Talk, raw: str
) -> None:
    talk.server.play([Say("So.", calls=(Use("note", raw),), stop="length")])
    events = await talk.say(PLAIN)
    assert [e.arguments for e in events if isinstance(e, ToolCall)] == [raw]
    assert isinstance(events[-1], Done)
    assert events[-1].stop == "length"


async def test_a_refusal_in_words_is_the_reason_and_no_answer(compatible: Talk) -> None:
    compatible.server.play([Say(refusal="I would rather not.")])
    (done,) = await compatible.say(PLAIN)
    assert isinstance(done, Done)
    assert done.stop == "filtered"
    assert done.reason == "it refused: I would rather not."


@pytest.mark.parametrize("text", ["", "Half a"])
async def test_a_content_filter_keeps_the_words_but_no_call(talk: Talk, text: str) -> None:
    call = Use("finish", {"status": "done", "summary": "s"})
    talk.server.play([Say(text, calls=(call,) if text else (), stop="filter")])
    events = await talk.say(PLAIN)
    assert text_in(events) == text
    assert not [event for event in events if isinstance(event, ToolCall)]
    assert isinstance(events[-1], Done)
    assert events[-1].stop == "filtered"
    assert "content filter" in events[-1].reason
    assert events[-1].usage.output_tokens > 0


async def test_known_models_have_a_price_and_unknown_ones_none(talk: Talk) -> None:
    talk.server.play([Say("Priced.")])
    done = (await talk.say(PLAIN))[-1]
    assert isinstance(done, Done)
    if talk.vendor == "openai-compatible":
        assert done.usage.cost_usd is None
    else:
        # 200 fresh input tokens, 1,000 cached and 34 of output cost more than the fresh ones alone
        # and less than a cent for any model that could be a default.
        assert done.usage.cost_usd is not None
        assert 0.00001 < done.usage.cost_usd < 0.01
        # A thousand cached tokens cost less than they do where they are not cached.
        assert done.usage.input_usd is not None and done.usage.cached_usd is not None
        fresh = done.usage.input_usd - done.usage.cached_usd
        assert 0 < fresh < done.usage.cost_usd
        assert 0 < done.usage.cached_usd < 5 * fresh
