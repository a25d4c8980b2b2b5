"""Claude Code over stdio: its stream, and its requests for permission (``can_use_tool``).

Started with ``--input-format stream-json --permission-prompt-tool stdio``. Both sides send
``control_request`` and answer with ``control_response``. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Literal

from msgspec.structs import replace

from cockpit.agents.stdio.permissions import Permissions
from cockpit.agents.streams.stream_events import (
    Finish,
    StreamEvent,
    ToolEnded,
    ToolStarted,
    UnreadableLine,
)
from cockpit.agents.streams.stream_formats import ClaudeStream
from cockpit.core.json_fields import JsonObject, get_object, get_text, parse_object
from cockpit.loop.permissions.ask_permission import PermissionAnswer
from cockpit.loop.permissions.read_tool_request import read_claude_tool

_LONGEST_KEY = 200
"""Characters of Claude Code's own id of a request."""
_ANSWER_TOOL = "StructuredOutput"
"""The tool by which Claude Code gives its answer in a form; it does nothing else."""


class ClaudeDialogue:
    """The dialogue of one run in the folder ``cwd``: a stream that answers."""

    reports_usage = True

    def __init__(self, prompt: str, permissions: Permissions, *, cwd: str) -> None:
        self.permissions = permissions
        self._prompt, self._cwd = prompt, cwd
        self._stream = ClaudeStream()
        self._stdin: asyncio.StreamWriter | None = None
        self._sent = 0
        self._answer_calls: set[str] = set()

    def begin(self, stdin: asyncio.StreamWriter) -> None:
        """Initialize, and send the prompt; called once, when the agent has started."""
        self._stdin = stdin
        self._request({"subtype": "initialize", "hooks": None})
        content = [{"type": "text", "text": self._prompt}]
        message = {"role": "user", "content": content}
        self._send(
            {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""}
        )

    def feed(self, line: str) -> list[StreamEvent]:
        """Return the events in a line; its requests are answered, now or when the user decides."""
        body = parse_object(line)
        match get_text(body, "type") if body is not None else "":
            case "control_request" if body is not None:
                return self._serve(get_text(body, "request_id"), get_object(body, "request"))
            case "control_cancel_request" if body is not None:
                self.permissions.withdraw(get_text(body, "request_id"))
                return []
            case "control_response" if body is not None:
                return _failure(get_object(body, "response"))
            case "result" if body is not None:
                events = self._stream.feed(line)
                self._finish(body)
                return events
        return [event for event in self._stream.feed(line) if not self._gives_answer(event)]

    def close(self, exit_code: int) -> Finish | None:
        """Return the reported end, with what it was refused; None without one."""
        finish = self._stream.close(exit_code)
        if finish is None:
            return None
        # Its own list names the calls that were refused to it, ours those that a user or a rule refused.
        return replace(finish, refused=tuple(self.permissions.refused) or finish.refused)

    def interrupt(self) -> None:
        """Ask it to stop; its process is ended soon after."""
        self._request({"subtype": "interrupt"})

    def waited_s(self) -> float:
        """Return the seconds that it waited for the user."""
        return self.permissions.waited_s()

    def _request(self, request: JsonObject) -> None:
        self._sent += 1
        body = {"type": "control_request", "request_id": f"cockpit-{self._sent}"}
        self._send({**body, "request": request})

    def _serve(self, request_id: str, request: JsonObject) -> list[StreamEvent]:
        subtype = get_text(request, "subtype")
        if subtype != "can_use_tool" or not 0 < len(request_id) <= _LONGEST_KEY:
            words = f"cockpit does not answer {subtype[:100]!r}"
            body = {"subtype": "error", "request_id": request_id, "error": words}
            self._send({"type": "control_response", "response": body})
            return [UnreadableLine(f"a request that cockpit does not answer: {subtype[:100]!r}")]
        tool, arguments = get_text(request, "tool_name"), get_object(request, "input")
        tool_request = read_claude_tool(
            tool,
            arguments,
            call_id=get_text(request, "tool_use_id")[:_LONGEST_KEY],
            cwd=self._cwd,
            why=get_text(request, "decision_reason") or get_text(request, "description"),
        )

        def reply(answer: PermissionAnswer) -> None:
            if answer.allowed:
                given = arguments if answer.input is None else dict(answer.input)
                decision: JsonObject = {"behavior": "allow", "updatedInput": given}
            else:
                ends = answer.end == "expired"
                decision = {"behavior": "deny", "message": answer.message, "interrupt": ends}
            body = {"subtype": "success", "request_id": request_id, "response": decision}
            self._send({"type": "control_response", "response": body})

        self.permissions.begin(request_id, tool_request, reply)
        return []

    def _finish(self, body: JsonObject) -> None:
        """Take the answer in its form, and let the agent end."""
        finish = self._stream.finished
        answer = write_answer(get_object(body, "structured_output"))
        if finish is not None and finish.ok and answer:
            self._stream.finished = replace(finish, text=answer)
        if self._stdin is not None:
            self._stdin.close()

    def _gives_answer(self, event: StreamEvent) -> bool:
        """Whether the event is of the tool that only gives the answer: nothing is done by it."""
        if isinstance(event, ToolStarted) and event.tool == _ANSWER_TOOL:
            self._answer_calls.add(event.call_id)
            return True
        return isinstance(event, ToolEnded) and event.call_id in self._answer_calls

    def _send(self, body: JsonObject) -> None:
        """Write one line. What is written after the end is dropped."""
        if self._stdin is not None and not self._stdin.is_closing():
            line = json.dumps(body, separators=(",", ":")).encode("utf-8", "replace")
            self._stdin.write(line + b"\n")


def _failure(response: JsonObject) -> list[StreamEvent]:
    if get_text(response, "subtype") != "error":
        return []
    return [UnreadableLine(f"it refused a request of cockpit: {get_text(response, 'error')[:300]}")]


AnswerForm = Literal["status", "verdict"]
"""What a role ends with: the status of its work, or a reviewer's verdict."""

STATUSES = ("done", "nothing_to_do", "blocked", "needs_answer")
VERDICTS = ("PASS", "FAIL", "BLOCKED")


def schema_text(form: AnswerForm) -> str:
    """Return the schema as one argument of a command; every field is required."""
    text = {"type": "string"}
    fields: dict[str, Any] = {"status": {"type": "string", "enum": list(STATUSES)}, "summary": text}
    if form == "verdict":
        fields = {
            "verdict": {"type": "string", "enum": list(VERDICTS)},
            "looked_at": text,
            "findings": text,
        }
    schema = {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
    return json.dumps(schema, separators=(",", ":"))


def write_answer(answer: Mapping[str, Any]) -> str:
    """Return an answer in that form as the text that a role's last message is; empty for another form."""
    verdict, status = get_text(answer, "verdict"), get_text(answer, "status")
    if verdict in VERDICTS:
        looked_at = " ".join(get_text(answer, "looked_at").split())
        seen = f"\nLOOKED AT: {looked_at}" if looked_at else ""
        return f"VERDICT: {verdict}{seen}\n\n{get_text(answer, 'findings')}".strip()
    if status not in STATUSES:
        return ""
    summary = get_text(answer, "summary").strip()
    if status == "needs_answer":
        return summary or "It needs an answer and did not say to what."
    return f"STATUS: {status.replace('_', ' ')}\n{summary}".strip()
