"""The formats of agents' output streams: chosen by a runner's settings or its command.

Claude Code's (``--output-format stream-json``) has one JSON object a line: ``system`` opens it; ``assistant``
and ``user`` carry messages, tool calls and results; ``stream_event`` carries pieces of a message
(``--include-partial-messages``); ``result`` ends it.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from cockpit.agents.streams.stream_events import (
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
from cockpit.core.json_fields import (
    JsonObject,
    get_count,
    get_object,
    get_objects,
    get_price,
    get_text,
    parse_object,
)
from cockpit.core.secrets import mask

LONGEST_TEXT = 200_000
"""Characters of one message; the rest is left out."""


class Stream(Protocol):
    """The reader of one format."""

    @property
    def reports_usage(self) -> bool:
        """Whether it shows the agent's tools, its tokens and a price."""
        ...

    def feed(self, line: str) -> list[StreamEvent]:
        """Return the events in a line, which comes without its end."""
        ...

    def close(self, exit_code: int) -> Finish | None:
        """Return how the run ended, when the program has exited; None without a reported end."""
        ...


class TextStream:
    """Plain text: all of it is one message, and exit code 0 is its end.

    Of a long text the start is streamed, and the message keeps start and end: the status is its last line.
    """

    reports_usage = False

    def __init__(self) -> None:
        self._start = ""
        self._end: deque[str] = deque()
        self._end_length = self._left_out = 0

    def feed(self, line: str) -> list[StreamEvent]:
        """Return the line as a piece of the message; none once the message is long."""
        line += "\n"
        if not self._end and len(self._start) + len(line) <= LONGEST_TEXT // 4:
            self._start += line
            return [TextPiece(line)]
        self._end.append(line)
        self._end_length += len(line)
        while self._end_length > LONGEST_TEXT // 2 and len(self._end) > 1:
            self._left_out += len(self._end[0])
            self._end_length -= len(self._end.popleft())
        return []

    def close(self, exit_code: int) -> Finish | None:
        """Return the text; None after a failure."""
        left_out = f"[… {self._left_out:,} characters are left out …]\n" if self._left_out else ""
        text = f"{self._start}{left_out}{''.join(self._end)}".strip()
        return Finish(True, text) if exit_code == 0 else None


def open_stream(name: str, command: Sequence[str]) -> Stream:
    """Return a reader of a format; ``auto``: of Claude Code's where ``command`` asks for it, else of text."""
    if name == "claude" or (name == "auto" and "stream-json" in command):
        return ClaudeStream()
    return TextStream()


TYPES = frozenset(("system", "assistant", "user", "result", "stream_event"))
_MAX_REFUSED = 50
_EXIT_CODE = re.compile(r"\s*(?:Error: )?Exit code (\d{1,3})\b")


class ClaudeStream:
    """The stream of one run: feed it lines in order; ``finished`` is set once it reported its end."""

    reports_usage = True

    def __init__(self) -> None:
        self.finished: Finish | None = None
        self._usage_by_message: dict[str, TokenUsage] = {}

    def feed(self, line: str) -> list[StreamEvent]:
        """Return the events in a line."""
        body = parse_object(line)
        if body is None:
            return (
                [UnreadableLine(f"no JSON object: {line.strip()[:200]!r}")] if line.strip() else []
            )
        match body.get("type"):
            case "system" if body.get("subtype") == "init":
                return [AgentStarted(get_text(body, "session_id"), get_text(body, "model"))]
            case "stream_event":
                return self._text_pieces(body)
            case "assistant":
                return self._assistant_events(body)
            case "user":
                blocks = get_objects(get_object(body, "message"), "content")
                return [
                    _tool_result(block) for block in blocks if block.get("type") == "tool_result"
                ]
            case "result":
                self.finished = self._finish(body)
        return []

    def close(self, exit_code: int) -> Finish | None:
        """Return the reported end, when the program has exited; None without one."""
        return self.finished

    def _text_pieces(self, body: JsonObject) -> list[StreamEvent]:
        event = get_object(body, "event")
        delta = get_object(event, "delta")
        # A subagent's text is addressed to the agent, not to the user.
        if body.get("parent_tool_use_id") or delta.get("type") != "text_delta":
            return []
        return [TextPiece(get_text(delta, "text"))]

    def _assistant_events(self, body: JsonObject) -> list[StreamEvent]:
        message = get_object(body, "message")
        events: list[StreamEvent] = []
        for block in get_objects(message, "content"):
            if block.get("type") == "tool_use":
                arguments = get_object(block, "input")
                events.append(
                    ToolStarted(get_text(block, "id"), get_text(block, "name"), arguments)
                )
            elif block.get("type") == "text" and not body.get("parent_tool_use_id"):
                events.append(AgentMessage(get_text(block, "text")))
        usage = get_object(message, "usage")
        if usage:
            self._usage_by_message[get_text(message, "id")] = message_usage(usage)
            events.append(UsageUpdate(sum_usage(list(self._usage_by_message.values()))))
        return events

    def _finish(self, body: JsonObject) -> Finish:
        by_model = [
            usage for usage in get_object(body, "modelUsage").values() if isinstance(usage, dict)
        ]
        # Subagents and other models are counted only in the usage by model.
        usage = (
            sum_usage([_model_usage(entry) for entry in by_model])
            if by_model
            else message_usage(get_object(body, "usage"))
        )
        usage = replace(usage, cost_usd=get_price(body, "total_cost_usd"))
        ok = body.get("is_error") is not True and body.get("subtype") == "success"
        text = get_text(body, "result")
        if not ok:
            text = text or get_text(body, "subtype").replace("_", " ")
        return Finish(ok, text, usage, _refused(body))


def _refused(body: JsonObject) -> tuple[str, ...]:
    """Return the calls in ``permission_denials``, each as it was started."""
    denials = get_objects(body, "permission_denials")[:_MAX_REFUSED]
    calls = (
        ToolStarted("", get_text(denial, "tool_name"), get_object(denial, "tool_input"))
        for denial in denials
    )
    return tuple(mask(call.title) for call in calls)


def _tool_result(block: JsonObject) -> ToolEnded:
    failed = block.get("is_error") is True
    output = _content_text(block.get("content"))
    match = _EXIT_CODE.match(output) if failed else None
    exit_code = int(match[1]) if match else None
    return ToolEnded(get_text(block, "tool_use_id"), output, failed, exit_code)


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        get_text(block, "text") for block in get_objects({"content": content}, "content")
    )


def message_usage(usage: JsonObject) -> TokenUsage:
    """Read the usage of one message of Claude Code."""
    cached = get_count(usage, "cache_read_input_tokens")
    fresh = get_count(usage, "input_tokens") + get_count(usage, "cache_creation_input_tokens")
    return TokenUsage(fresh + cached, get_count(usage, "output_tokens"), cached)


def _model_usage(usage: JsonObject) -> TokenUsage:
    cached = get_count(usage, "cacheReadInputTokens")
    fresh = get_count(usage, "inputTokens") + get_count(usage, "cacheCreationInputTokens")
    return TokenUsage(fresh + cached, get_count(usage, "outputTokens"), cached)


def sum_usage(usages: list[TokenUsage]) -> TokenUsage:
    """Return what several messages used together."""
    return TokenUsage(
        sum(usage.input_tokens for usage in usages),
        sum(usage.output_tokens for usage in usages),
        sum(usage.cached_tokens for usage in usages),
    )
