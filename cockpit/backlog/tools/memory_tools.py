"""Work tools for memory: session context, work in progress, and handoffs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Struct

from cockpit.backlog.response_modes import Fields, shorten_to_fit
from cockpit.backlog.session_context import session_context
from cockpit.backlog.tools.work_tool import ToolCall, WorkTool
from cockpit.core.read_record import describe
from cockpit.store.backlog import handoffs, tasks, wip
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES


class GetSessionContext(Struct, frozen=True):
    fields: Fields = "minimal"


class UpdateTaskWip(Struct, frozen=True):
    task_id: str
    wip_data: Annotated[Mapping[str, Any], describe(f"keys {', '.join(wip.KEYS)}")]


class SetTaskHandoff(Struct, frozen=True):
    task_id: str
    status: Literal["PASS", "FAIL", "BLOCKED"]
    summary: str
    files_changed: tuple[str, ...] = ()
    full_details: str | None = None


class GetTaskHandoff(Struct, frozen=True):
    task_id: str
    include_details: bool = False


class OfStory(Struct, frozen=True):
    story_id: str


class OfEpic(Struct, frozen=True):
    epic_id: str


def _get_session_context(call: ToolCall, args: GetSessionContext) -> dict[str, Any]:
    return shorten_to_fit(session_context(call.connection, args.fields), call.cap_tokens)


def _update_task_wip(call: ToolCall, args: UpdateTaskWip) -> dict[str, Any]:
    task_id = tasks.load(call.connection, args.task_id).task_id
    merged = wip.update(call.tx, task_id, args.wip_data, by=call.by, session_id=call.session_id)
    body = {"id": task_id, "phase": merged.get("phase"), "next_step": merged.get("next_step")}
    return shorten_to_fit(body, call.cap_tokens)


def _set_task_handoff(call: ToolCall, args: SetTaskHandoff) -> dict[str, Any]:
    handoff = handoffs.set_handoff(
        call.tx,
        args.task_id,
        args.status,
        args.summary,
        args.files_changed,
        args.full_details,
        by=call.by,
        session_id=call.session_id,
    )
    return dict(handoff.brief())


def _get_task_handoff(call: ToolCall, args: GetTaskHandoff) -> dict[str, Any]:
    handoff = handoffs.load(call.connection, args.task_id)
    return shorten_to_fit(handoff.body(details=args.include_details), call.cap_tokens)


def _compact_story_handoffs(call: ToolCall, args: OfStory) -> dict[str, Any]:
    story = STORIES.load(call.connection, args.story_id)
    return {"compacted": handoffs.compact_story(call.tx, story.story_id, by=call.by)}


def _delete_epic_handoffs(call: ToolCall, args: OfEpic) -> dict[str, Any]:
    epic = EPICS.load(call.connection, args.epic_id)
    return {"archived": handoffs.archive_epic(call.tx, epic.epic_id, by=call.by)}


MEMORY_TOOLS: tuple[WorkTool, ...] = (
    WorkTool(
        "get_session_context",
        "core",
        False,
        "Start here.",
        GetSessionContext,
        _get_session_context,
    ),
    WorkTool(
        "update_task_wip", "core", True, "Save work in progress.", UpdateTaskWip, _update_task_wip
    ),
    WorkTool(
        "set_task_handoff",
        "core",
        True,
        "Set a task's handoff.",
        SetTaskHandoff,
        _set_task_handoff,
    ),
    WorkTool(
        "get_task_handoff",
        "standard",
        False,
        "Get a task's handoff.",
        GetTaskHandoff,
        _get_task_handoff,
    ),
    WorkTool(
        "compact_story_handoffs",
        "all",
        True,
        "Drop the details of a story's handoffs.",
        OfStory,
        _compact_story_handoffs,
    ),
    WorkTool(
        "delete_epic_handoffs",
        "all",
        True,
        "Archive an epic's handoffs.",
        OfEpic,
        _delete_epic_handoffs,
    ),
)
