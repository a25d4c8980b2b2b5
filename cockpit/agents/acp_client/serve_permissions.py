"""``session/request_permission``: each is a proposal in the one queue, and its answer one option.

See ``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cockpit.agents.acp_client.acp_session_context import SessionContext
from cockpit.agents.acp_client.agent_connection import Refused
from cockpit.core.json_fields import JsonObject, get_object, get_text
from cockpit.loop.permissions.ask_permission import PermissionAnswer
from cockpit.loop.permissions.read_tool_request import read_acp_tool, read_elicitation
from cockpit.loop.permissions.tool_request import FileEdit, ToolRequest, choose_option

_CANCELLED = {"outcome": {"outcome": "cancelled"}}
_MOST_APPROVED = 200


class ApprovedWork:
    """What was approved and not yet done through cockpit: texts of files, commands. Each counts once."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[FileEdit, str]] = {}
        self._commands: dict[str, str] = {}

    def add(self, request: ToolRequest, proposal_id: str) -> None:
        """Remember an approved request."""
        for edit in request.edits:
            path = str(Path(request.cwd or "/", edit.path))
            self._texts[path] = (edit, proposal_id)
        if request.command:
            self._commands[request.command.strip()] = proposal_id
        for entries in (self._texts, self._commands):
            while len(entries) > _MOST_APPROVED:
                entries.pop(next(iter(entries)))

    def take_text(self, path: Path, before: str | None, after: str) -> str:
        """Return the proposal that approved this very text of a file; '' without one."""
        edit, proposal_id = self._texts.get(str(path), (None, ""))
        if edit is None:
            return ""
        approved = edit.after
        if edit.before is not None and edit.before != before:
            count = -1 if edit.replace_all else 1
            approved = (before or "").replace(edit.before, edit.after, count)
        if approved != after:
            return ""
        del self._texts[str(path)]
        return proposal_id

    def take_command(self, command: str) -> str:
        """Return the proposal that approved this very command; '' without one."""
        return self._commands.pop(command.strip(), "")


async def answer_permission(
    context: SessionContext, approved: ApprovedWork, params: JsonObject
) -> Mapping[str, Any]:
    """Propose what the agent asks for, wait, and return the option that says the same."""
    tool_call = get_object(params, "toolCall")
    earlier = context.updates.calls.find(get_text(tool_call, "toolCallId"))
    before = None if earlier is None else dict(earlier.body)
    request = read_acp_tool(
        tool_call,
        params.get("options"),
        agent=context.agent.name,
        earlier=before,
        cwd=str(context.root),
    )
    call = context.updates.calls.update(tool_call)
    call.has_asked = True
    answer = await context.ask(request)
    call.gated = True
    if answer.allowed:
        approved.add(request, answer.proposal_id)
    return await _outcome(context, request, answer)


async def answer_elicitation(context: SessionContext, params: JsonObject) -> Mapping[str, Any]:
    """Ask the user what the agent wants to know, and return the form as they filled it in.

    Raises :class:`Refused` for a form without a field that cockpit knows.
    """
    mode = get_text(params, "mode") or "form"
    if mode not in ("form", "url"):
        raise Refused(f"cockpit shows no elicitation of mode {mode[:40]!r}.")
    request = read_elicitation(params, agent=context.agent.name, cwd=str(context.root))
    fields = get_object(get_object(params, "requestedSchema"), "properties")
    if fields and not request.questions:
        raise Refused("cockpit knows no field of this form.")
    answer = await context.ask(request)
    if answer.allowed:
        return {"action": "accept", "content": dict(answer.input or {})}
    return {"action": "decline" if answer.end == "decided" else "cancel"}


async def _outcome(
    context: SessionContext, request: ToolRequest, answer: PermissionAnswer
) -> Mapping[str, Any]:
    if answer.end == "withdrawn":
        return _CANCELLED
    option = choose_option(request.options, allowed=answer.allowed)
    if option is None:
        kind = "allow once" if answer.allowed else "reject"
        title = context.agent.title
        await context.journal.note(
            f"{title} offered no option to {kind} {request.title[:200]!r}, so it was cancelled. An option"
            " that counts for ever is never chosen."
        )
        return _CANCELLED
    outcome = {"outcome": "selected", "optionId": option.option_id}
    # The protocol has no place for words; an agent that reads this one hears them at once.
    meta = {"cockpit": {"message": answer.message}}
    return {"outcome": outcome, "_meta": meta}
