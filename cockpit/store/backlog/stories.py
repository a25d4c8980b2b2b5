"""Stories: the tasks that together give somebody something, and the boundary at which they are done."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cockpit.core.secrets import mask
from cockpit.store.backlog.backlog_ids import EPIC, STORY, next_number, read_id, unknown, written
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action


@dataclass(frozen=True, slots=True)
class Story:
    """One row of ``stories``; ``epic_id`` is None for a story that stands alone."""

    story_id: str
    number: int
    epic_id: str | None
    title: str
    description: str
    status: str
    created_at: str
    updated_at: str
    done_at: str | None


_COLUMNS = "story_id, number, epic_id, title, description, status, created_at, updated_at, done_at"


def load(connection: sqlite3.Connection, story_id: str) -> Story:
    """The story of that id. Raises :class:`~cockpit.core.errors.NotFound`."""
    named = read_id(STORY, story_id)
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM stories WHERE story_id=?",  # noqa: S608
        (named,),
    ).fetchone()
    if row is None:
        raise unknown(STORY, named)
    return Story(*row)


def listed(
    connection: sqlite3.Connection,
    *,
    epic_id: str | None = None,
    status: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> list[Story]:
    """Stories (of an epic) in the order they were written; archived ones only when asked for."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM stories WHERE (CASE WHEN :status IS NULL THEN status <> 'archived'"  # noqa: S608
        " ELSE status=:status END) AND (:epic IS NULL OR epic_id=:epic)"
        " ORDER BY number LIMIT :limit OFFSET :offset",
        {
            "status": status,
            "epic": None if epic_id is None else read_id(EPIC, epic_id),
            "limit": limit,
            "offset": offset,
        },
    )
    return [Story(*row) for row in found]


def insert(
    tx: Tx,
    title: str,
    *,
    epic_id: str | None = None,
    description: str = "",
    number: int | None = None,
    by: str,
) -> Story:
    """A new story, journalled as ``story.created``; ``number`` is for an import that keeps ids."""
    own = number or next_number(tx, STORY)
    now = tx.now()
    made = Story(
        written(STORY, own), own, epic_id, mask(title), mask(description), "todo", now, now, None
    )
    tx.execute(
        f"INSERT INTO stories({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)",  # noqa: S608
        (
            made.story_id,
            made.number,
            made.epic_id,
            made.title,
            made.description,
            made.status,
            made.created_at,
            made.updated_at,
            made.done_at,
        ),
    )
    tx.journal(Action.STORY_CREATED, actor=by, detail=detail(made))
    return made


def change(tx: Tx, story: Story, changes: Mapping[str, Any], *, by: str) -> Story:
    """``story`` with these fields changed, journalled as ``story.changed``; unchanged, nothing is."""
    now = tx.now()
    sound: dict[str, Any] = {
        name: mask(value) if name in ("title", "description") else value
        for name, value in changes.items()
    }
    made = replace(story, **sound)
    if made == story:
        return story
    done_at = (story.done_at or now) if made.status == "done" else None
    made = replace(made, updated_at=now, done_at=done_at)
    tx.execute(
        "UPDATE stories SET epic_id=?, title=?, description=?, status=?, updated_at=?, done_at=?"
        " WHERE story_id=?",
        (
            made.epic_id,
            made.title,
            made.description,
            made.status,
            made.updated_at,
            made.done_at,
            made.story_id,
        ),
    )
    tx.journal(Action.STORY_CHANGED, actor=by, detail=detail(made))
    return made


def detail(story: Story) -> dict[str, Any]:
    """What the journal says of a story, and what a view of it is drawn from."""
    return {
        "story_id": story.story_id,
        "epic_id": story.epic_id,
        "title": story.title,
        "status": story.status,
        "description": story.description,
    }
