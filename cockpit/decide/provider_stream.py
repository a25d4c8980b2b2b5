"""A provider's stream as model events, and the part to keep when it ends early.

Text is passed on as it comes. Tool calls are passed on complete, at the end, with the arguments as the model
wrote them, and so is thinking, with what its provider needs to take it back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json
from cockpit.decide.call_cost import cost_by_list
from cockpit.decide.model import (
    Done,
    ModelEvent,
    Prompt,
    ThinkingBlock,
    Thought,
    ToolCall,
    Usage,
)

MOST_TOKENS_OF_A_CALL = 20_000_000
"""No model reads or writes more; a larger number of a provider is an error of its own."""
MOST_CHARACTERS_OF_A_TOKEN = 10
"""An answer of many tokens has fewer characters for each, whatever it is about."""
_CHARACTERS_OF_A_TOKEN = 4
_SHOWN = 24

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models import StreamedResponse


class NoContent(Exception):
    """Nothing of an answer came for too long; what keeps a connection alive is not of it."""


class AnswerTooLong(Exception):
    """A provider sent more than it was asked for, and did not stop."""


class Bounds(Struct):
    """How much of an answer is read, and how long nothing of it may come."""

    most: int
    """Characters of text, calls and thinking."""
    silence_s: float
    sent: int
    """Characters of the prompt, with its tools."""
    read: int = 0
    """Characters so far."""


def bound_answer(prompt: Prompt, max_tokens: int, silence_s: float) -> Bounds:
    """Return the bounds of an answer to ``prompt`` that may have so many tokens."""
    tools = [(tool.name, tool.description, dict(tool.parameters)) for tool in prompt.tools]
    sent = prompt.count_characters() + len(canonical_json(tools))
    return Bounds(max_tokens * MOST_CHARACTERS_OF_A_TOKEN, silence_s, sent)


async def text_of(stream: StreamedResponse, bounds: Bounds) -> AsyncGenerator[str]:
    """The fragments of text, none empty, in order.

    Raises :class:`NoContent` and :class:`AnswerTooLong`; what came before is in ``stream``.
    """
    now = asyncio.get_running_loop().time
    events, until = aiter(stream), now() + bounds.silence_s
    while True:
        try:
            async with asyncio.timeout_at(until):
                event = await anext(events)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise NoContent(f"no content for {bounds.silence_s:g} s") from error
        text, length = _content_of(event)
        if not length:
            continue
        bounds.read += length
        if bounds.read > bounds.most:
            raise AnswerTooLong(
                f"it sent more than {bounds.most:,} characters, more than the answer may have"
            )
        if text:
            yield text
        until = now() + bounds.silence_s


def _content_of(event: object) -> tuple[str, int]:
    """The text of an event, and the characters that it adds to the answer."""
    from pydantic_ai.messages import (
        PartDeltaEvent,
        PartStartEvent,
        TextPart,
        TextPartDelta,
        ThinkingPart,
        ThinkingPartDelta,
        ToolCallPart,
        ToolCallPartDelta,
    )

    part = (
        event.part
        if isinstance(event, PartStartEvent)
        else event.delta
        if isinstance(event, PartDeltaEvent)
        else None
    )
    match part:
        case TextPart(content=text) | TextPartDelta(content_delta=text):
            return text, len(text)
        case ThinkingPart(content=text, signature=signature):
            return "", len(text) or bool(signature)
        case ThinkingPartDelta(content_delta=text, signature_delta=signature):
            return "", len(text or "") or bool(signature)
        case ToolCallPart(tool_name=name, args=arguments):
            return "", len(name) + len(str(arguments or ""))
        case ToolCallPartDelta(tool_name_delta=name, args_delta=arguments):
            return "", len(name or "") + len(str(arguments or ""))
    return "", 0


def ending(
    response: ModelResponse, bounds: Bounds, *, has_text: bool, broken: str = ""
) -> list[ModelEvent]:
    """The tool calls and the :class:`Done` of a stream that ended by itself or, with ``broken``
    saying how, did not. ``has_text`` is whether any text was passed on.

    Without the provider's word that the answer is complete, it is cut: only calls whose arguments
    are whole are kept. (A JSON object ends at its last brace, so one that parses was written to its
    end.) A break after that word took nothing away. An answer that the provider's content filter
    ended has no calls, and its stop is ``filtered``; with a refusal, in the provider's own words.
    """
    details = response.provider_details or {}
    usage = usage_of(response, bounds.sent, bounds.read)
    if refusal := _refusal(response):
        return [Done(usage, "filtered", f"it refused: {refusal}")]
    if response.finish_reason == "content_filter":
        return [Done(usage, "filtered", "its content filter stopped the answer")]
    if details.get("finish_reason"):
        return _complete(response, usage)
    calls: list[ModelEvent] = [
        ToolCall(call.tool_call_id, call.tool_name, raw)
        for call in response.tool_calls
        if _whole(raw := _raw(call, empty=""))
    ]
    return [*calls, Done(usage, "cut", broken or "it ended early")]


def _refusal(response: ModelResponse) -> str:
    """The provider's words in place of an answer; empty for none."""
    words = (response.provider_details or {}).get("refusal")
    return " ".join(words.split()) if isinstance(words, str) else ""


def _complete(response: ModelResponse, usage: Usage) -> list[ModelEvent]:
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
        Done(usage, "length" if length else "tool" if calls else "end"),
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


def usage_of(response: ModelResponse, sent: int, read: int) -> Usage:
    """Tokens as the provider counted them (cached ones are in the input too), and the price.

    Where it counted none for a prompt of ``sent`` and an answer of ``read`` characters, as when the stream
    broke, or where its numbers cannot be, they are counted here: a limit of tokens binds nevertheless.
    """
    usage, doubt = response.usage, ""
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
    if not all(_is_count(count) for count in counts):
        shown = ", ".join(repr(count)[:_SHOWN] for count in counts)
        doubt = (
            f"The provider reported impossible numbers of tokens ({shown}); they are not counted."
        )
        kept = [count if _is_count(count) else 0 for count in counts]
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens = kept
        usage.cache_write_tokens = 0
    if read and not usage.input_tokens:
        usage.input_tokens = sent // _CHARACTERS_OF_A_TOKEN
    if not usage.output_tokens or read // MOST_CHARACTERS_OF_A_TOKEN > usage.output_tokens:
        usage.output_tokens = read // _CHARACTERS_OF_A_TOKEN
    usage.cache_read_tokens = min(usage.cache_read_tokens, usage.input_tokens)
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        doubt=doubt,
        **cost_by_list(response),
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= MOST_TOKENS_OF_A_CALL


def _raw(call: ToolCallPart, *, empty: str) -> str:
    if isinstance(call.args, str):
        return call.args or empty
    return json.dumps(call.args, ensure_ascii=False) if call.args else empty


def _whole(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False
