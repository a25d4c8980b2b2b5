"""The three streaming protocols: each turns a :class:`Say` into server-sent events, in order."""

from __future__ import annotations

import json
from typing import Any

from loopback.replies import Refuse, Say

Event = tuple[str, dict[str, Any] | str]


def encoded(event: Event) -> bytes:
    """One server-sent event as bytes; a nameless one has only its data line."""
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def halves(text: str) -> list[str]:
    """Arguments come in two deltas, so that a stream can break between them."""
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]


def messages(say: Say, model: str) -> list[Event]:
    """Anthropic Messages."""
    usage = {
        "input_tokens": say.input_tokens - say.cached_tokens,
        "cache_read_input_tokens": say.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    head: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[Event] = [("message_start", {"type": "message_start", "message": head})]
    index = 0

    def block(start: dict[str, Any], deltas: list[dict[str, Any]]) -> None:
        nonlocal index
        name = "content_block_start"
        events.append((name, {"type": name, "index": index, "content_block": start}))
        name = "content_block_delta"
        events.extend((name, {"type": name, "index": index, "delta": delta}) for delta in deltas)
        name = "content_block_stop"
        events.append((name, {"type": name, "index": index}))
        index += 1

    if say.redacted:
        block({"type": "redacted_thinking", "data": say.signature}, [])
    elif say.thinking:
        block(
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": say.thinking},
                {"type": "signature_delta", "signature": say.signature},
            ],
        )
    if say.text:
        block(
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": fragment} for fragment in say.fragments],
        )
    for number, use in enumerate(say.calls):
        block(
            {"type": "tool_use", "id": use.named(number), "name": use.name, "input": {}},
            [{"type": "input_json_delta", "partial_json": part} for part in halves(use.text)],
        )
    reasons = {"length": "max_tokens", "filter": "refusal"}
    reason = reasons[say.stop] if say.stop else "tool_use" if say.calls else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    end = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": say.output_tokens}}
    return [*events, ("message_delta", end), ("message_stop", {"type": "message_stop"})]


def chat(say: Say, model: str) -> list[Event]:
    """OpenAI chat completions."""

    def chunk(delta: dict[str, Any] | None, reason: str | None = None, **more: Any) -> Event:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
        body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model}
        return "", {**body, "choices": choices, **more}

    events = [chunk({"role": "assistant", "content": ""})]
    if say.thinking:
        events.append(chunk({"reasoning_content": say.thinking}))
    if say.refusal:
        events.append(chunk({"refusal": say.refusal}))
    events += [chunk({"content": fragment}) for fragment in say.fragments]
    for number, use in enumerate(say.calls):
        function = {"name": use.name, "arguments": ""}
        opening = {"index": number, "id": use.named(number), "type": "function"}
        events.append(chunk({"tool_calls": [{**opening, "function": function}]}))
        events += [
            chunk({"tool_calls": [{"index": number, "function": {"arguments": part}}]})
            for part in halves(use.text)
        ]
    reasons = {"length": "length", "filter": "content_filter"}
    events.append(
        chunk({}, reasons[say.stop] if say.stop else "tool_calls" if say.calls else "stop")
    )
    usage = {
        "prompt_tokens": say.input_tokens,
        "completion_tokens": say.output_tokens,
        "total_tokens": say.input_tokens + say.output_tokens,
        "prompt_tokens_details": {"cached_tokens": say.cached_tokens},
    }
    return [*events, chunk(None, usage=usage), ("", "[DONE]")]


def responses(say: Say, model: str) -> list[Event]:
    """OpenAI Responses."""
    events: list[Event] = []
    output: list[dict[str, Any]] = []

    def emit(kind: str, **body: Any) -> None:
        events.append((kind, {"type": kind, "sequence_number": len(events), **body}))

    def state(status: str, **more: Any) -> dict[str, Any]:
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": model,
            "status": status,
            "output": list(output),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            **more,
        }

    def finish(done: dict[str, Any]) -> None:
        emit("response.output_item.done", output_index=len(output), item=done)
        output.append(done)

    emit("response.created", response=state("in_progress"))
    if say.thinking:
        reasoning = {"id": f"rs_{say.signature[:8]}", "type": "reasoning", "summary": []}
        emit("response.output_item.added", output_index=len(output), item=reasoning)
        summary = [] if say.redacted else [{"type": "summary_text", "text": say.thinking}]
        for part in summary:
            place = {"item_id": reasoning["id"], "output_index": len(output), "summary_index": 0}
            empty = {**part, "text": ""}
            emit("response.reasoning_summary_part.added", **place, part=empty)
            emit("response.reasoning_summary_text.delta", **place, delta=say.thinking)
            emit("response.reasoning_summary_text.done", **place, text=say.thinking)
            emit("response.reasoning_summary_part.done", **place, part=part)
        finish({**reasoning, "summary": summary, "encrypted_content": say.signature})
    if say.text:
        place = {"item_id": "msg_1", "output_index": len(output), "content_index": 0}
        message = {"id": "msg_1", "type": "message", "role": "assistant"}
        opening = {**message, "status": "in_progress", "content": []}
        emit("response.output_item.added", output_index=len(output), item=opening)
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        emit("response.content_part.added", **place, part=part)
        for fragment in say.fragments:
            emit("response.output_text.delta", **place, delta=fragment, logprobs=[])
        emit("response.output_text.done", **place, text=say.text, logprobs=[])
        part = {**part, "text": say.text}
        emit("response.content_part.done", **place, part=part)
        finish({**message, "status": "completed", "content": [part]})
    for number, use in enumerate(say.calls):
        call = {"id": f"fc_{number}", "type": "function_call", "name": use.name}
        call["call_id"] = use.named(number)
        opening = {**call, "status": "in_progress", "arguments": ""}
        where = {"item_id": f"fc_{number}", "output_index": len(output)}
        emit("response.output_item.added", output_index=len(output), item=opening)
        for delta in halves(use.text):
            emit("response.function_call_arguments.delta", **where, delta=delta)
        emit("response.function_call_arguments.done", **where, name=use.name, arguments=use.text)
        finish({**call, "status": "completed", "arguments": use.text})
    usage = {
        "input_tokens": say.input_tokens,
        "input_tokens_details": {"cached_tokens": say.cached_tokens},
        "output_tokens": say.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": say.input_tokens + say.output_tokens,
    }
    if say.stop is None:
        emit("response.completed", response=state("completed", usage=usage))
    else:
        why = {"length": "max_output_tokens", "filter": "content_filter"}[say.stop]
        body = state("incomplete", usage=usage, incomplete_details={"reason": why})
        emit("response.incomplete", response=body)
    return events


def stream_error(path: str, kind: str) -> Event:
    """An error in the middle of a stream, in the shape of the protocol behind ``path``."""
    error = {"type": kind, "message": "it broke off", "code": kind}
    if path.endswith("/messages"):
        return "error", {"type": "error", "error": {"type": kind, "message": "it broke off"}}
    if path.endswith("/responses"):
        return "error", {**error, "type": "error", "param": None, "sequence_number": 99}
    return "", {"error": error}


def refusal(path: str, refuse: Refuse) -> dict[str, Any]:
    """The body of an HTTP error, in the shape of the protocol behind ``path``."""
    if path.endswith("/messages"):
        return {"type": "error", "error": {"type": refuse.kind, "message": refuse.message}}
    return {
        "error": {
            "message": refuse.message,
            "type": refuse.kind,
            "code": refuse.code,
            "param": None,
        }
    }


PROTOCOLS = {
    "/v1/messages": messages,
    "/v1/chat/completions": chat,
    "/v1/responses": responses,
}
