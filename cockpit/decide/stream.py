"""A provider's stream as our events, and what is worth keeping of it when it ends early.

Text is passed on as it comes. Tool calls are passed on complete, at the end, with the arguments as
the model wrote them. Thinking is not text and is left out.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from cockpit.decide.model import Done, ModelError, ModelEvent, TextDelta, ToolCall, Usage

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


def ending(response: ModelResponse, *, anything_said: bool) -> list[ModelEvent]:
    """The tool calls and the :class:`Done` of a stream that ended by itself.

    A stream may end without an error and yet without the provider's word that it is complete: that
    is a cut. Raises :class:`ModelError` when the provider's filter left nothing.
    """
    details = response.provider_details or {}
    filtered = response.finish_reason == "content_filter"
    if filtered and not anything_said:
        refusal = details.get("refusal")
        if not isinstance(refusal, str) or not refusal:
            raise ModelError(
                "bad_request",
                f"{response.model_name} declined to answer (the provider's content filter). "
                "Say it in other words, or choose another model.",
            )
        return [TextDelta(refusal), Done(usage_of(response), "end")]
    if filtered:
        return kept(response, "the provider's content filter stopped the answer")
    if "finish_reason" not in details:
        return kept(response, "the stream ended early")
    length = response.finish_reason == "length"
    calls: list[ModelEvent] = [
        # At the length limit an empty argument text means "not yet written", not "no arguments".
        ToolCall(call.tool_call_id, call.tool_name, _raw(call, empty="" if length else "{}"))
        for call in response.tool_calls
    ]
    stop: Done = Done(usage_of(response), "length" if length else "tool" if calls else "end")
    return [*calls, stop]


def kept(response: ModelResponse, reason: str) -> list[ModelEvent]:
    """What a cut stream leaves: the calls whose arguments are whole, and a Done that says 'cut'.

    A JSON object ends at its last brace, so one that parses was written to its end.
    """
    events: list[ModelEvent] = [
        ToolCall(call.tool_call_id, call.tool_name, raw)
        for call in response.tool_calls
        if _whole(raw := _raw(call, empty=""))
    ]
    return [*events, Done(usage_of(response), "cut", reason)]


def usage_of(response: ModelResponse) -> Usage:
    """Tokens as the provider counted them (cached ones are in the input too), and the price."""
    usage = response.usage
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        cost_usd=_cost(response),
    )


def _cost(response: ModelResponse) -> float | None:
    if not response.model_name or not (response.usage.input_tokens or response.usage.output_tokens):
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None  # no price list knows this model, or its counts cannot be priced


def _raw(call: ToolCallPart, *, empty: str) -> str:
    if isinstance(call.args, str):
        return call.args or empty
    return json.dumps(call.args, ensure_ascii=False) if call.args else empty


def _whole(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False
