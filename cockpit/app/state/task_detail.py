"""One task in full, and its place in the queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from textual.content import Content

from cockpit.app.state.kanban import TITLES, sign
from cockpit.app.state.task_rows import handoff_rows, join_sections, when, wip_rows
from cockpit.app.state.work import TaskState, Work
from cockpit.core.text import pluralize
from cockpit.loop.views.state_signs import state_sign
from widgets.text.detail import DetailRow, SheetRow, entries, fields, sentence, sheet
from widgets.text.style_names import BAD, DIM, STRONG, Part, block, line
from widgets.text.style_names import tone as style_of
from widgets.work.task_card_views import Tone
from widgets.work.task_views import QueuedView, TaskView

if TYPE_CHECKING:
    from cockpit.store.backlog.handoffs import Handoff
    from cockpit.store.backlog.task_activity import Activity, Failure
    from cockpit.store.backlog.tasks import Task
    from cockpit.store.backlog.work_queue import Queued

_FAILURE = state_sign("session", "failed")
_CLAIMS = 3
_RELATIONS = {"blocks": "waits for", "requires": "requires", "relates_to": "relates to"}


class TaskRecord(msgspec.Struct, frozen=True):
    """The records of a task in the store; the newest comes first."""

    task: Task
    activity: Sequence[Activity] = ()
    failures: Sequence[Failure] = ()
    handoff: Handoff | None = None
    estimate: str = ""
    """The planner's estimate of its newest run, in words."""


def task_view(work: Work, task: TaskState, record: TaskRecord | None = None) -> TaskView:
    """Return the task in full; without ``record`` only what the board has of it."""
    stored = record.task if record is not None else None
    handoff = record.handoff if record is not None else None
    sections: list[list[SheetRow]] = []
    if links := _links(work, task):
        sections.append([("Depends", None), *links])
    if stored is not None and stored.wip:
        sections.append([("Work in progress", None), *wip_rows(task, stored.wip, brief=True)])
    if task.handoff is not None or handoff is not None:
        sections.append([("Handoff", None), *handoff_rows(task, handoff, brief=True)])
    if record is not None and record.failures:
        failures = [
            _happening(
                each.created_at, _FAILURE.sign, _FAILURE.tone,
                f"{each.failure_type} {each.attempt}", each.reason, each.actor,
            )
            for each in record.failures
        ]  # fmt: skip
        sections.append([("Failures", None), *failures])
    activity = [
        _happening(
            each.created_at, "·", "dim", each.activity_type.replace("_", " "), each.description,
            each.actor,
        )
        for each in (record.activity if record is not None else ())
    ]  # fmt: skip
    return TaskView(
        _head(task, _facts(work, task, stored, record.estimate if record is not None else "")),
        task.description,
        task.criteria,
        tuple(sheet(join_sections(sections))),
        tuple(sheet([("Activity", None), *activity])) if activity else (),
    )


def _head(task: TaskState, facts: Iterable[tuple[str, str]]) -> Content:
    mark, look = sign(task)
    style = style_of(look)
    rows = [line((mark or "·", style), " ", (task.task_id, STRONG), "  ", (task.title, STRONG))]
    parts: list[Part] = [(TITLES.get(task.status, task.status).lower(), style)]
    for name, value in facts:
        parts += ["   ", (f"{name} " if name else "", DIM), value]
    rows.append(line(*parts))
    if task.blocker:
        rows.append(Content.assemble(line(("■ ", BAD)), block(task.blocker, BAD)))
    return Content("\n").join(rows)


def _happening(at: str, mark: str, look: str, kind: str, text: str, by: str) -> SheetRow:
    style = style_of(look)
    who: list[Part] = [(f"  {by}", DIM)] if by else []
    return (when(at), line((mark, style), " ", (kind, style or DIM), "  ", text, *who))


