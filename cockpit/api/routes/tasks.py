"""The backlog: tasks as resources, and every work tool by its name.

The tools are those of the command line and MCP. See ``docs/reference/http.md``, tasks, and
``docs/reference/mcp.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from msgspec import Struct
from msgspec.structs import asdict
from starlette.responses import JSONResponse

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import WORK_READ, WORK_WRITE
from cockpit.api.answers import answered, page, read_cursor, require_match, tagged
from cockpit.api.callers import Answer, At
from cockpit.api.operation_document import declared
from cockpit.api.schemas import read_body
from cockpit.backlog.response_modes import render_task
from cockpit.backlog.tools.task_tools import CreateTask, UpdateTask
from cockpit.backlog.tools.tool_table import WORK_TOOLS, find_work_tool
from cockpit.backlog.tools.work_tool import WorkTool
from cockpit.core.read_record import record_schema
from cockpit.store.backlog import tasks
from cockpit.store.db.keyset_page import select_page
from cockpit.store.db.transaction import Tx

router = APIRouter(prefix="/api/tasks", tags=["tasks"])
tools = APIRouter(prefix="/api/work", tags=["work tools"])

Status = Literal["todo", "in_progress", "review", "done", "blocked", "archived"]
Statuses = Annotated[Status, Query(description="Only tasks of this status; default: not archived.")]
Story = Annotated[str, Query(max_length=40, description="Only tasks of this story, such as S-2.")]
Cursor = Annotated[str, Query(max_length=400, description="The `next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]


class TaskChanges(Struct, frozen=True):
    title: str | None = None
    description: str | None = None
    acceptance_criteria: str | None = None
    task_type: str | None = None
    estimate_hours: float | None = None
    story_id: str | None = None
    packages: tuple[str, ...] | None = None
    files: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TaskBody:
    """A task of the backlog."""

    id: str
    title: str
    status: str
    description: str
    acceptance_criteria: str
    type: str
    story: str | None
    context_summary: str
    handoff_notes: str
    wip: dict[str, Any] | None
    epic: str | None
    priority: str
    estimate_hours: float | None
    progress_percent: int
    needs_rework: bool
    packages: list[str]
    files: list[str]
    source: str
    session_id: str
    created_at: str
    updated_at: str
    started_at: str | None
    done_at: str | None
    wip_updated_at: str | None
    blocker: str | None = None


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Tasks, newest first, and the cursor of the next page."""

    items: list[TaskBody]
    next: str | None


@router.get("", summary="List tasks", response_model=TaskPage, **declared(WORK_READ, has_tag=True))
async def list_tasks(
    at: At,
    request: Request,
    status: Statuses | None = None,
    story_id: Story = "",
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Response:
    """Newest first. ``POST /api/work/get_next_batch`` gives them in the order of the work."""
    terms = {"status=?": str(status)} if status else {"status<>?": "archived"}
    if story_id:
        terms["story_id=?"] = story_id

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(WORK_READ, "read tasks")
        ids, following = select_page(
            connection, "tasks", after=read_cursor(cursor), limit=limit, terms=terms
        )
        return page(
            tasks.load_many(connection, ids), following, lambda task: render_task(task, "full")
        )

    return tagged(request, await at.read(look))


@router.get(
    "/{task_id}",
    summary="Show a task",
    response_model=TaskBody,
    **declared(WORK_READ, 404, has_tag=True),
)
async def show_task(at: At, request: Request, task_id: str) -> Response:
    """The whole task, with its work in progress."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(WORK_READ, "read tasks")
        return render_task(tasks.load(connection, task_id), "full")

    return tagged(request, await at.read(look))


@router.post(
    "",
    summary="Create a task",
    response_model=TaskBody,
    status_code=201,
    **declared(WORK_WRITE, 404, 422, body=CreateTask, once=True),
)
async def create_task(at: At, request: Request) -> Response:
    """Add a task to the backlog, ready to be worked on."""
    body = await request.body()

    def step(tx: Tx, caller: Caller) -> Answer:
        given = read_body(body, CreateTask, name="the task")
        created = find_work_tool("create_task").run(tx, caller, given)
        task = tasks.load(tx.connection, created["id"])
        return Answer(201, render_task(task, "full"))

    answer = await at.write_once(WORK_WRITE, "create tasks", step)
    return answered(answer, location=f"{router.prefix}/{answer.body['id']}")


@router.patch(
    "/{task_id}",
    summary="Change a task",
    response_model=TaskBody,
    **declared(WORK_WRITE, 404, 409, 422, body=TaskChanges, takes_match=True),
)
async def change_task(at: At, request: Request, task_id: str) -> Response:
    """Fields that are absent stay as they are. ``POST /api/work/update_task_status`` changes its status."""
    body = await request.body()

    def step(tx: Tx, caller: Caller) -> dict[str, Any]:
        caller.require(WORK_WRITE, "change tasks")
        task = tasks.load(tx.connection, task_id)
        require_match(request, render_task(task, "full"))
        given = asdict(read_body(body, TaskChanges, name="the change"))
        find_work_tool("update_task").run(tx, caller, UpdateTask(task.task_id, **given))
        return render_task(tasks.load(tx.connection, task.task_id), "full")

    return tagged(request, await at.write(step))


def _add_tool(tool: WorkTool) -> None:
    scope = WORK_WRITE if tool.writes else WORK_READ
    tools.post(
        f"/{tool.name}",
        summary=tool.name,
        description=tool.description,
        operation_id=f"work_{tool.name}",
        response_model=dict[str, Any],
        **declared(
            scope,
            404,
            409,
            422,
            body=tool.parameters,
            required=bool(record_schema(tool.parameters).get("required")),
            once=tool.writes,
        ),
    )(_caller_of(tool))


def _caller_of(tool: WorkTool) -> Callable[..., Awaitable[Response]]:
    async def call(at: At, request: Request) -> Response:
        body = await request.body()

        def write(tx: Tx, caller: Caller) -> Answer:
            given = read_body(body, tool.parameters, name=tool.name)
            return Answer(200, _as_object(tool.run(tx, caller, given)))

        def look(connection: sqlite3.Connection, caller: Caller) -> Mapping[str, Any]:
            caller.require(WORK_READ, f"call {tool.name}")
            given = read_body(body, tool.parameters, name=tool.name)
            return _as_object(tool.run(connection, caller, given))

        if tool.writes:
            return answered(await at.write_once(WORK_WRITE, f"call {tool.name}", write))
        return JSONResponse(dict(await at.read(look)))

    return call


def _as_object(value: Any) -> Mapping[str, Any]:
    """Return a tool's answer as an object; a list is its ``items``."""
    return value if isinstance(value, Mapping) else {"items": value}


for _tool in WORK_TOOLS:
    _add_tool(_tool)
