"""The first message of a session, with the task's deterministic context.

Either the context is complete, or the task does not start and says why in one sentence. See
``docs/reference/task-types.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cockpit.core.secrets import mask
from cockpit.loop.intake.intent import Task
from cockpit.loop.intake.review_pull_request import pull_request
from cockpit.loop.intake.review_range import commit_range
from cockpit.loop.intake.review_target import IntentUnclear, Repository, resolve_range
from cockpit.loop.intake.review_template import OpeningFailed, ReviewContext, visible
from cockpit.loop.intake.task_types import TaskType

__all__ = ["Opening", "OpeningFailed", "opening"]


class ProjectPaths(Protocol):
    """Where a task happens. ``root`` is the project's directory."""

    @property
    def root(self) -> Path: ...


@dataclass(frozen=True, slots=True)
class Opening:
    """The start of a task.

    ``text`` is the first user message, masked. ``scope_items`` name what the task type declares
    deterministic; for a review ``text`` already holds it, and they say so in the journal. ``target``
    has commit ids filled in; ``rev`` is the commit that files are read at, None for the working
    tree. ``notice`` is one line for the user, often empty.
    """

    text: str
    scope_items: tuple[str, ...] = ()
    target: Mapping[str, Any] = field(default_factory=dict)
    rev: str | None = None
    notice: str = ""


async def opening(task: Task, task_type: TaskType, ground: ProjectPaths) -> Opening:
    """Gather what every task of this type needs. Raises :class:`OpeningFailed`."""
    target = dict(task.target)
    text = mask(visible(task.words))
    values = {"words": text, "title": mask(visible(task.title))}
    if "pr" in target:
        number = str(target["pr"])
        review = await pull_request(target["pr"], target.get("repo"), ground.root)
        values |= {"subject": f"PR #{number}", "number": number, "target": f"PR #{number}"}
        if review.rev:
            target["head"] = review.rev
        return _reviewed(task_type, values, target, review)
    if "range" in target:
        spelled = str(target["range"])
        if not (target.get("base") and target.get("tip")):
            try:
                target = await resolve_range(spelled, Repository(ground.root))
            except IntentUnclear as error:
                raise OpeningFailed(str(error)) from error
        base, tip = str(target["base"]), str(target["tip"])
        review = await commit_range(spelled, base, tip, ground.root)
        range_text = mask(visible(spelled))
        values |= {
            "subject": range_text,
            "range": range_text,
            "target": range_text,
            "base": base,
            "tip": tip,
        }
        return _reviewed(task_type, values, target, review)
    if task_type.needs_target:
        raise OpeningFailed(f"{task_type.command} needs {task_type.arguments}.")
    return Opening(
        text=mask(task_type.message({**values, "subject": values["title"]})),
        scope_items=task_type.scope_items(values),
    )


def _reviewed(
    task_type: TaskType, values: dict[str, str], target: dict[str, Any], review: ReviewContext
) -> Opening:
    filled = {**values, **review.values()}
    return Opening(
        text=mask(task_type.message(filled, local="range" in target)),
        scope_items=task_type.scope_items(values),
        target=target,
        rev=review.rev,
        notice=review.notice,
    )
