from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from loopback.protocols import PROTOCOLS
from loopback.replies import Say, Silence, Use
from prompts import PLAIN, text_in

from cockpit.decide.choose_model import ModelSettings
from cockpit.decide.model import Done, ModelError, ModelEvent, Retrying, TextDelta, ToolCall

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


@pytest.mark.parametrize("where", ["cut", "end", "fail"])
async def test_a_break_after_any_event_keeps_a_true_beginning_or_starts_again(
    talk: Talk, where: str
) -> None:
    """After every event of the stream in turn: a lost connection, an orderly end, an error event.

    Whatever was said is a beginning of the whole; every call passed on is one of the whole's, with
    all its arguments; when nothing was there to keep, the call starts again and succeeds.
    """
    whole_calls = [call.text for call in WHOLE.calls]
    kept = again = finished = 0
    for after in range(EVENTS + 1):
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


async def test_a_whole_call_before_the_break_is_kept(anthropic: Talk) -> None:
    call = Use("finish", {"status": "done"})
    events = len(PROTOCOLS["/v1/messages"](Say(calls=(call,)), "m"))
    anthropic.server.play([Say(calls=(call,), cut_after=events - 2)])
    kept = await anthropic.say(PLAIN)
    assert [e.arguments for e in kept if isinstance(e, ToolCall)] == [call.text]
    assert isinstance(kept[-1], Done)
    assert kept[-1].stop == "cut"


async def test_a_lasting_error_inside_the_stream_is_an_error(anthropic: Talk) -> None:
    say = Say("One two.", fail_after=4, fail_type="authentication_error")
    anthropic.server.play([say])
    seen: list[ModelEvent] = []
    with pytest.raises(ModelError) as caught:
        async for event in anthropic.model().stream(PLAIN):
            seen.append(event)
    assert caught.value.code == "auth"
    assert text_in(seen) == "One two."


async def test_silence_in_the_middle_keeps_what_came(talk: Talk) -> None:
    talk.server.play([HELD])
    events = await talk.say(PLAIN, ModelSettings(timeout_s=1.0))
    assert text_in(events).startswith("One")
    assert isinstance(events[-1], Done)
    assert events[-1].stop == "cut"


async def test_cancelling_hangs_up(talk: Talk) -> None:
    talk.server.play([HELD])
    seen: list[ModelEvent] = []

    async def listen() -> None:
        async for event in talk.model().stream(PLAIN):
            seen.append(event)

    task = asyncio.create_task(listen())
    await talk.server.holding.wait()
    while not seen:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await talk.server.hung_up.wait()
    assert text_in(seen).startswith("One")


async def test_cancelling_before_the_first_byte_hangs_up(talk: Talk) -> None:
    talk.server.play([Silence()])
    task = asyncio.create_task(talk.say(PLAIN))
    await talk.server.holding.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await talk.server.hung_up.wait()


async def test_closing_the_stream_early_hangs_up(talk: Talk) -> None:
    talk.server.play([HELD])
    events = talk.model().stream(PLAIN)
    assert isinstance(events, AsyncGenerator)
    async with aclosing(events) as stream:
        async for event in stream:
            assert isinstance(event, TextDelta)
            break
    await talk.server.hung_up.wait()
