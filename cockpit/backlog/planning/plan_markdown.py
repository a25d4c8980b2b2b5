"""A plan as Markdown for the user's decision: everything that it would add to the backlog."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.backlog.planning.plan import Plan, PlannedTask, Wait

_GAP = re.compile(r"\n{3,}")
_WORDS = {"blocks": "after", "requires": "requires", "relates_to": "relates to"}


def plan_markdown(plan: Plan) -> str:
    """The whole plan as a tree: epics, their stories, their tasks with all that is said of them."""
    waits: dict[int, list[Wait]] = {}
    for wait in plan.waits:
        waits.setdefault(wait.task, []).append(wait)
    return _GAP.sub("\n\n", "\n".join(_lines(plan, waits))).strip() + "\n"


def _lines(plan: Plan, waits: dict[int, list[Wait]]) -> Iterator[str]:
    yield from _tasks(plan, None, waits)
    for place, story in enumerate(plan.stories):
        if story.epic is None:
            yield from _story(plan, place, waits)
    for at, epic in enumerate(plan.epics):
        yield from ("", f"## Epic: {epic.title} · {epic.priority}", "")
        if epic.description:
            yield from (epic.description, "")
        for place, story in enumerate(plan.stories):
            if story.epic == at:
                yield from _story(plan, place, waits)


def _story(plan: Plan, place: int, waits: dict[int, list[Wait]]) -> Iterator[str]:
    story = plan.stories[place]
    yield from ("", f"### Story: {story.title}", "")
    if story.description:
        yield from (story.description, "")
    yield from _tasks(plan, place, waits)


def _tasks(plan: Plan, story: int | None, waits: dict[int, list[Wait]]) -> Iterator[str]:
    for place, task in enumerate(plan.tasks):
        if task.story == story:
            yield _head(plan, task, waits.get(place, []))
            yield from _below(task)


def _head(plan: Plan, task: PlannedTask, waits: list[Wait]) -> str:
    parts = [f"- **#{task.number}** {task.title}", task.task_type]
    if task.estimate_hours is not None:
        parts.append(f"{task.estimate_hours:g}h")
    for kind, word in _WORDS.items():
        named = [
            wait.task_id if wait.on is None else f"#{plan.tasks[wait.on].number}"
            for wait in waits
            if wait.kind == kind
        ]
        if named:
            parts.append(f"{word} {', '.join(named)}")
    if task.done:
        parts.append("✔ done already")
    return " · ".join(parts)


def _below(task: PlannedTask) -> Iterator[str]:
    for name, held in (("files", task.files), ("packages", task.packages)):
        if held:
            yield f"  - {name}: {', '.join(f'`{each}`' for each in held)}"
    for name, words in (("", task.description), ("acceptance: ", task.acceptance_criteria)):
        if not words:
            continue
        first, *rest = words.split("\n")
        listed = first.startswith("- ")
        yield f"  - {name}{'' if listed else first}".rstrip()
        yield from (f"    {line}".rstrip() for line in (words.split("\n") if listed else rest))
