"""Work tools for stories and epics, and for the status of the whole project."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Struct

from cockpit.backlog import service
from cockpit.backlog.response_modes import (
    Fields,
    page,
    render_all,
    render_epic,
    render_story,
    render_task,
    shorten_to_fit,
)
from cockpit.backlog.tools.query_tools import (
    MOST_LISTED,
    NoParameters,
    Priority,
    Status,
    check_limit,
)
from cockpit.backlog.tools.work_tool import ToolCall, changes_in, work_tool
from cockpit.core.read_record import describe
from cockpit.store.backlog import tasks, work_queue
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES

StoryStatus = Literal["todo", "in_progress", "done"]


class CreateStory(Struct, frozen=True):
    title: str
    epic_id: str | None = None
    description: str | None = None


class GetStory(Struct, frozen=True):
    story_id: str
    fields: Fields = "standard"


class ListStories(Struct, frozen=True):
    epic_id: str | None = None
    status: StoryStatus | None = None
    limit: int = 50
    offset: int = 0
    fields: Fields = "minimal"


class UpdateStory(Struct, frozen=True):
    story_id: str
    title: str | None = None
    description: str | None = None
    status: StoryStatus | None = None
    epic_id: Annotated[str | None, describe("empty: belongs to none")] = None


class CreateEpic(Struct, frozen=True):
    title: str
    project_id: Annotated[str | None, describe("ignored: there is one project")] = None
    description: str | None = None
    priority: Priority = "P2"


class GetEpic(Struct, frozen=True):
    epic_id: str
    fields: Fields = "standard"


class GetEpics(Struct, frozen=True):
    status: Status | None = None
    priority: Priority | None = None
    limit: int = 50
    offset: int = 0
    fields: Fields = "minimal"


class UpdateEpic(Struct, frozen=True):
    epic_id: str
    title: str | None = None
    description: str | None = None
    priority: Priority | None = None
    status: Status | None = None


@work_tool(CreateStory, "standard", "Add a story.", writes=True)
def _create_story(call: ToolCall, args: CreateStory) -> dict[str, Any]:
    story = service.create_story(
        call.tx, args.title, epic_id=args.epic_id, description=args.description or "", by=call.by
    )
    return render_story(story)


@work_tool(GetStory, "standard", "Get a story and its tasks.")
def _get_story(call: ToolCall, args: GetStory) -> dict[str, Any]:
    story = STORIES.load(call.connection, args.story_id)
    rows = tasks.select(call.connection, story_id=story.story_id, limit=MOST_LISTED)
    total = tasks.count(call.connection, story_id=story.story_id)
    body = shorten_to_fit(render_story(story, args.fields), call.cap_tokens // 2)
    return {
        **body,
        **page(render_all(render_task, rows, "minimal"), call.cap_tokens // 2, total=total),
    }


@work_tool(ListStories, "standard", "List stories.")
def _list_stories(call: ToolCall, args: ListStories) -> dict[str, Any]:
    limit, offset = check_limit(args.limit), max(0, args.offset)
    # One row more than the limit shows whether any is left; a count is not needed.
    rows = STORIES.select(
        call.connection, epic_id=args.epic_id, status=args.status, limit=limit + 1, offset=offset
    )
    items = render_all(render_story, rows[:limit], args.fields)
    total = offset + len(rows)
    return page(items, call.cap_tokens, name="stories", offset=offset, total=total)


@work_tool(UpdateStory, "all", "Change a story.", writes=True)
def _update_story(call: ToolCall, args: UpdateStory) -> dict[str, Any]:
    changes = changes_in(args, "story_id")
    return render_story(service.update_story(call.tx, args.story_id, changes, by=call.by))


@work_tool(CreateEpic, "standard", "Add an epic.", writes=True)
def _create_epic(call: ToolCall, args: CreateEpic) -> dict[str, Any]:
    epic = service.create_epic(
        call.tx,
        args.title,
        description=args.description or "",
        priority=args.priority,
        source=call.by,
        by=call.by,
    )
    return render_epic(epic)


@work_tool(GetEpic, "standard", "Get an epic and its stories.")
def _get_epic(call: ToolCall, args: GetEpic) -> dict[str, Any]:
    epic = EPICS.load(call.connection, args.epic_id)
    rows = STORIES.select(call.connection, epic_id=epic.epic_id, limit=MOST_LISTED)
    body = shorten_to_fit(render_epic(epic, args.fields), call.cap_tokens // 2)
    items = render_all(render_story, rows, "minimal")
    return {**body, **page(items, call.cap_tokens // 2, name="stories")}


@work_tool(GetEpics, "standard", "List epics.")
def _get_epics(call: ToolCall, args: GetEpics) -> dict[str, Any]:
    limit, offset = check_limit(args.limit), max(0, args.offset)
    rows = EPICS.select(
        call.connection,
        status=args.status,
        priority=args.priority,
        limit=limit + 1,
        offset=offset,
    )
    items = render_all(render_epic, rows[:limit], args.fields)
    total = offset + len(rows)
    return page(items, call.cap_tokens, name="epics", offset=offset, total=total)


@work_tool(UpdateEpic, "all", "Change an epic.", writes=True)
def _update_epic(call: ToolCall, args: UpdateEpic) -> dict[str, Any]:
    changes = changes_in(args, "epic_id")
    epic = service.update_epic(call.tx, args.epic_id, changes, by=call.by)
    return {**render_epic(epic), "priority": epic.priority}


@work_tool(NoParameters, "standard", "Count by status.")
def _get_project_status(call: ToolCall, _: NoParameters) -> dict[str, Any]:
    def counted(sql: str) -> dict[str, int]:
        return dict(call.connection.execute(sql).fetchall())

    return {
        "tasks": counted("SELECT status, count(*) FROM tasks GROUP BY status"),
        "stories": counted("SELECT status, count(*) FROM stories GROUP BY status"),
        "epics": counted("SELECT status, count(*) FROM epics GROUP BY status"),
        "ready": work_queue.count_ready(call.connection),
    }