def _facts(
    work: Work, task: TaskState, stored: Task | None, expected: str
) -> tuple[tuple[str, str], ...]:
    facts = [("", task.type)]
    story, epic = work.stories.get(task.story_id), work.epic_of(task)
    if epic is not None:
        facts.append(("", epic.priority))
    if task.rework:
        facts.append(("", "needs rework"))
    if task.status in ("in_progress", "review") and task.progress:
        facts.append(("", f"{task.progress} %"))
    if stored is not None and stored.estimate_hours:
        facts.append(("estimate", f"{stored.estimate_hours:g} h"))
    if expected:
        facts.append(("takes", expected))
    if task.story_id:
        facts.append(("story", f"{task.story_id} {story.title if story is not None else ''}"))
    if epic is not None:
        facts.append(("epic", f"{epic.epic_id} {epic.title}"))
    if stored is not None:
        for name, paths in (("packages", stored.packages), ("files", stored.files)):
            if paths:
                facts.append((name, ", ".join(paths)))
    return tuple((name, value.strip()) for name, value in facts if value.strip())


def _links(work: Work, task: TaskState) -> list[SheetRow]:
    rows = [_link(work, other, _RELATIONS.get(how, how)) for other, how in task.needs.items()]
    for other in work.dependents(task.task_id):
        needed = work.tasks[other].needs.get(task.task_id) if other in work.tasks else None
        if needed is not None:
            relation = "relates to" if needed == "relates_to" else "unblocks"
            rows.append(_link(work, other, relation))
    return rows


def _link(work: Work, task_id: str, relation: str) -> SheetRow:
    task = work.tasks.get(task_id)
    mark, look = sign(task) if task is not None else ("·", "dim")
    title = task.title if task is not None else ""
    return (relation, line((mark, style_of(look)), " ", (task_id, STRONG), "  ", title))


def queued_view(row: Queued, blocker: str = "") -> QueuedView:
    """A row of the queue, its place in words; ``blocker`` is what blocks the task."""
    mark, tone, state = _queued(row)
    inherited = "" if row.queue_priority == row.priority else " of a task behind it"
    reasons = [f"priority {row.queue_priority}{inherited}"]
    if row.unblocks:
        reasons.append(f"{pluralize(row.unblocks, 'task')} behind it")
    else:
        reasons.append("nothing behind it")
    if row.blocked_by:
        reasons.insert(0, f"waits for {', '.join(row.blocked_by)}")
    elif row.status == "blocked" and blocker:
        reasons.insert(0, blocker)
    if row.claims:
        more = " …" if len(row.claims) > _CLAIMS else ""
        reasons.append(f"touches {', '.join(row.claims[:_CLAIMS])}{more}")
    return QueuedView(row.task_id, row.title, mark, tone, state, " · ".join(reasons))


def queued_detail(
    row: Queued, blocker: str, place: int, tasks: Mapping[str, TaskState]
) -> list[DetailRow]:
    """Say in full why a task is at its ``place`` (from 1) of the queue; ``tasks`` are the backlog's."""
    mark, tone, state = _queued(row)
    inherited = row.queue_priority != row.priority
    group = "next to the tasks in progress" if row.batch_group == 1 else f"batch {row.batch_group}"
    facts = fields(
        [
            ("Place", f"{place}"),
            ("Priority", row.priority),
            (
                "Moved up",
                f"to {row.queue_priority}: a task that waits for it has that" if inherited else "",
            ),
            ("Can start", group if row.ready and row.batch_group else ""),
            ("Blocked", blocker if row.status == "blocked" else ""),
            (
                "Behind it",
                f"{pluralize(row.unblocks, 'task')} {'wait' if row.unblocks > 1 else 'waits'} for it"
                if row.unblocks
                else "no task",
            ),
        ]
    )
    waits = [(each, tasks[each].title if each in tasks else "") for each in row.blocked_by]
    return [
        sentence((row.task_id, STRONG), "  ", row.title),
        sentence((f"{mark} {state}", style_of(tone))),
        sentence(),
        *facts,
        *entries("Waits for", waits),
        *entries("May change", [("·", path) for path in row.claims]),
    ]


def _queued(row: Queued) -> tuple[str, Tone, str]:
    if row.status in ("in_progress", "review", "blocked"):
        look = state_sign("task", row.status)
        return look.sign, look.tone, look.word
    look = state_sign("task", "todo" if row.ready else "later")
    if not row.ready:
        return look.sign, look.tone, "waits"
    if row.batch_group == 1:
        return look.sign, "good", "can start now"
    return look.sign, look.tone, f"batch {row.batch_group}" if row.batch_group else "later"
