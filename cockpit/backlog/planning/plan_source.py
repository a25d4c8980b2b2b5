"""A plan as the Markdown that a user edits: reading it gives the plan again.

See ``docs/reference/plans.md``, syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.backlog.planning.plan import Plan, PlannedTask, Wait

_WORDS = {"blocks": "Depends on", "requires": "Requires", "relates_to": "Relates to"}
_LINE_START = re.compile(r"^(\s*)([#>*+-]|\d+[.)])(?=\s|$)")


def plan_source(plan: Plan) -> str:
    """Return the plan in the syntax of ``cockpit plan``."""
    waits: dict[int, list[Wait]] = {}
    for wait in plan.waits:
        waits.setdefault(wait.task, []).append(wait)
    return "\n".join(_lines(plan, waits)).strip() + "\n"


def _lines(plan: Plan, waits: dict[int, list[Wait]]) -> Iterator[str]:
    yield from _tasks(plan, None, waits)
    for place, story in enumerate(plan.stories):
        if story.epic is None:
            yield from ("", f"## Story: {story.title}", "")
            yield from _tasks(plan, place, waits)
    for at, epic in enumerate(plan.epics):
        yield from ("", f"# Epic: {epic.title} [{epic.priority}]", "")
        for place, story in enumerate(plan.stories):
            if story.epic == at:
                yield from ("", f"## Story: {story.title}", "")
                yield from _tasks(plan, place, waits)


def _tasks(plan: Plan, story: int | None, waits: dict[int, list[Wait]]) -> Iterator[str]:
    for place, task in enumerate(plan.tasks):
        if task.story == story:
            yield from _task(plan, task, waits.get(place, []))


def _task(plan: Plan, task: PlannedTask, waits: list[Wait]) -> Iterator[str]:
    box = "x" if task.done else " "
    yield f"- [{box}] #{task.number} {task.title} [{task.task_type}]"
    for kind, word in _WORDS.items():
        named = [
            wait.task_id if wait.on is None else f"#{plan.tasks[wait.on].number}"
            for wait in waits
            if wait.kind == kind
        ]
        if named:
            yield f"  {word}: {', '.join(named)}"
    if task.files:
        yield f"  Files: {', '.join(f'`{path}`' for path in task.files)}"
    if task.packages:
        yield f"  Packages: {', '.join(task.packages)}"
    if task.estimate_hours is not None:
        yield f"  Estimate: {task.estimate_hours:g}h"
    for line in task.description.split("\n"):
        if line.strip():
            yield "  " + _LINE_START.sub(r"\1\\\2", line.strip())
    if task.acceptance_criteria:
        yield "  Acceptance:"
        for line in task.acceptance_criteria.split("\n"):
            yield f"  - {line.strip().removeprefix('- ')}"
