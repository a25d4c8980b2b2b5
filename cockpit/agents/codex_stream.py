"""Codex's ``exec --json``: one JSON object a line.

``thread.started`` opens it, ``item.started`` and ``item.completed`` carry messages, commands, file
changes and tool calls, ``turn.completed`` or ``turn.failed`` ends it.
"""

from __future__ import annotations

from typing import Any

from cockpit.agents.stream_events import (
    AgentMessage,
    AgentStarted,
    Finish,
    StreamEvent,
    TokenUsage,
    ToolEnded,
    ToolStarted,
    UnreadableLine,
)
from cockpit.core.json_fields import Object, count, inner, objects, read_object, text

TYPES = ("thread.", "turn.", "item.")


class CodexStream:
    """The stream of one run, as :class:`~cockpit.agents.claude_stream.ClaudeStream`."""

    def __init__(self) -> None:
        self.finished: Finish | None = None
        self._last = ""
        self._error = ""
        self._begun: set[str] = set()

    def take(self, line: str) -> list[StreamEvent]:
        """What a line tells."""
        body = read_object(line)
        if body is None:
            return (
                [UnreadableLine(f"no JSON object: {line.strip()[:200]!r}")] if line.strip() else []
            )
        match body.get("type"):
            case "thread.started":
                return [AgentStarted(text(body, "thread_id"))]
            case "item.started":
                return self._began(inner(body, "item"))
            case "item.completed":
                return self._completed(inner(body, "item"))
            case "turn.completed":
                self.finished = Finish(True, self._last, _spent(inner(body, "usage")))
            case "turn.failed":
                words = text(inner(body, "error"), "message") or self._error or "the turn failed"
                self.finished = Finish(False, words)
            case "error":
                self._error = text(body, "message")
        return []

    def close(self, code: int) -> Finish | None:
        """How it ended; None when it never told, unless it told what went wrong."""
        if self.finished is None and self._error:
            return Finish(False, self._error)
        return self.finished

    def _began(self, item: Object) -> list[StreamEvent]:
        used = _used(item)
        if used is None or used[0] in self._begun:
            return []
        self._begun.add(used[0])
        return [ToolStarted(*used)]

    def _completed(self, item: Object) -> list[StreamEvent]:
        kind = item.get("type")
        if kind == "agent_message":
            self._last = text(item, "text")
            return [AgentMessage(self._last)]
        if kind == "error":
            return [UnreadableLine(text(item, "message")[:400])]
        if kind not in _KINDS:
            return []
        return [*self._began(item), _ended(item)]


_KINDS = {
    "command_execution": "shell",
    "file_change": "apply_patch",
    "mcp_tool_call": "mcp",
    "web_search": "web_search",
}
_CHANGES = {"add": "Add", "delete": "Delete", "update": "Update"}


def _used(item: Object) -> tuple[str, str, dict[str, Any]] | None:
    """(its id, the tool, its arguments) of an item that is a use of one."""
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        return None
    tool, arguments = _KINDS[kind], {}
    match kind:
        case "command_execution":
            arguments = {"command": text(item, "command")}
        case "file_change":
            # As its own patches name files: no more than that is known of them.
            lines = [
                f"*** {_CHANGES.get(text(one, 'kind'), 'Update')} File: {text(one, 'path')}"
                for one in objects(item, "changes")
            ]
            arguments = {"input": "\n".join(lines)}
        case "mcp_tool_call":
            tool = f"{text(item, 'server')}.{text(item, 'tool')}"
            arguments = dict(inner(item, "arguments"))
        case _:
            arguments = {"query": text(item, "query")}
    return text(item, "id"), tool, arguments


def _ended(item: Object) -> ToolEnded:
    code = item.get("exit_code")
    known = code if isinstance(code, int) and not isinstance(code, bool) else None
    failed = text(item, "status") in ("failed", "declined") or bool(known)
    output = text(item, "aggregated_output") or text(inner(item, "error"), "message")
    return ToolEnded(text(item, "id"), output, failed, known)


def _spent(usage: Object) -> TokenUsage:
    return TokenUsage(
        count(usage, "input_tokens"),
        count(usage, "output_tokens"),
        count(usage, "cached_input_tokens"),
    )
