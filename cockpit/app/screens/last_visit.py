"""What happened since the screen was open last in this project.

Specified in ``docs/reference/screen.md``, welcome.
"""

from __future__ import annotations

import json
import sqlite3

from cockpit.app.prompt_draft import replace_file
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.text import pluralize
from cockpit.store.journal import journal
from cockpit.store.journal.details.backlog import TaskStatusChanged
from cockpit.store.journal.details.chains import ChainChanged
from cockpit.store.journal.event_types import Action

_NAME = "last-visit.json"
_MOST = 5_000
"""Rows of one kind that are counted."""


def load_visit(place: ProjectPaths) -> int | None:
    """Return the journal's last row as the screen was left last; None before the first time."""
    try:
        return int(json.loads((place.state / _NAME).read_text("utf-8"))["seq"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # without it nothing is told, and nothing is lost


def save_visit(place: ProjectPaths, seq: int) -> None:
    """Note that the screen is left now, with the journal at ``seq``. Raises OSError."""
    replace_file(place.state / _NAME, json.dumps({"seq": seq}))


def summarize_since(connection: sqlite3.Connection, after: int) -> str:
    """Return in words which sessions, tasks and chains ended after a row of the journal; empty for none."""

    def count(action: Action) -> int:
        return len(journal.rows(connection, after=after, action=action, limit=_MOST))

    changed: dict[str, str] = {}
    for row in journal.rows(
        connection, after=after, action=Action.TASK_STATUS_CHANGED, limit=_MOST
    ):
        if isinstance(row.detail, TaskStatusChanged):
            changed[row.detail.task_id] = row.detail.to
    statuses = list(changed.values())
    moved = journal.rows(connection, after=after, action=Action.CHAIN_CHANGED, limit=_MOST)
    chains = sum(
        isinstance(row.detail, ChainChanged) and row.detail.what == "ended" for row in moved
    )
    parts = (
        _join(
            (count(Action.SESSION_COMPLETED), "session", "ended"),
            (count(Action.SESSION_FAILED), "session", "failed"),
        ),
        _join(
            (statuses.count("done"), "task", "done"), (statuses.count("blocked"), "task", "blocked")
        ),
        _join((chains, "chain", "ended")),
        _join((count(Action.PROPOSAL_CREATED), "proposal", "made")),
    )
    return " · ".join(filter(None, parts))


def _join(*counts: tuple[int, str, str]) -> str:
    return ", ".join(f"{pluralize(number, noun)} {end}" for number, noun, end in counts if number)
