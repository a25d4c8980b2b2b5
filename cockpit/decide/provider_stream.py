"""A provider's stream as model events, and the part to keep when it ends early.

Text is passed on as it comes. Tool calls are passed on complete, at the end, with the arguments as the model
wrote them, and so is thinking, with what its provider needs to take it back.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from cockpit.decide.call_cost import cost_by_list
from cockpit.decide.model import Done, ModelEvent, ThinkingBlock, Thought, ToolCall, Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models import StreamedResponse


async def text_of(stream: StreamedResponse) -> AsyncGenerator[str]:
    """The fragments of text, none empty, in order."""
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    async for event in stream:
        fragment = ""
        if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
            fragment = event.part.content
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
            fragment = event.delta.content_delta
        if fragment:
            yield fragment


def ending(response: ModelResponse, *, has_text: bool, broken: str = "") -> list[ModelEvent]:
    """The tool calls and the :class:`Done` of a stream that ended by itself or, with ``broken``
    saying how, did not. ``has_text`` is whether any text was passed on.

    Without the provider's word that the answer is complete, it is cut: only calls whose arguments
    are whole are kept. (A JSON object ends at its last brace, so one that parses was written to its
    end.) A break after that word took nothing away. An answer that the provider's content filter
    ended has no calls, and its stop is ``filtered``; with a refusal, in the provider's own words.
    """
    details = response.provider_details or {}
    if refusal := _refusal(response):
        return [Done(usage_of(response), "filtered", f"it refused: {refusal}")]
    if response.finish_reason == "content_filter":
        return [Done(usage_of(response), "filtered", "its content filter stopped the answer")]
    if details.get("finish_reason"):
        return _complete(response)
    calls: list[ModelEvent] = [
        ToolCall(call.tool_call_id, call.tool_name, raw)
        for call in response.tool_calls
        if _whole(raw := _raw(call, empty=""))
    ]
    return [*calls, Done(usage_of(response), "cut", broken or "it ended early")]


def _refusal(response: ModelResponse) -> str:
    """The provider's words in place of an answer; empty for none."""
    words = (response.provider_details or {}).get("refusal")
    return " ".join(words.split()) if isinstance(words, str) else ""


def _complete(response: ModelResponse) -> list[ModelEvent]:
    length = response.finish_reason == "length"
    calls: list[ModelEvent] = [
        # At the length limit an empty argument text means "not yet written", not "no arguments".
        ToolCall(call.tool_call_id, call.tool_name, _raw(call, empty="" if length else "{}"))
        for call in response.tool_calls
    ]
    blocks = _thinking(response)
    thought = [Thought(blocks)] if blocks else []
    return [
        *calls,
        *thought,
        Done(usage_of(response), "length" if length else "tool" if calls else "end"),
    ]


def _thinking(response: ModelResponse) -> tuple[ThinkingBlock, ...]:
    """The parts of a complete answer in which the model thought, in order."""
    from pydantic_ai.messages import ThinkingPart

    return tuple(
        ThinkingBlock(
            part.content,
            part.provider_name or "",
            part.id or "",
            part.signature or "",
            part.provider_details or {},
        )
        for part in response.parts
        if isinstance(part, ThinkingPart)
    )


def usage_of(response: ModelResponse) -> Usage:
    """Tokens as the provider counted them (cached ones are in the input too), and the price."""
    usage = response.usage
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        **cost_by_list(response),
    )


def _raw(call: ToolCallPart, *, empty: str) -> str:
    if isinstance(call.args, str):
        return call.args or empty
    return json.dumps(call.args, ensure_ascii=False) if call.args else empty


def _whole(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False
