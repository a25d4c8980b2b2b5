"""Work tools that read tasks: lists, one task, and the next tasks to start."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from cockpit.backlog.response_modes import Fields, page, render_all, render_task, shorten_to_fit
from cockpit.backlog.tools.work_tool import ToolCall, work_tool
from cockpit.backlog.validation import BacklogInvalid
from cockpit.store.backlog import dependencies, tasks, work_queue

Status = Literal["todo", "in_progress", "review", "done", "blocked"]
Priority = Literal["P0", "P1", "P2", "P3"]
MOST_LISTED = 1000
_COLUMNS = ("todo", "in_progress", "review", "blocked", "done")


class NoParameters(Struct, frozen=True):
    """No parameters."""


class TaskId(Struct, frozen=True):
    task_id: str


class GetNextTask(Struct, frozen=True):
    fields: Fields = "standard"


class GetBlockedTasks(Struct, frozen=True):
    fields: Fields = "minimal"


class GetTasks(Struct, frozen=True):
    status: Status | None = None
    priority: Priority | None = None
    story_status: Status | None = None
    epic_status: Status | None = None
    limit: int = 50
    offset: int = 0
    fields: Fields = "minimal"


class GetTask(Struct, frozen=True):
    task_id: str
    fields: Fields = "standard"


class GetNextBatch(Struct, frozen=True):
    batch_size: int | None = None
    limit: int | None = None
    fields: Fields = "minimal"


class GetKanbanBoard(Struct, frozen=True):
    include_done: bool = False
    limit_per_column: int = 20
    fields: Fields = "minimal"


@work_tool(GetTasks, "core", "List tasks.")
def _get_tasks(call: ToolCall, args: GetTasks) -> dict[str, Any]:
    terms = {
        "status": args.status,
        "priority": args.priority,
        "story_status": args.story_status,
        "epic_status": args.epic_status,
    }
    return page_of_tasks(
        call.connection, terms, args.limit, args.offset, args.fields, call.cap_tokens
    )


def page_of_tasks(
    connection: sqlite3.Connection,
    terms: Mapping[str, Any],
    limit: int,
    offset: int,
    fields: str,
    cap_tokens: int,
) -> dict[str, Any]:
    """A page of the tasks that :func:`cockpit.store.backlog.tasks.count` counts by these ``terms``."""
    start = max(0, offset)
    rows = tasks.select(connection, limit=check_limit(limit), offset=start, **terms)
    total = tasks.count(connection, **terms)
    return page(render_all(render_task, rows, fields), cap_tokens, offset=start, total=total)


@work_tool(GetTask, "core", "Get a task.")
def _get_task(call: ToolCall, args: GetTask) -> dict[str, Any]:
    body = render_task(tasks.load(call.connection, args.task_id), args.fields)
    return shorten_to_fit(body, call.cap_tokens)


@work_tool(GetNextTask, "standard", "Get the next task.")
def _get_next_task(call: ToolCall, args: GetNextTask) -> dict[str, Any]:
    queued = work_queue.next_batch(call.connection, 1)
    if not queued:
        return {"task": None, **_none_to_begin(call)}
    task = tasks.load(call.connection, queued[0].task_id)
    return {"task": shorten_to_fit(render_task(task, args.fields), call.cap_tokens - 10)}


@work_tool(GetNextBatch, "core", "Get ready tasks.")
def _get_next_batch(call: ToolCall, args: GetNextBatch) -> dict[str, Any]:
    size = 3 if args.batch_size is None and args.limit is None else args.batch_size or args.limit
    batch = work_queue.next_batch(call.connection, check_limit(size or 1))
    named = tasks.load_many(call.connection, [queued.task_id for queued in batch])
    items = render_all(render_task, named, args.fields)
    if not items:
        return {"tasks": [], **_none_to_begin(call)}
    ready = work_queue.count_ready(call.connection)
    return {**page(items, call.cap_tokens - 10), "ready": ready}


def _none_to_begin(call: ToolCall) -> dict[str, Any]:
    """Nothing is ready, or what is ready touches what the tasks of ``held_by`` are changing now."""
    ready = work_queue.count_ready(call.connection)
    busy = (
        [queued.task_id for queued in work_queue.select_running(call.connection)[:10]]
        if ready
        else []
    )
    return {"ready": ready, **({"held_by": busy} if busy else {})}


@work_tool(GetBlockedTasks, "standard", "List blocked tasks and blockers.")
def _get_blocked_tasks(call: ToolCall, args: GetBlockedTasks) -> dict[str, Any]:
    blocked = tasks.select(call.connection, status="blocked", limit=MOST_LISTED)
    items = [{**render_task(task, args.fields), "blocker": task.blocker} for task in blocked]
    total = tasks.count(call.connection, status="blocked")
    return page(items, call.cap_tokens, total=total)


@work_tool(TaskId, "standard", "List dependencies and dependents.")
def _get_task_dependencies(call: ToolCall, args: TaskId) -> dict[str, Any]:
    return task_dependencies(call, args.task_id)


@work_tool(GetKanbanBoard, "all", "List tasks by status.")
def _get_kanban_board(call: ToolCall, args: GetKanbanBoard) -> dict[str, Any]:
    columns = _COLUMNS if args.include_done else _COLUMNS[:-1]
    room = call.cap_tokens // len(columns) - 20
    columns_body: dict[str, Any] = {}
    for status in columns:
        total = tasks.count(call.connection, status=status)
        limit = check_limit(args.limit_per_column)
        rows = tasks.select(call.connection, status=status, limit=limit)
        columns_body[status] = {
            "count": total,
            **page(render_all(render_task, rows, args.fields), room, total=total),
        }
    return {"columns": columns_body}


def task_dependencies(call: ToolCall, task_id: str) -> dict[str, Any]:
    """What the task waits for, and what waits for it."""
    task = tasks.load(call.connection, task_id)
    before = [
        {
            "id": dependency.depends_on_task_id,
            "title": dependency.depends_on_title,
            "status": dependency.depends_on_status,
            "type": dependency.dependency_type,
            "waits": dependency.is_waiting,
        }
        for dependency in dependencies.select_prerequisites(call.connection, task.task_id)
    ]
    behind = [
        {
            "id": dependency.task_id,
            "title": dependency.title,
            "status": dependency.status,
            "type": dependency.dependency_type,
        }
        for dependency in dependencies.select_dependents(call.connection, task.task_id)
    ]
    body = {"id": task.task_id, "status": task.status, "depends_on": before, "dependents": behind}
    return shorten_to_fit(body, call.cap_tokens)


def check_limit(number: int) -> int:
    """A length that a list may have."""
    if not 1 <= number <= MOST_LISTED:
        raise BacklogInvalid(f"A list contains 1 to {MOST_LISTED}, not {number}; page with offset.")
    return number
