"""Models over the network: what is sent, how answers stream and break, what is tried again, what fails."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback.protocols import PROTOCOLS
from loopback.replies import Drop, Refuse, Say, Silence, Use
from models_talk import KEYS
from msgspec.structs import replace
from prompts import EXCHANGE, PLAIN, text_in

from cockpit.decide.call_model_with_retry import retry_wait_s
from cockpit.decide.choose_model import ModelSettings, choose_model
from cockpit.decide.model import (
    Done,
    ModelError,
    ModelEvent,
    Prompt,
    PromptCall,
    PromptMessage,
    Retrying,
    TextDelta,
    ToolCall,
)
from cockpit.decide.model_endpoint import Endpoint
from cockpit.decide.provider_errors import Failure

if TYPE_CHECKING:
    from models_talk import Talk

pytestmark = pytest.mark.slow


async def sent(talk: Talk, prompt: Prompt) -> dict[str, Any]:
    talk.server.play([Say("ok")])
    await talk.say(prompt)
    return talk.server.requests[-1].body


def cached(body: dict[str, Any]) -> list[str]:
    """The texts that carry a cache point, in the order in which they are sent."""
    blocks = list(body.get("tools", [])) + list(body.get("system", []))
    for message in body["messages"]:
        blocks += message["content"]
    return [
        block.get("text") or block.get("name") or block["content"][0]["text"]
        for block in blocks
        if "cache_control" in block
    ]


async def test_the_key_goes_where_it_belongs_and_nowhere_else(talk: Talk) -> None:
    own = {"anthropic": "ANTHROPIC", "openai": "OPENAI", "openai-compatible": "COCKPIT"}
    body = await sent(talk, PLAIN)
    request = talk.server.requests[-1]
    key = KEYS[f"{own[talk.vendor]}_API_KEY"]
    assert request.headers["authorization"] == f"Bearer {key}"
    everything = json.dumps([request.headers, body])
    for other in KEYS.values():
        assert everything.count(other) == (1 if other == key else 0)


async def test_without_a_key_a_compatible_service_gets_none(compatible: Talk) -> None:
    compatible.server.play([Say("ok")])
    env = {"OPENAI_API_KEY": "sk-oai-canary-2"}
    model = choose_model(compatible.spec, config=ModelSettings(), env=env)
    assert [event async for event in model.stream(PLAIN)]
    assert "canary" not in json.dumps(compatible.server.requests[-1].headers)


async def test_anthropic_gets_turns_in_their_roles_with_cache_points(anthropic: Talk) -> None:
    body = await sent(anthropic, EXCHANGE)
    assert anthropic.server.requests[-1].path == "/v1/messages"
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    calls = [b for b in body["messages"][1]["content"] if b["type"] == "tool_use"]
    assert [(b["id"], b["name"], b["input"]) for b in calls] == [
        ("call_a", "request_context", {"purpose": "see"}),
        ("call_b", "note", {"text": "n"}),
    ]
    kinds = [block["type"] for block in body["messages"][2]["content"]]
    assert kinds == ["tool_result", "tool_result", "text"]
    assert cached(body) == ["You steer.", "The task.", "noted"]
    assert body["max_tokens"] == 8000
    assert body["stream"] is True
    assert [tool["name"] for tool in body["tools"]] == ["finish"]
    assert body["tools"][0]["input_schema"]["required"] == ["status"]


async def test_anthropic_never_gets_more_than_four_cache_points(anthropic: Talk) -> None:
    messages = tuple(PromptMessage("user", f"band {n}", cache=True) for n in range(6))
    body = await sent(anthropic, replace(PLAIN, messages=messages))
    assert cached(body) == ["You steer.", "band 0", "band 4", "band 5"]
    answer = PromptMessage("assistant", "the answer", cache=True)
    messages = (PromptMessage("user", "hello"), answer, PromptMessage("user", "more"))
    assert cached(await sent(anthropic, replace(PLAIN, messages=messages)))[1:] == ["the answer"]
    assert cached(await sent(anthropic, replace(PLAIN, system=""))) == ["finish"]


async def test_openai_gets_a_response_request_that_is_not_stored(openai: Talk) -> None:
    body = await sent(openai, EXCHANGE)
    assert openai.server.requests[-1].path == "/v1/responses"
    kinds = [item.get("type") or item["role"] for item in body["input"]]
    outputs = ["function_call_output", "function_call_output"]
    assert kinds == ["system", "user", "assistant", *["function_call"] * 2, *outputs, "user"]
    assert body["store"] is False
    assert body["max_output_tokens"] == 8000
    assert body["tools"][0]["parameters"]["required"] == ["status"]
    assert "cache_control" not in json.dumps(body)


async def test_the_same_head_gets_the_same_cache_key(openai: Talk) -> None:
    first = await sent(openai, PLAIN)
    second = await sent(openai, EXCHANGE)
    third = await sent(openai, replace(PLAIN, system="Another head."))
    assert first["prompt_cache_key"] == second["prompt_cache_key"]
    assert first["prompt_cache_key"] != third["prompt_cache_key"]


async def test_a_compatible_service_gets_chat_messages_and_the_old_limit(compatible: Talk) -> None:
    body = await sent(compatible, EXCHANGE)
    assert compatible.server.requests[-1].path == "/v1/chat/completions"
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    calls = body["messages"][2]["tool_calls"]
    assert [call["id"] for call in calls] == ["call_a", "call_b"]
    assert [m.get("tool_call_id") for m in body["messages"][3:5]] == ["call_a", "call_b"]
    assert body["max_tokens"] == 8000
    assert "max_completion_tokens" not in body
    assert body["model"] == "qwen3-coder"


async def test_text_that_is_not_unicode_and_malformed_calls_are_sent_all_the_same(
    talk: Talk,
) -> None:
    messages = (
        PromptMessage("user", "file \udce9.txt <|endoftext|> \x00"),
        PromptMessage("assistant", calls=(PromptCall("call_a", "note", '{"text": ['),)),
        PromptMessage("tool", "the arguments end early", call_id="call_a", tool_name="note"),
    )
    prompt = replace(PLAIN, system="head \ud800", messages=messages)
    body = await sent(talk, prompt)
    assert await sent(talk, prompt) == body
    assert "file ?.txt" in json.dumps(body)
    assert "text" in json.dumps(body)
    assert "the arguments end early" in json.dumps(body)


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


LIMITED = Refuse(429, "slow down", kind="rate_limit_error", code="rate_limit_exceeded")


async def test_a_rate_limit_waits_as_long_as_it_asks(talk: Talk) -> None:
    talk.server.play([Refuse(429, "slow", kind="rate_limit_error", retry_after="7"), Say("ok")])
    events = await talk.say(PLAIN)
    retrying = [e for e in events if isinstance(e, Retrying)]
    assert [(e.attempt, e.wait_s) for e in retrying] == [(1, 7.0)]
    assert "429: slow" in retrying[0].reason
    assert talk.waits == [7.0]
    assert text_in(events) == "ok"


async def test_passing_failures_wait_ever_longer_and_only_we_retry(talk: Talk) -> None:
    talk.server.play(
        [Refuse(500), Drop(), LIMITED, Refuse(529, kind="overloaded_error"), Say("ok")]
    )
    events = await talk.say(PLAIN)
    assert talk.waits == [1.0, 2.0, 4.0, 8.0]
    assert [e.attempt for e in events if isinstance(e, Retrying)] == [1, 2, 3, 4]
    assert len(talk.server.requests) == 5
    assert text_in(events) == "ok"


@pytest.mark.parametrize(
    ("reply", "code"), [(LIMITED, "rate_limit"), (Refuse(503), "network"), (Drop(), "network")]
)
async def test_after_the_last_attempt_the_error_says_how_often(
    anthropic: Talk, reply: Refuse | Drop, code: str
) -> None:
    anthropic.server.play([reply] * 3)
    with pytest.raises(ModelError, match="Tried 3 times") as caught:
        await anthropic.say(PLAIN, ModelSettings(max_retries=2))
    assert caught.value.code == code
    assert len(anthropic.server.requests) == 3


async def test_a_wait_longer_than_two_minutes_is_not_waited(openai: Talk) -> None:
    openai.server.play([Refuse(429, "full", kind="rate_limit_error", retry_after="3600")])
    with pytest.raises(ModelError, match="3600 s") as caught:
        await openai.say(PLAIN)
    assert caught.value.code == "rate_limit"
    assert openai.waits == []


async def test_silence_is_given_up_and_tried_again(openai: Talk) -> None:
    openai.server.play([Silence(), Say("ok")])
    events = await openai.say(PLAIN, ModelSettings(timeout_s=2.0))
    assert [type(e) for e in events[:1]] == [Retrying]
    assert "2 s" in next(e.reason for e in events if isinstance(e, Retrying))
    assert text_in(events) == "ok"


async def test_an_address_where_nobody_listens_is_a_network_error(compatible: Talk) -> None:
    model = compatible.model(ModelSettings(max_retries=1))
    await compatible.server.__aexit__(None, None, None)
    with pytest.raises(ModelError, match="Tried 2 times") as caught:
        _ = [event async for event in model.stream(PLAIN)]
    assert caught.value.code == "network"
    assert "127.0.0.1" in str(caught.value)
    await compatible.server.__aenter__()


@given(attempt=st.integers(1, 60))
def test_waits_double_up_to_thirty_seconds(attempt: int) -> None:
    failure = Failure(True, "r", None, ModelError("network", "n"))
    wait = retry_wait_s(failure, attempt)
    assert wait == min(2.0 ** (attempt - 1), 30.0)


VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-compatible": "COCKPIT_API_KEY",
}


async def failing(talk: Talk, reply: Refuse) -> ModelError:
    before = len(talk.server.requests)
    talk.server.play([reply])
    with pytest.raises(ModelError) as caught:
        await talk.say(PLAIN)
    assert len(talk.server.requests) == before + 1, "what lasts must not be tried again"
    return caught.value


LASTING = (
    (Refuse(403, "no", kind="permission_error"), "auth", "may not use"),
    (
        Refuse(404, "model: nope", kind="not_found_error", code="model_not_found"),
        *("not_found", "does not know the model"),
    ),
    (
        Refuse(400, "prompt is too long", "invalid_request_error", "context_length_exceeded"),
        *("bad_request", "ORIENTATION_TOKEN_BUDGET"),
    ),
    (Refuse(422, "tools.0: bad", kind="invalid_request_error"), "bad_request", "tools.0: bad"),
    (
        Refuse(402, "pay", kind="billing_error", code="insufficient_quota"),
        *("rate_limit", "no credit left"),
    ),
    (Refuse(400, "x" * 10_000), "bad_request", "x"),
)


async def test_an_error_that_lasts_says_what_to_do(talk: Talk) -> None:
    for reply, code, words in LASTING:
        error = await failing(talk, reply)
        assert (error.code, words in str(error)) == (code, True), error
        assert len(str(error)) < 700
    error = await failing(talk, Refuse(401, "invalid key", kind="authentication_error"))
    assert error.code == "auth" and "invalid key" in str(error)
    assert f"The key in {VARIABLES[talk.vendor]} was refused by" in str(error)


async def test_a_provider_cannot_show_the_key_or_move_the_cursor(talk: Talk) -> None:
    key = KEYS[VARIABLES[talk.vendor]]
    hostile = f"key {key} and {key}! \x1b]52;c;evil\x07 \u202e sk-proj-abcdef123456 \x9b31m"
    for status in (400, 401):
        error = await failing(talk, Refuse(status, hostile))
        assert "canary" not in str(error)
        assert "abcdef123456" not in str(error)
        assert str(error).isprintable()
        assert "evil" in str(error), "only what is hostile is removed"


@pytest.mark.search
@settings(max_examples=examples(25))
@given(words=st.text(), key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8))
def test_no_words_around_a_key_reveal_it(words: str, key: str) -> None:
    endpoint = Endpoint("openai", "openai:m", "m", "http://h/v1", key, "OPENAI_API_KEY", 1.0, 0)
    cleaned = endpoint.clean(f"{words}{key}{words}")
    assert key not in cleaned.replace("[key]", "\n"), "no key has an end of a line in it"
    assert len(cleaned) <= 400
