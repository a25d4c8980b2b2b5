"""Estimating tasks of the backlog: all roles together, from past runs of tasks of their type.

See ``docs/reference/planner.md``, tasks and chains.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from cockpit.decide.planner.estimate import Estimate
from cockpit.loop.planner.estimate_kinds import family_of
from cockpit.loop.planner.estimate_session import EstimateInput, estimate_kind
from cockpit.loop.planner.measure_size import measure_size


class TaskText(Struct, frozen=True):
    """What is known of a task before it begins."""

    task_type: str
    text: str
    """Title, description and acceptance criteria."""
    files: tuple[str, ...] = ()


def estimate_backlog_task(
    connection: sqlite3.Connection,
    task: TaskText,
    root: Path,
    model: str,
    usd_a_token: float | None,
) -> Estimate:
    """Estimate what all roles of a task take together."""
    given = EstimateInput(measure_task(task, root), usd_a_token)
    return estimate_kind(connection, "task", task.task_type, family_of(model), model, given)


def measure_task(task: TaskText, root: Path) -> int:
    """Return the size of a task in tokens."""
    return measure_size(task.text, _as_items(task.files), root)


def _as_items(files: Iterable[str]) -> list[str]:
    return [f"file:{path}" for path in files]
