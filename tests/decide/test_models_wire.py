from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from loopback.replies import Say
from models_talk import KEYS
from msgspec.structs import replace
from prompts import EXCHANGE, PLAIN

from cockpit.decide.model import Prompt, PromptCall, PromptMessage

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from models_talk import Talk


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
    from cockpit.decide.choose_model import ModelSettings, choose_model

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
