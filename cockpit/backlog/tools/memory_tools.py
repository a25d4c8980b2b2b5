"""Work tools for memory: session context, work in progress, and handoffs."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Struct

from cockpit.backlog.response_modes import Fields, render_task, shorten_to_fit
from cockpit.backlog.tools.work_tool import ToolCall, work_tool
from cockpit.core.read_record import describe
from cockpit.learn.resume_text import resume_line
from cockpit.store.backlog import handoffs, tasks, wip, work_queue
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES

_OPEN = 20
"""Tasks of one status that are named, the oldest first."""
_HANDOFFS = 5
_MOST_BEFORE = 20


def session_context(connection: sqlite3.Connection, fields: str = "minimal") -> dict[str, Any]:
    """Return the answer of the tool ``get_session_context``.

    ``resume`` has a line for every task in progress with saved progress; ``fields`` is the response
    mode of the tasks in progress, in review and blocked; ``suggested_next`` is always standard.
    ``handoffs`` has those of the tasks that tasks in progress and the next task waited for, then the
    newest.
    """
    under_way = tasks.select(connection, status="in_progress", limit=_OPEN)
    body: dict[str, Any] = {
        "resume": [resume_line(task) for task in under_way if task.wip],
        "in_progress": [render_task(task, fields) for task in under_way],
    }
    for status in ("review", "blocked"):
        rows = tasks.select(connection, status=status, limit=_OPEN)
        body[status] = [render_task(task, fields) for task in rows]
    following = work_queue.next_batch(connection, 1)
    body["ready"] = work_queue.count_ready(connection)
    body["suggested_next"] = (
        render_task(tasks.load(connection, following[0].task_id), "standard") if following else None
    )
    # Those that the work of now builds on come first, however old they are.
    started = [task.task_id for task in under_way[:_HANDOFFS]] + [
        task.task_id for task in following
    ]
    before = [each for task_id in started for each in handoffs.select_before(connection, task_id)]
    recent = handoffs.select_recent(connection, _HANDOFFS)
    listed = {handoff.task_id: handoff for handoff in (*before[-_MOST_BEFORE:], *recent)}
    body["handoffs"] = [
        {"task_id": handoff.task_id, **handoff.brief()} for handoff in listed.values()
    ]
    return body


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


@work_tool(GetSessionContext, "core", "Start here.")
def _get_session_context(call: ToolCall, args: GetSessionContext) -> dict[str, Any]:
    return shorten_to_fit(session_context(call.connection, args.fields), call.cap_tokens)


@work_tool(UpdateTaskWip, "core", "Save work in progress.", writes=True)
def _update_task_wip(call: ToolCall, args: UpdateTaskWip) -> dict[str, Any]:
    task_id = tasks.load(call.connection, args.task_id).task_id
    merged = wip.update(call.tx, task_id, args.wip_data, by=call.by, session_id=call.session_id)
    body = {"id": task_id, "phase": merged.get("phase"), "next_step": merged.get("next_step")}
    return shorten_to_fit(body, call.cap_tokens)


@work_tool(SetTaskHandoff, "core", "Set a task's handoff.", writes=True)
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


@work_tool(GetTaskHandoff, "standard", "Get a task's handoff.")
def _get_task_handoff(call: ToolCall, args: GetTaskHandoff) -> dict[str, Any]:
    handoff = handoffs.load(call.connection, args.task_id)
    return shorten_to_fit(handoff.body(details=args.include_details), call.cap_tokens)


@work_tool(OfStory, "all", "Drop the details of a story's handoffs.", writes=True)
def _compact_story_handoffs(call: ToolCall, args: OfStory) -> dict[str, Any]:
    story = STORIES.load(call.connection, args.story_id)
    return {"compacted": handoffs.compact_story(call.tx, story.story_id, by=call.by)}


@work_tool(OfEpic, "all", "Archive an epic's handoffs.", writes=True)
def _delete_epic_handoffs(call: ToolCall, args: OfEpic) -> dict[str, Any]:
    epic = EPICS.load(call.connection, args.epic_id)
    return {"archived": handoffs.archive_epic(call.tx, epic.epic_id, by=call.by)}
