"""The stream of Codex (``exec --json``): one JSON object a line.

``thread.started`` opens it; ``item.started`` and ``item.completed`` carry messages, commands, file
changes and tool calls; ``turn.completed`` or ``turn.failed`` ends it. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

from typing import Any

from cockpit.agents.streams.stream_events import (
    AgentMessage,
    AgentStarted,
    Finish,
    StreamEvent,
    TokenUsage,
    ToolEnded,
    ToolStarted,
    UnreadableLine,
    call_title,
)
from cockpit.core.json_fields import (
    JsonObject,
    get_count,
    get_object,
    get_objects,
    get_text,
    parse_object,
)
from cockpit.core.secrets import mask

TYPES = ("thread.", "turn.", "item.")


class CodexStream:
    """The stream of one run, like :class:`~cockpit.agents.streams.claude_stream.ClaudeStream`."""

    reports_cost = False
    reports_tools = True

    def __init__(self) -> None:
        self.finished: Finish | None = None
        self._last_message = ""
        self._error = ""
        self._started_calls: set[str] = set()
        self._refused: list[str] = []

    def feed(self, line: str) -> list[StreamEvent]:
        """Return the events in a line."""
        body = parse_object(line)
        if body is None:
            return (
                [UnreadableLine(f"no JSON object: {line.strip()[:200]!r}")] if line.strip() else []
            )
        match body.get("type"):
            case "thread.started":
                return [AgentStarted(get_text(body, "thread_id"))]
            case "item.started":
                return self._started(get_object(body, "item"))
            case "item.completed":
                return self._completed(get_object(body, "item"))
            case "turn.completed":
                usage = _usage(get_object(body, "usage"))
                self.finished = Finish(True, self._last_message, usage, tuple(self._refused))
            case "turn.failed":
                error = get_text(get_object(body, "error"), "message")
                self.finished = Finish(False, error or self._error or "the turn failed")
            case "error":
                self._error = get_text(body, "message")
        return []

    def close(self, exit_code: int) -> Finish | None:
        """Return the reported end or error, when the program has exited; None without either."""
        if self.finished is None and self._error:
            return Finish(False, self._error)
        return self.finished

    def _started(self, item: JsonObject) -> list[StreamEvent]:
        call = _tool_call(item)
        if call is None or call.call_id in self._started_calls:
            return []
        self._started_calls.add(call.call_id)
        return [call]

    def _completed(self, item: JsonObject) -> list[StreamEvent]:
        kind = item.get("type")
        if kind == "agent_message":
            self._last_message = get_text(item, "text")
            return [AgentMessage(self._last_message)]
        if kind == "error":
            return [UnreadableLine(get_text(item, "message")[:400])]
        if kind not in _TOOLS:
            return []
        call = _tool_call(item)
        if call is not None and get_text(item, "status") == "declined":
            self._refused.append(mask(call_title(call)))
        return [*self._started(item), _tool_result(item)]


_TOOLS = {
    "command_execution": "shell",
    "file_change": "apply_patch",
    "mcp_tool_call": "mcp",
    "web_search": "web_search",
}
_CHANGES = {"add": "Add", "delete": "Delete", "update": "Update"}


def _tool_call(item: JsonObject) -> ToolStarted | None:
    """Return the tool call that the item is; None for any other item."""
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in _TOOLS:
        return None
    tool: str = _TOOLS[kind]
    arguments: dict[str, Any] = {}
    match kind:
        case "command_execution":
            arguments = {"command": get_text(item, "command")}
        case "file_change":
            # In the form of Codex's own patches: the stream names the files only.
            lines = [
                f"*** {_CHANGES.get(get_text(change, 'kind'), 'Update')} File:"
                f" {get_text(change, 'path')}"
                for change in get_objects(item, "changes")
            ]
            arguments = {"input": "\n".join(lines)}
        case "mcp_tool_call":
            tool = f"{get_text(item, 'server')}.{get_text(item, 'tool')}"
            arguments = dict(get_object(item, "arguments"))
        case _:
            arguments = {"query": get_text(item, "query")}
    return ToolStarted(get_text(item, "id"), tool, arguments)


def _tool_result(item: JsonObject) -> ToolEnded:
    code = item.get("exit_code")
    exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
    failed = get_text(item, "status") in ("failed", "declined") or bool(exit_code)
    output = get_text(item, "aggregated_output") or get_text(get_object(item, "error"), "message")
    return ToolEnded(get_text(item, "id"), output, failed, exit_code)


def _usage(usage: JsonObject) -> TokenUsage:
    return TokenUsage(
        get_count(usage, "input_tokens"),
        get_count(usage, "output_tokens"),
        get_count(usage, "cached_input_tokens"),
    )
