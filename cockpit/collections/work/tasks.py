"""The backlog: tasks, the stories that they add up to, and their epics."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cockpit.access.principals import PERSON
from cockpit.access.token_scopes import WORK_READ
from cockpit.collections.collection import (
    LIMIT,
    Collection,
    Field,
    FilterInvalid,
    Listed,
    View,
    open_records,
)
from cockpit.store.backlog.epics_and_stories import STATUSES

Document = Mapping[str, Any]
UNCAPPED = 10**9
"""A token limit that no answer reaches: the limit of answers is for models."""
_PARENTS = {
    "story": ("list_stories", "stories", ("story_id", "priority")),
    "epic": ("get_epics", "epics", ("story_id", "epic_id")),
}
"""By kind: the tool that lists it, the key of its answer, and the filters that it has not."""


def kind_of(name: str) -> str:
    """Return ``task``, ``story`` or ``epic`` by the letter of an id as users type it."""
    return {"s": "story", "e": "epic"}.get(name[:1].lower(), "task")


def read_with_tool(connection: sqlite3.Connection, name: str, **arguments: Any) -> Any:
    """Return the answer of a tool that reads the backlog. Raises what it does."""
    from cockpit.backlog.tools.tool_table import find_work_tool

    tool = find_work_tool(name)
    return tool.run(connection, PERSON, tool.parameters(**arguments), cap_tokens=UNCAPPED)


def _read(
    view: View, kind: str, fields: str | None, limit: int, offset: int, **terms: str | None
) -> Listed[Document]:
    tool, key, foreign = _PARENTS.get(kind, ("", "tasks", ()))
    if wrong := [name for name in foreign if terms[name]]:
        raise FilterInvalid(f"--{wrong[0].removesuffix('_id')} does not filter --kind {kind}.")
    if view.connection is None:
        return Listed(())
    fields = fields or ("standard" if kind == "epic" else "minimal")
    if tool:
        given = {name: value for name, value in terms.items() if name not in foreign}
        page = {"fields": fields, "limit": limit, "offset": offset}
        answer = read_with_tool(view.connection, tool, **given, **page)
    else:
        from cockpit.backlog.tools.query_tools import page_of_tasks

        resolved = _resolve_ids(view.connection, terms)
        answer = page_of_tasks(view.connection, resolved, limit, offset, fields, UNCAPPED)
    more = [f"{answer['more']} more: --offset {answer['next_offset']}"] if "more" in answer else []
    return Listed(answer[key], more)


def _resolve_ids(
    connection: sqlite3.Connection, terms: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Return the terms with full ids. Raises ``NotFound``."""
    from cockpit.store.backlog.epics_and_stories import EPICS, STORIES

    rows = dict(terms)
    if rows["story_id"]:
        rows["story_id"] = STORIES.load(connection, rows["story_id"]).story_id
    if rows["epic_id"]:
        rows["epic_id"] = EPICS.load(connection, rows["epic_id"]).epic_id
    return rows


def _find(view: View, name: str, fields: str | None = None) -> Document:
    given = {"fields": fields or "standard", f"{kind_of(name)}_id": name}
    row: Document = read_with_tool(open_records(view), f"get_{kind_of(name)}", **given)
    return row


def _columns(rows: Sequence[Document]) -> Mapping[str, Callable[[Document], str]]:
    columns: dict[str, Callable[[Document], str]] = {
        kind_of(rows[0]["id"]).upper(): lambda row: row["id"],
        "STATUS": lambda row: row["status"].replace("_", " "),
        "TYPE": lambda row: row["type"] or "–",
        "STORY": lambda row: row["story"] or "–",
        "PRIORITY": lambda row: row["priority"] or "–",
        "TITLE": lambda row: row["title"],
    }
    filled = {next(iter(columns)), *(name.upper() for name in rows[0])}
    return {heading: cell for heading, cell in columns.items() if heading in filled}


def _say_none(kind: str, fields: str | None, limit: int, offset: int, **terms: str | None) -> str:
    if kind in _PARENTS:
        return f"No {_PARENTS[kind][1]} match. `cockpit tasks add TITLE --kind {kind}` adds one."
    return (
        "No tasks match."
        if any(terms.values())
        else "No tasks yet. `cockpit tasks add TITLE` adds one."
    )


COLLECTION: Collection[Document] = Collection(
    name="tasks",
    command="tasks",
    title="Tasks",
    summary="Manage tasks, stories and epics.",
    help="""Manage this project's backlog: tasks, the stories that they add up to, and their epics.

    The oldest is listed first, of epics the most urgent. Write a TASK as T-42, t42 or 42, a story as S-12
    and an epic as E-1. A task is shown with its history, a story with its tasks. Archived tasks are
    listed only with --status archived. `cockpit chain diff`, `take` and `drop` show, merge and remove a
    task's branch.
    """,
    examples=(
        "cockpit tasks --story S-12 --status blocked",
        "cockpit tasks T-42",
        "cockpit tasks --kind epic",
        'cockpit tasks add "Refresh tokens before they expire"',
        "cockpit tasks move T-42 done",
    ),
    row="TASK",
    sample="T-42",
    columns=_columns,
    read=_read,
    find=_find,
    none=_say_none,
    body=dict,
    filters=(
        Field("kind", "List this kind.", choices=("task", *_PARENTS), default="task"),
        Field("status", "List only this status.", choices=STATUSES),
        Field(
            "priority",
            "Use this priority; P0 is the most urgent.",
            choices=("P0", "P1", "P2", "P3"),
        ),
        Field("story_id", "List only tasks of this story.", "--story", metavar="ID"),
        Field("epic_id", "List only what is in this epic.", "--epic", metavar="ID"),
        Field(
            "fields",
            "Print this much of each record; minimal is id, title and status.",
            choices=("minimal", "standard", "full"),
            of_row=True,
        ),
        Field("limit", LIMIT.help, kind="number", default=50, most=1000),
        Field(
            "offset",
            "Skip this many records first.",
            kind="number",
            default=0,
            least=0,
            most=2**31,
        ),
    ),
    scope=WORK_READ,
    key="ctrl+t",
)
