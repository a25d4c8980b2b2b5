"""A plan as Markdown: the user decides over this text, and edits it; reading it gives the plan again.

See ``docs/reference/plans.md``, syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.backlog.planning.plan import Plan, PlannedTask, Wait

_WORDS = {"blocks": "after", "requires": "requires", "relates_to": "relates to"}
_LINE_START = re.compile(r"^([#>*+-]|\d+[.)])(?=\s|$)")
_FENCE = re.compile(r"(```|~~~)")
_GAP = re.compile(r"\n{3,}")


def plan_source(plan: Plan) -> str:
    """Return the whole plan: epics, their stories, their tasks with all that is said of them."""
    return _GAP.sub("\n\n", "\n".join(_lines(plan))).strip() + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    waits: dict[int, list[Wait]] = {}
    for wait in plan.waits:
        waits.setdefault(wait.task, []).append(wait)
    yield from _tasks(plan, None, waits)
    yield from _stories(plan, None, waits)
    for at, epic in enumerate(plan.epics):
        yield from ("", f"# Epic: {epic.title} [{epic.priority}]", "", epic.description, "")
        yield from _stories(plan, at, waits)


def _stories(plan: Plan, epic: int | None, waits: dict[int, list[Wait]]) -> Iterator[str]:
    for place, story in enumerate(plan.stories):
        if story.epic == epic:
            yield from ("", f"## Story: {story.title}", "", story.description, "")
            yield from _tasks(plan, place, waits)


def _tasks(plan: Plan, story: int | None, waits: dict[int, list[Wait]]) -> Iterator[str]:
    for place, task in enumerate(plan.tasks):
        if task.story == story:
            yield _head(plan, task, waits.get(place, []))
            yield from _below(task)


def _head(plan: Plan, task: PlannedTask, waits: list[Wait]) -> str:
    hours = "" if task.estimate_hours is None else f", {task.estimate_hours:g}h"
    line = f"- [{'x' if task.done else ' '}] #{task.number} {task.title} [{task.task_type}{hours}]"
    for kind, word in _WORDS.items():
        named = [
            wait.task_id if wait.on is None else f"#{plan.tasks[wait.on].number}"
            for wait in waits
            if wait.kind == kind
        ]
        if named:
            line += f" ({word} {', '.join(named)})"
    return line


def _below(task: PlannedTask) -> Iterator[str]:
    fenced = False
    if task.description:
        yield ""
        for line in task.description.split("\n"):
            fenced ^= _FENCE.match(line) is not None
            words = line if fenced else _LINE_START.sub(r"\\\1", line.strip())
            yield f"  {words}".rstrip()
        yield ""
    for name, held in (("Files", task.files), ("Packages", task.packages)):
        if held:
            yield f"  - {name}: {', '.join(f'`{each}`' for each in held)}"
    if task.acceptance_criteria:
        yield "  - Acceptance:"
        for line in task.acceptance_criteria.split("\n"):
            yield f"    - {line.strip().removeprefix('- ')}"
