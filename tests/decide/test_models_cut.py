from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest
from examples import examples
from loopback.protocols import PROTOCOLS
from loopback.replies import Say, Silence, Use
from msgspec.structs import replace
from prompts import PLAIN, text_in

from cockpit.decide.choose_model import ModelSettings
from cockpit.decide.model import Done, ModelError, ModelEvent, Retrying, ToolCall

if TYPE_CHECKING:
    from models_talk import Talk

pytestmark = pytest.mark.slow

WHOLE = Say(
    "One two three.",
    calls=(Use("note", {"text": "first"}), Use("finish", {"status": "done", "n": [1, 2]})),
)
HELD = Say("One two three four five six.", hold_after=6)
EVENTS = max(len(protocol(WHOLE, "m")) for protocol in PROTOCOLS.values())


def broken(where: str, after: int) -> Say:
    return Say(
        WHOLE.text,
        WHOLE.calls,
        cut_after=after if where == "cut" else None,
        end_after=after if where == "end" else None,
        fail_after=after if where == "fail" else None,
    )


@pytest.mark.search
@pytest.mark.parametrize("where", ["cut", "end", "fail"])
async def test_a_break_after_any_event_keeps_a_true_beginning_or_starts_again(
    talk: Talk, where: str
) -> None:
    """After some events, all in a long search: a lost connection, an orderly end, an error event.

    Whatever was said is a beginning of the whole; every call passed on is one of the whole's, with
    all its arguments; when nothing was there to keep, the call starts again and succeeds.
    """
    whole_calls = [call.text for call in WHOLE.calls]
    kept = again = finished = 0
    some = random.Random(4).sample(range(1, EVENTS), min(EVENTS - 1, examples(2)))
    for after in (0, *some, EVENTS):
        talk.server.play([broken(where, after), WHOLE])
        events = await talk.say(PLAIN)
        done = events[-1]
        assert isinstance(done, Done)
        text = text_in(events)
        calls = [e.arguments for e in events if isinstance(e, ToolCall)]
        if any(isinstance(e, Retrying) for e in events):
            again += 1
            assert (text, calls, done.stop) == (WHOLE.text, whole_calls, "tool")
            continue
        assert WHOLE.text.startswith(text)
        assert calls == whole_calls[: len(calls)]
        if done.stop == "cut":
            kept += 1
            assert done.reason
        else:
            finished += 1
            assert (text, calls, done.stop) == (WHOLE.text, whole_calls, "tool")
        talk.server.forget()
    assert again and kept and finished


async def test_nothing_but_thinking_before_the_break_starts_again(talk: Talk) -> None:
    talk.server.play([Say("Words.", thinking="hmm", cut_after=2), Say("Words.")])
    events = await talk.say(PLAIN)
    assert isinstance(events[0], Retrying)
    assert text_in(events) == "Words."


async def test_a_lasting_error_inside_the_stream_is_an_error(anthropic: Talk) -> None:
    say = Say("One two.", fail_after=4, fail_type="authentication_error")
    anthropic.server.play([say])
    seen: list[ModelEvent] = []
    with pytest.raises(ModelError) as caught:
        async for event in anthropic.model().stream(PLAIN):
            seen.append(event)
    assert caught.value.code == "auth"
    assert text_in(seen) == "One two."


async def test_silence_in_the_middle_keeps_what_came(openai: Talk) -> None:
    openai.server.play([HELD])
    events = await openai.say(PLAIN, ModelSettings(timeout_s=2.0))
    assert text_in(events).startswith("One")
    assert isinstance(events[-1], Done)
    assert events[-1].stop == "cut"


async def test_what_keeps_a_connection_alive_is_no_answer(talk: Talk) -> None:
    talk.server.play([Say(HELD.text, hold_after=6, chatty=True)])
    events = await talk.say(PLAIN, ModelSettings(timeout_s=1.5))
    assert text_in(events).startswith("One")
    assert isinstance(events[-1], Done)
    assert (events[-1].stop, "no content for 1.5 s" in events[-1].reason) == ("cut", True)


async def test_nothing_but_what_keeps_a_connection_alive_starts_again(anthropic: Talk) -> None:
    anthropic.server.play([Say(HELD.text, hold_after=0, chatty=True), Say("Words.")])
    events = await anthropic.say(PLAIN, ModelSettings(timeout_s=1.5))
    assert isinstance(events[0], Retrying)
    assert "no content for 1.5 s" in events[0].reason
    assert text_in(events) == "Words."


ENDLESS = 5
"""In each protocol the event before this one is a delta of text."""


async def test_an_answer_without_an_end_is_cut_at_its_bound_and_counted(talk: Talk) -> None:
    talk.server.play([Say("One two three four five six.", repeat_after=ENDLESS, input_tokens=1000)])
    events = await talk.say(replace(PLAIN, max_output_tokens=40))
    done = events[-1]
    assert isinstance(done, Done)
    assert done.stop == "cut"
    assert "more than 400 characters" in done.reason
    assert 350 < len(text_in(events)) <= 400
    assert done.usage.output_tokens >= 85, "the provider did not say how many"


async def test_a_stream_of_nothing_without_an_end_is_an_error(anthropic: Talk) -> None:
    """The first event says who speaks, and comes again and again."""
    anthropic.server.play([Say("Words.", repeat_after=1)])
    with pytest.raises(ModelError) as caught:
        await anthropic.say(replace(PLAIN, max_output_tokens=20), ModelSettings(max_retries=0))
    assert caught.value.code == "endless_answer"


@pytest.mark.parametrize("wrong", [2**70, -5])
async def test_numbers_that_cannot_be_are_not_counted(talk: Talk, wrong: int) -> None:
    talk.server.play([Say("One two three.", output_tokens=wrong)])
    done = (await talk.say(PLAIN))[-1]
    assert isinstance(done, Done)
    assert (done.stop, done.usage.output_tokens) == ("end", 3)
    if wrong > 0:  # the SDK drops negative ones by itself, and all others with them
        assert done.usage.doubt.startswith("The provider reported impossible numbers of tokens (")
        assert str(wrong)[:10] in done.usage.doubt


async def test_a_prompt_whose_tokens_nobody_reports_is_counted(talk: Talk) -> None:
    talk.server.play([Say("One two three.", input_tokens=0, cached_tokens=0, output_tokens=0)])
    done = (await talk.say(PLAIN))[-1]
    assert isinstance(done, Done)
    assert (done.usage.input_tokens, done.usage.output_tokens) == (35, 3), "a limit binds by these"


@pytest.mark.parametrize("when", ["before the first byte", "while it speaks"])
async def test_cancelling_hangs_up(talk: Talk, when: str) -> None:
    talk.server.play([HELD if when == "while it speaks" else Silence()])
    seen: list[ModelEvent] = []

    async def listen() -> None:
        async for event in talk.model().stream(PLAIN):
            seen.append(event)

    task = asyncio.create_task(listen())
    await talk.server.holding.wait()
    while not seen and when == "while it speaks":
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await talk.server.hung_up.wait()
    assert text_in(seen).startswith("One" if when == "while it speaks" else "")
