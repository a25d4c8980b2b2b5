"""The tasks of the backlog as resources. Every other tool of the backlog is one of ``cockpit mcp --http``.

See ``docs/reference/http.md``, routes.
"""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict
from starlette.responses import Response

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import WORK_READ, WORK_WRITE
from cockpit.api.answers import answered, require_match, tagged
from cockpit.api.callers import Answer, Counter
from cockpit.api.operations import Topic
from cockpit.api.resources import PageQuery, Resource
from cockpit.api.schemas import read_body
from cockpit.backlog.response_modes import render_task
from cockpit.backlog.tools.query_tools import Status
from cockpit.backlog.tools.task_tools import CreateTask, UpdateTask, UpdateTaskStatus
from cockpit.backlog.tools.tool_table import find_work_tool
from cockpit.core.read_record import describe
from cockpit.store.backlog import tasks
from cockpit.store.db.transaction import Tx

topic = Topic("tasks", "/api/tasks")

_TASK = {"type": "object", "required": ["id", "title", "status"]}


class TaskChanges(Struct, frozen=True):
    status: Status | None = None
    title: str | None = None
    description: str | None = None
    acceptance_criteria: str | None = None
    task_type: str | None = None
    estimate_hours: float | None = None
    story_id: str | None = None
    packages: tuple[str, ...] | None = None
    files: tuple[str, ...] | None = None


class TaskQuery(PageQuery, frozen=True, kw_only=True):
    status: Annotated[
        Literal["todo", "in_progress", "review", "done", "blocked", "archived"] | UnsetType,
        describe("Only tasks of this status; default: not archived."),
    ] = UNSET
    story_id: Annotated[
        str, Meta(max_length=100), describe("Only tasks of this story, such as S-2.")
    ] = ""

    def terms(self) -> dict[str, str]:
        """Return conditions in SQL, with one ``?`` each, and their values."""
        return {**super().terms(), **({} if self.status else {"status<>?": "archived"})}


def _show_row(at: Counter, connection: sqlite3.Connection, task_id: str) -> dict[str, Any]:
    return render_task(tasks.load(connection, task_id), "full")


RESOURCE = Resource(
    table="tasks",
    scope=WORK_READ,
    query=TaskQuery,
    listed=lambda at, connection, ids: [
        render_task(task, "full") for task in tasks.load_many(connection, ids)
    ],
    shown=_show_row,
)


@topic.operation(
    "POST",
    "",
    "Create a task",
    WORK_WRITE,
    status=201,
    returns=_TASK,
    body=CreateTask,
    once=True,
)
async def create_task(at: Counter) -> Response:
    """Add a task to the backlog, ready to be worked on."""
    body = await at.request.body()

    def step(tx: Tx, caller: Caller) -> Answer:
        given = read_body(body, CreateTask, name="the task")
        created = find_work_tool("create_task").run(tx, caller, given)
        task = tasks.load(tx.connection, created["id"])
        return Answer(201, render_task(task, "full"))

    answer = await at.write_once(WORK_WRITE, "create tasks", step)
    return answered(answer, location=f"{topic.prefix}/{answer.body['id']}")


@topic.operation(
    "PATCH",
    "/{task_id}",
    "Change a task",
    WORK_WRITE,
    returns=_TASK,
    body=TaskChanges,
    takes_match=True,
)
async def change_task(at: Counter, task_id: str) -> Response:
    """Fields that are absent stay as they are."""
    body = await at.request.body()

    def step(tx: Tx, caller: Caller) -> dict[str, Any]:
        caller.require(WORK_WRITE, "change tasks")
        task = tasks.load(tx.connection, task_id)
        require_match(at.request, render_task(task, "full"))
        given = asdict(read_body(body, TaskChanges, name="the change"))
        status = given.pop("status")
        if status is not None:
            move = UpdateTaskStatus(task.task_id, status)
            find_work_tool("update_task_status").run(tx, caller, move)
        if any(value is not None for value in given.values()):
            find_work_tool("update_task").run(tx, caller, UpdateTask(task.task_id, **given))
        return _show_row(at, tx.connection, task.task_id)

    return tagged(at.request, await at.write(step))
