"""Claude Code's ``--output-format stream-json``: one JSON object a line.

``system`` opens it, ``assistant`` and ``user`` carry messages, tool calls and their results,
``stream_event`` pieces of a message (``--include-partial-messages``), ``result`` ends it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from cockpit.agents.stream_events import (
    AgentMessage,
    AgentStarted,
    Finish,
    StreamEvent,
    TextPiece,
    TokenUsage,
    ToolEnded,
    ToolStarted,
    UnreadableLine,
    UsageUpdate,
)
from cockpit.core.json_fields import Object, count, inner, objects, price, read_object, text

TYPES = frozenset(("system", "assistant", "user", "result", "stream_event"))
_CODE = re.compile(r"\s*(?:Error: )?Exit code (\d{1,3})\b")


class ClaudeStream:
    """The stream of one run. ``take`` lines in order; ``finish`` is there once it told its end."""

    def __init__(self) -> None:
        self.finished: Finish | None = None
        self._by_message: dict[str, TokenUsage] = {}

    def take(self, line: str) -> list[StreamEvent]:
        """What a line tells."""
        body = read_object(line)
        if body is None:
            return (
                [UnreadableLine(f"no JSON object: {line.strip()[:200]!r}")] if line.strip() else []
            )
        match body.get("type"):
            case "system" if body.get("subtype") == "init":
                return [AgentStarted(text(body, "session_id"), text(body, "model"))]
            case "stream_event":
                return self._piece(body)
            case "assistant":
                return self._assistant(body)
            case "user":
                blocks = objects(inner(body, "message"), "content")
                return [_result(one) for one in blocks if one.get("type") == "tool_result"]
            case "result":
                self.finished = self._end(body)
        return []

    def close(self, code: int) -> Finish | None:
        """How it ended, when the program has ended with ``code``; None when it never told."""
        return self.finished

    def _piece(self, body: Object) -> list[StreamEvent]:
        event = inner(body, "event")
        delta = inner(event, "delta")
        # What a helper of the agent's says to it is not said to anybody here.
        if body.get("parent_tool_use_id") or delta.get("type") != "text_delta":
            return []
        return [TextPiece(text(delta, "text"))]

    def _assistant(self, body: Object) -> list[StreamEvent]:
        message = inner(body, "message")
        told: list[StreamEvent] = []
        for block in objects(message, "content"):
            if block.get("type") == "tool_use":
                arguments = inner(block, "input")
                told.append(ToolStarted(text(block, "id"), text(block, "name"), arguments))
            elif block.get("type") == "text" and not body.get("parent_tool_use_id"):
                told.append(AgentMessage(text(block, "text")))
        usage = inner(message, "usage")
        if usage:
            self._by_message[text(message, "id")] = _spent(usage)
            told.append(UsageUpdate(_sum(list(self._by_message.values()))))
        return told

    def _end(self, body: Object) -> Finish:
        cost = price(body, "total_cost_usd")
        models = [one for one in inner(body, "modelUsage").values() if isinstance(one, dict)]
        # Helpers of the agent's, and other models that it asked, are counted by model alone.
        spent = _sum([_by_model(one) for one in models]) if models else _spent(inner(body, "usage"))
        spent = replace(spent, cost_usd=cost)
        ok = body.get("is_error") is not True and body.get("subtype") == "success"
        words = text(body, "result")
        if not ok:
            words = words or text(body, "subtype").replace("_", " ")
        return Finish(ok, words, spent)


def _result(block: Object) -> ToolEnded:
    failed = block.get("is_error") is True
    output = _words(block.get("content"))
    found = _CODE.match(output) if failed else None
    code = int(found[1]) if found else None
    return ToolEnded(text(block, "tool_use_id"), output, failed, code)


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(one, "text") for one in objects({"content": content}, "content"))


def _spent(usage: Object) -> TokenUsage:
    cached = count(usage, "cache_read_input_tokens")
    fresh = count(usage, "input_tokens") + count(usage, "cache_creation_input_tokens")
    return TokenUsage(fresh + cached, count(usage, "output_tokens"), cached)


def _by_model(usage: Object) -> TokenUsage:
    cached = count(usage, "cacheReadInputTokens")
    fresh = count(usage, "inputTokens") + count(usage, "cacheCreationInputTokens")
    return TokenUsage(fresh + cached, count(usage, "outputTokens"), cached)


def _sum(several: list[TokenUsage]) -> TokenUsage:
    return TokenUsage(
        sum(one.input_tokens for one in several),
        sum(one.output_tokens for one in several),
        sum(one.cached_tokens for one in several),
    )
