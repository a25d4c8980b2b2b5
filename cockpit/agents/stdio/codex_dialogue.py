"""Codex over its app-server protocol: JSON-RPC without its version, one message a line.

Its items are those of ``codex exec --json`` in other spelling; they are read as those. Approvals are
requests to us. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from cockpit import __version__
from cockpit.agents.stdio.answer_schema import AnswerForm, answer_schema, read_answer
from cockpit.agents.stdio.dialogue import LONGEST_KEY, Wire
from cockpit.agents.stdio.permissions import Permissions
from cockpit.agents.streams.codex_stream import CodexStream
from cockpit.agents.streams.stream_events import (
    AgentMessage,
    AgentStarted,
    Finish,
    StreamEvent,
    TextPiece,
    TokenUsage,
    UnreadableLine,
    UsageUpdate,
)
from cockpit.core.json_fields import (
    JsonObject,
    get_count,
    get_object,
    get_objects,
    get_text,
    parse_object,
)
from cockpit.loop.permissions.ask_permission import PermissionAnswer
from cockpit.loop.permissions.read_tool_request import (
    read_codex_approval,
    read_elicitation,
    read_user_input,
)
from cockpit.loop.permissions.tool_request import ToolRequest

_INITIALIZE, _THREAD, _TURN = 1, 2, 3
_METHOD_MISSING = -32601
_MOST_ITEMS = 2_000
_NEW_APPROVALS = {
    "item/commandExecution/requestApproval": ("accept", "decline", "cancel"),
    "item/fileChange/requestApproval": ("accept", "decline", "cancel"),
    "execCommandApproval": ("approved", "denied", "abort"),
    "applyPatchApproval": ("approved", "denied", "abort"),
}
"""By method of an approval: yes, no, and no with the end of the turn."""
_MORE_RIGHTS = "item/permissions/requestApproval"
_USER_INPUT = "item/tool/requestUserInput"
_ELICITATION = "mcpServer/elicitation/request"
_TYPES = {
    "agentMessage": "agent_message",
    "commandExecution": "command_execution",
    "fileChange": "file_change",
    "mcpToolCall": "mcp_tool_call",
    "webSearch": "web_search",
}


class CodexDialogue:
    """The dialogue of one run in the folder ``cwd``; ``confined``: cockpit's sandbox is around it."""

    reports_cost = True
    """Its tokens count at the list price of its model."""
    reports_tools = True

    def __init__(
        self,
        prompt: str,
        permissions: Permissions,
        *,
        cwd: str,
        form: AnswerForm,
        confined: bool,
    ) -> None:
        self.permissions = permissions
        self._prompt, self._cwd, self._form, self._confined = prompt, cwd, form, confined
        self._stream = CodexStream()
        self._wire: Wire | None = None
        self._thread = self._turn = ""
        self._items: dict[str, JsonObject] = {}
        self._usage: JsonObject = {}
        self._message, self._is_answer = "", False

    def begin(self, wire: Wire) -> None:
        """Initialize; thread and turn follow with its answers."""
        self._wire = wire
        client = {"name": "cockpit", "title": "cockpit", "version": __version__}
        self._request(_INITIALIZE, "initialize", {"clientInfo": client})

    def feed(self, line: str) -> list[StreamEvent]:
        """Return the events in a line; its requests are answered, now or when the user decides."""
        body = parse_object(line)
        if body is None:
            return self._stream.feed(line)
        method, params = get_text(body, "method"), get_object(body, "params")
        if method and "id" in body:
            return self._serve(body["id"], method, params)
        if method:
            return self._notice(method, params)
        return self._answered(body)

    def close(self, exit_code: int) -> Finish | None:
        """Return the reported end, with what it was refused; None without one."""
        finish = self._stream.close(exit_code)
        if finish is None:
            return None
        text = read_answer(finish.text) if finish.ok else finish.text
        return replace(finish, text=text, refused=tuple(self.permissions.refused))

    def interrupt(self) -> None:
        """Ask it to stop its turn."""
        if self._turn:
            turn = {"threadId": self._thread, "turnId": self._turn}
            self._request(_TURN + 1, "turn/interrupt", turn)

    def _answered(self, body: JsonObject) -> list[StreamEvent]:
        """Read the answer to a request of ours, and make the next one."""
        error, result = get_object(body, "error"), get_object(body, "result")
        if "error" in body:
            if body.get("id") in (_INITIALIZE, _THREAD, _TURN):
                return self._fail(get_text(error, "message") or "it refused to begin")
            return []
        match body.get("id"):
            case 1:
                self._send({"method": "initialized"})
                thread = {
                    "cwd": self._cwd,
                    "approvalPolicy": "untrusted",
                    # Its own sandbox needs namespaces, which are not there inside of ours.
                    "sandbox": "danger-full-access" if self._confined else "workspace-write",
                }
                self._request(_THREAD, "thread/start", thread)
            case 2:
                self._thread = get_text(get_object(result, "thread"), "id")
                turn = {
                    "threadId": self._thread,
                    "input": [{"type": "text", "text": self._prompt}],
                    "outputSchema": answer_schema(self._form),
                }
                self._request(_TURN, "turn/start", turn)
                return [AgentStarted(self._thread, get_text(result, "model"))]
            case 3:
                self._turn = get_text(get_object(result, "turn"), "id")
        return []

    def _notice(self, method: str, params: JsonObject) -> list[StreamEvent]:
        if self._thread and get_text(params, "threadId") not in ("", self._thread):
            return []  # of another thread: an agent of its own
        match method:
            case "item/started" | "item/completed":
                item = get_object(params, "item")
                identity = get_text(item, "id")[:LONGEST_KEY]
                if len(self._items) < _MOST_ITEMS or identity in self._items:
                    self._items[identity] = item
                return self._feed(method.replace("/", "."), item=_spell_as_exec(item))
            case "item/agentMessage/delta":
                return self._piece(get_text(params, "itemId"), get_text(params, "delta"))
            case "thread/tokenUsage/updated":
                total = get_object(get_object(params, "tokenUsage"), "total")
                self._usage = {
                    "input_tokens": get_count(total, "inputTokens"),
                    "output_tokens": get_count(total, "outputTokens"),
                    "cached_input_tokens": get_count(total, "cachedInputTokens"),
                }
                usage = TokenUsage(*(self._usage.values()))
                return [UsageUpdate(usage)]
            case "turn/completed":
                return self._end_turn(get_object(params, "turn"))
            case "error" if params.get("willRetry") is not True:
                message = get_text(get_object(params, "error"), "message")
                return self._feed("error", message=message)
        return []

    def _piece(self, item_id: str, piece: str) -> list[StreamEvent]:
        """Return a piece of a message; an answer in its form is shown when it is whole."""
        if item_id != self._message and piece.strip():
            self._message, self._is_answer = item_id, piece.lstrip().startswith("{")
        return [] if self._is_answer or not piece else [TextPiece(piece)]

    def _end_turn(self, turn: JsonObject) -> list[StreamEvent]:
        if get_text(turn, "id") not in ("", self._turn or get_text(turn, "id")):
            return []
        self._close()
        if get_text(turn, "status") == "completed":
            return self._feed("turn.completed", usage=self._usage)
        message = get_text(get_object(turn, "error"), "message") or get_text(turn, "status")
        return self._feed("turn.failed", error={"message": message})

    def _serve(self, identity: Any, method: str, params: JsonObject) -> list[StreamEvent]:
        def reply(result: JsonObject) -> None:
            self._send({"id": identity, "result": result})

        if method in _NEW_APPROVALS:
            item = self._items.get(get_text(params, "itemId")[:LONGEST_KEY])
            request = read_codex_approval(method, params, item=item, cwd=self._cwd)
            yes, no, abort = _NEW_APPROVALS[method]

            def decide(answer: PermissionAnswer) -> None:
                refusal = abort if answer.end == "expired" else no
                reply({"decision": yes if answer.allowed else refusal})
                if not answer.allowed and answer.end == "decided":
                    self._steer(answer.message)

            self.permissions.begin(str(identity)[:LONGEST_KEY], request, decide)
        elif method == _MORE_RIGHTS:
            rights = get_object(params, "permissions")

            def grant(answer: PermissionAnswer) -> None:
                reply({"permissions": rights if answer.allowed else {}, "scope": "turn"})

            self.permissions.begin(str(identity)[:LONGEST_KEY], _read_rights(params), grant)
        elif method == _USER_INPUT:

            def answer_input(answer: PermissionAnswer) -> None:
                reply(dict(answer.input or {}) if answer.allowed else {"answers": {}})
                if not answer.allowed and answer.end == "decided":
                    self._steer(answer.message)

            request = read_user_input(params, cwd=self._cwd)
            if not request.questions:
                reply({"answers": {}})
                return [UnreadableLine("it asked its user without a question")]
            self.permissions.begin(str(identity)[:LONGEST_KEY], request, answer_input)
        elif method == _ELICITATION:

            def answer_form(answer: PermissionAnswer) -> None:
                no = "decline" if answer.end == "decided" else "cancel"
                content = dict(answer.input or {})
                reply(
                    {"action": "accept", "content": content} if answer.allowed else {"action": no}
                )

            server = get_text(params, "serverName")
            request = read_elicitation(
                params, agent="codex", transport="app-server", cwd=self._cwd, server=server
            )
            self.permissions.begin(str(identity)[:LONGEST_KEY], request, answer_form)
        else:
            error = {"code": _METHOD_MISSING, "message": f"cockpit does not serve {method[:80]}"}
            self._send({"id": identity, "error": error})
        return []

    def _steer(self, words: str) -> None:
        """Give the agent the words of a refusal: its protocol's answer has none."""
        if not self._turn:
            return
        steer = {
            "threadId": self._thread,
            "expectedTurnId": self._turn,
            "input": [{"type": "text", "text": words}],
        }
        self._request(_TURN + 2, "turn/steer", steer)

    def _feed(self, kind: str, **fields: Any) -> list[StreamEvent]:
        events = self._stream.feed(json.dumps({"type": kind, **fields}))
        return [
            AgentMessage(read_answer(event.text)) if isinstance(event, AgentMessage) else event
            for event in events
        ]

    def _fail(self, message: str) -> list[StreamEvent]:
        self._close()
        return self._feed("turn.failed", error={"message": message})

    def _request(self, identity: int, method: str, params: JsonObject) -> None:
        self._send({"id": identity, "method": method, "params": params})

    def _send(self, body: JsonObject) -> None:
        if self._wire is not None:
            self._wire.send(body)

    def _close(self) -> None:
        if self._wire is not None:
            self._wire.close()


def _spell_as_exec(item: JsonObject) -> JsonObject:
    """Return an item as ``codex exec --json`` writes it."""
    kind = get_text(item, "type")
    spelled: dict[str, Any] = {**item, "type": _TYPES.get(kind, kind)}
    spelled["aggregated_output"] = get_text(item, "aggregatedOutput")
    spelled["exit_code"] = item.get("exitCode")
    if kind == "fileChange":
        spelled["changes"] = [
            {"path": get_text(change, "path"), "kind": _change_kind(change)}
            for change in get_objects(item, "changes")
        ]
    return spelled


def _change_kind(change: JsonObject) -> str:
    return get_text(change, "kind") or get_text(get_object(change, "kind"), "type")


def _read_rights(params: JsonObject) -> ToolRequest:
    reason = get_text(params, "reason")
    return ToolRequest(
        agent="codex",
        transport="app-server",
        call_id=get_text(params, "itemId")[:LONGEST_KEY],
        tool="request_permissions",
        kind="other",
        title=reason or "Work with more rights until its turn ends",
        input=dict(get_object(params, "permissions")),
        cwd=get_text(params, "cwd"),
        why=reason,
    )
