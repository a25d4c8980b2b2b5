"""A session's journal rows as updates of the protocol: text, thoughts, plan, tool calls, policy and usage.

One tool call stands for one proposal with the action that it allows, or for one context request. See
``docs/reference/acp.md``, updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.acp_server.prompt_text import fence_for
from cockpit.loop.views.event_text import event_line, list_items
from cockpit.store.journal.details import proposals, sessions, waves
from cockpit.store.journal.journal import Row
from cockpit.store.sessions.proposals import Proposal

Update = dict[str, Any]

KINDS = {
    "write_file": "edit",
    "edit_file": "edit",
    "run": "execute",
    "git_commit": "execute",
    "push_branch": "execute",
    "github": "execute",
    "own_tool": "execute",
    "mcp_tool": "execute",
}
"""The protocol's kind of a tool call by the type of the action; others are ``other``."""
_LONGEST_OUTPUT = 100_000
_MOST_LOCATIONS = 100


class Wording(Struct, frozen=True):
    """How text is written for a client that may be a terminal."""

    clean: Callable[[str], str]
    """Replaces control characters and those that hide or reorder text."""
    describe: Callable[[Proposal], str]
    """Returns the full text of a proposal, everything that its digest covers."""


class SessionUpdates:
    """Turns the rows of one session, in their order, into updates.

    ``own_messages`` counts messages of the user that the client sent itself: it shows those already.
    """

    def __init__(self, root: Path, wording: Wording) -> None:
        self.own_messages = 0
        self._root = root
        self._clean = wording.clean
        self._calls: set[str] = set()
        self._call_of_action: dict[str, str] = {}
        self._call_of_request: dict[str, str] = {}
        self._streaming = ""
        self._streamed = ""
        self._last_message = ""
        self._plan: dict[str, tuple[str, str]] = {}
        self._key_of_action: dict[str, str] = {}

    def read_row(self, row: Row, *, replays: bool = False) -> list[Update]:
        """Return the updates that a row adds. With ``replays`` the row is history, whole messages only."""
        detail = row.detail
        match detail:
            case sessions.MessageDelta():
                return [] if replays else self._read_delta(detail)
            case sessions.MessageCompleted():
                return self._read_message(detail, replays)
            case waves.ModelThought() if detail.text:
                return [self._chunk("agent_thought_chunk", detail.text)]
            case sessions.SessionCreated():
                return [{"sessionUpdate": "session_info_update", "title": self.line(detail.title)}]
            case sessions.SessionChanged():
                return self._read_change(detail)
            case sessions.SessionCompleted():
                return self._read_end(detail)
            case waves.PacketCompiled():
                used, size = detail.sent, detail.token_budget
                return [{"sessionUpdate": "usage_update", "used": used, "size": size}]
            case waves.PlanCommitted() | waves.WaveCompleted():
                return self._read_plan(detail)
            case waves.ModelRetried() | waves.WaveFailed():
                line = event_line(detail)
                return [self._chunk("agent_thought_chunk", f"{line.text}\n")] if line else []
        return [*self._read_call(row), *self._follow_plan(detail)]

    def start_call(self, proposal: Proposal, text: str) -> Update:
        """Return the tool call of a proposal that waits: its title, files, difference and full text."""
        body = proposal.body
        diffs = [diff for diff in body.get("diffs", ()) if isinstance(diff, dict)]
        content: list[Update] = []
        paths: list[str] = []
        for diff in diffs:
            path = str(self._root / str(diff.get("path", "")))
            paths.append(path)
            change = {
                "type": "diff",
                "path": path,
                "newText": self._clean(str(diff.get("after") or "")),
            }
            if diff.get("before") is not None:
                change["oldText"] = self._clean(str(diff["before"]))
            content.append(change)
        for item in body.get("items", ()):
            kind, _, path = str(item.get("item", "")).partition(":")
            if kind == "file":
                paths.append(str(self._root / path.partition("#")[0]))
        fence = fence_for(text)
        content.append(_text_content(f"{fence}text\n{text}\n{fence}"))
        warning = "HIGH RISK: " if proposal.risk == "high" else ""
        kind = (
            "read" if proposal.kind == "context" else KINDS.get(str(body.get("type", "")), "other")
        )
        return {
            "toolCallId": proposal.proposal_id,
            "title": f"{warning}{self.line(proposal.title)}",
            "kind": "edit" if diffs else kind,
            "status": "pending",
            "content": content,
            "locations": [{"path": path} for path in paths[:_MOST_LOCATIONS]],
        }

    def update_call(self, call: Update) -> Update:
        """Return ``call`` as the update that begins it, or that changes it where the client has it."""
        exists = call["toolCallId"] in self._calls
        self._calls.add(call["toolCallId"])
        return {"sessionUpdate": "tool_call_update" if exists else "tool_call", **call}

    def line(self, text: str) -> str:
        """Return ``text`` cleaned, on one line."""
        return " ".join(self._clean(text).split())

    def _chunk(self, kind: str, text: str) -> Update:
        return {"sessionUpdate": kind, "content": {"type": "text", "text": self._clean(text)}}

    def _read_delta(self, detail: sessions.MessageDelta) -> list[Update]:
        text = detail.text
        if detail.message_id != self._streaming:
            self._streaming, self._streamed = detail.message_id, ""
        self._streamed += text
        return [self._chunk("agent_message_chunk", text)] if text else []

    def _read_message(self, detail: sessions.MessageCompleted, replays: bool) -> list[Update]:
        text = detail.text
        if detail.role == "person":
            if not replays and self.own_messages:
                self.own_messages -= 1
                return []
            return [self._chunk("user_message_chunk", text)] if text else []
        if detail.role == "notice":
            return [self._chunk("agent_message_chunk", f"\n> {self.line(text)}\n\n")]
        self._last_message = text.strip()
        end = " … (interrupted)\n\n" if detail.interrupted else "\n\n"
        if detail.message_id == self._streaming:
            streamed, self._streaming, self._streamed = self._streamed, "", ""
            # Masking the whole message may have changed its beginning: then all of it is sent.
            rest = text[len(streamed) :] if text.startswith(streamed) else f"\n\n{text}"
            return [self._chunk("agent_message_chunk", rest + end)]
        return [self._chunk("agent_message_chunk", text + end)] if text else []

    def _read_change(self, detail: sessions.SessionChanged) -> list[Update]:
        updates: list[Update] = []
        if isinstance(detail.policy, str):
            updates.append({"sessionUpdate": "current_mode_update", "currentModeId": detail.policy})
        if isinstance(detail.title, str):
            updates.append(
                {"sessionUpdate": "session_info_update", "title": self.line(detail.title)}
            )
        return updates

    def _read_end(self, detail: sessions.SessionCompleted) -> list[Update]:
        summary = detail.summary if isinstance(detail.summary, str) else ""
        if not summary or summary.strip() == self._last_message:
            return []
        line = event_line(detail)
        return [self._chunk("agent_message_chunk", f"\n{line.sign} {line.text}\n")] if line else []

    def _read_call(self, row: Row) -> Iterator[Update]:
        """Yield the updates of tool calls; their proposals themselves are begun by who asks about them."""
        detail = row.detail
        match detail:
            case waves.ContextRequested():
                call_id = detail.proposal_id or detail.request_id
                self._call_of_request[detail.request_id] = call_id
                if not detail.proposal_id:
                    yield self._begin(call_id, list_items(detail.items), "read", "in_progress")
            case waves.ContextFetched():
                call_id = self._call_of_request.pop(detail.request_id, detail.request_id)
                yield self._end(call_id, "completed", _describe(detail), "context")
            case waves.ContextRefused() | proposals.ActionRefused() | waves.ModelMalformedCall():
                call_id, title = f"refused-{row.seq}", _describe(detail)
                yield self._begin(call_id, title, "other", "failed")
            case proposals.ProposalDecided(status="approved"):
                yield self._end(detail.proposal_id, "in_progress", "", detail.title)
            case proposals.ProposalDecided():
                yield self._end(detail.proposal_id, "failed", _describe(detail), detail.title)
            case proposals.ActionQueued():
                self._call_of_action[detail.action_id] = detail.proposal_id or detail.action_id
            case proposals.ActionDispatched():
                call_id = self._call_of_action.setdefault(detail.action_id, detail.action_id)
                kind = KINDS.get(detail.type, "other")
                if call_id in self._calls:
                    yield self.update_call({"toolCallId": call_id, "status": "in_progress"})
                else:
                    yield self._begin(call_id, detail.title or detail.type, kind, "in_progress")
            case proposals.ActionConfirmed():
                text = _join_output(_describe(detail), detail.receipt)
                yield self._end(self._call_id(detail), "completed", text, detail.title)
            case proposals.ActionFailed():
                text = _join_output(_describe(detail), detail.receipt)
                yield self._end(self._call_id(detail), "failed", text, detail.title)
            case proposals.ActionUncertain():
                yield self._end(self._call_id(detail), "failed", _describe(detail), detail.title)

    def _call_id(self, detail: proposals.OfAction) -> str:
        return self._call_of_action.get(detail.action_id, detail.action_id)

    def _begin(self, call_id: str, title: str, kind: str, status: str) -> Update:
        call = {"toolCallId": call_id, "title": self.line(title), "kind": kind, "status": status}
        return self.update_call(call)

    def _end(self, call_id: str, status: str, text: str, title: str) -> Update:
        """Return a call's new status. Its text follows what the client shows of it: nothing is replaced."""
        call: Update = {"toolCallId": call_id, "status": status}
        if call_id not in self._calls:
            call["title"] = self.line(title) or call_id
        if text:
            call["rawOutput"] = {"text": self._clean(text)[:_LONGEST_OUTPUT]}
        return self.update_call(call)

    def _read_plan(self, detail: waves.PlanCommitted | waves.WaveCompleted) -> list[Update]:
        """Show the calls of a wave as a plan, where they are several."""
        if isinstance(detail, waves.PlanCommitted):
            self._plan = {
                call.key or f"{number}": (self.line(call.title) or call.kind, "pending")
                for number, call in enumerate(detail.calls)
            }
            return self._write_plan()
        if not self._plan:
            return []
        self._plan = {key: (title, "completed") for key, (title, _) in self._plan.items()}
        updates = self._write_plan()
        self._plan = {}
        return updates

    def _follow_plan(self, detail: object) -> list[Update]:
        match detail:
            case proposals.ActionQueued():
                self._key_of_action[detail.action_id] = detail.key
                return []
            case proposals.ActionDispatched():
                status = "in_progress"
            case proposals.ActionConfirmed() | proposals.ActionFailed():
                status = "completed"
            case _:
                return []
        key = self._key_of_action.get(detail.action_id, "")
        if key not in self._plan:
            return []
        self._plan[key] = (self._plan[key][0], status)
        return self._write_plan()

    def _write_plan(self) -> list[Update]:
        if len(self._plan) < 2:
            return []
        entries = [
            {"content": title, "priority": "medium", "status": status}
            for title, status in self._plan.values()
        ]
        return [{"sessionUpdate": "plan", "entries": entries}]


def _text_content(text: str) -> Update:
    return {"type": "content", "content": {"type": "text", "text": text}}


def _describe(detail: Any) -> str:
    line = event_line(detail)
    return line.plain("") if line is not None else ""


def _join_output(text: str, receipt: Any) -> str:
    output = receipt.get("output") if hasattr(receipt, "get") else None
    return f"{text}\n\n{output}" if isinstance(output, str) and output else text
