"""One task in full: its state folded from the journal, and the records that only the store has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.app.projection.kanban import TITLES, sign
from cockpit.app.projection.work import TaskState, Work, tests_of
from cockpit.core.text import pluralize
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.journal.details.backlog import WorkInProgress
from cockpit.store.journal.details.detail import read_part
from widgets.text.detail import DetailRow, entries, fields, sentence
from widgets.text.style_names import STRONG
from widgets.text.style_names import tone as style_of
from widgets.work.task_card_views import Tone
from widgets.work.task_views import (
    ActivityView,
    ErrorView,
    HandoffView,
    LinkView,
    QueuedView,
    TaskView,
    WipView,
)

if TYPE_CHECKING:
    from cockpit.store.backlog.handoffs import Handoff
    from cockpit.store.backlog.task_activity import Activity, Failure
    from cockpit.store.backlog.tasks import Task
    from cockpit.store.backlog.work_queue import Queued

_FATES: dict[str, Tone] = {"PASS": "good", "FAIL": "bad", "BLOCKED": "warn"}
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
    """Return the task in full; without ``record`` only what the journal contains."""
    mark, tone = sign(task)
    stored = record.task if record is not None else None
    wip = stored.wip if stored is not None else None
    return TaskView(
        key=task.task_id,
        title=task.title,
        sign=mark,
        tone=tone,
        status=TITLES.get(task.status, task.status).lower(),
        facts=_facts(work, task, stored, record.estimate if record is not None else ""),
        description=task.description,
        criteria=task.criteria,
        blocker=task.blocker,
        links=_links(work, task),
        wip=wip_view(task, wip) if wip or task.wip_at else None,
        handoff=_handoff(task, record),
        failures=tuple(
            ActivityView(
                when(each.created_at),
                _FAILURE.sign,
                _FAILURE.tone,
                f"{each.failure_type} {each.attempt}",
                each.reason,
                each.actor,
            )
            for each in (record.failures if record is not None else ())
        ),
        activity=tuple(
            ActivityView(
                when(each.created_at),
                "·",
                "dim",
                each.activity_type.replace("_", " "),
                each.description,
                each.actor,
            )
            for each in (record.activity if record is not None else ())
        ),
    )


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


def _links(work: Work, task: TaskState) -> tuple[LinkView, ...]:
    links = []
    for other, how in task.needs.items():
        links.append(_link(work, other, _RELATIONS.get(how, how)))
    for other in work.dependents(task.task_id):
        needed = work.tasks[other].needs.get(task.task_id) if other in work.tasks else None
        if needed is not None:
            relation = "relates to" if needed == "relates_to" else "unblocks"
            links.append(_link(work, other, relation))
    return tuple(links)


def _link(work: Work, task_id: str, relation: str) -> LinkView:
    task = work.tasks.get(task_id)
    if task is None:
        return LinkView(task_id, relation, "·", "dim", "")
    mark, tone = sign(task)
    return LinkView(task_id, relation, mark, tone, task.title)


def wip_view(task: TaskState, wip: Mapping[str, Any] | None) -> WipView:
    """Return the task's stored work in progress; with None the last that the journal contains."""
    if wip is None:
        return WipView(
            task.task_id,
            task.title,
            when(task.wip_at),
            phase=task.phase,
            next_step=task.next_step,
            tests=task.tests,
            uncommitted=task.uncommitted or None,
            empty=not task.wip_at,
        )
    stored = read_part(WorkInProgress, wip)
    uncommitted = stored.uncommitted_changes
    return WipView(
        task.task_id,
        task.title,
        when(task.wip_at),
        phase=stored.phase or "",
        next_step=stored.next_step or "",
        context=stored.context,
        tests=tests_of(stored.test_results) if stored.test_results else None,
        last_commit=stored.last_commit,
        uncommitted=uncommitted if isinstance(uncommitted, bool) else None,
        files=stored.files_modified,
        decisions=tuple((each.decision, each.reason) for each in stored.decisions),
        errors=tuple(ErrorView(each.type, each.file, each.message) for each in stored.errors),
    )


def _handoff(task: TaskState, record: TaskRecord | None) -> HandoffView | None:
    if task.handoff is None and (record is None or record.handoff is None):
        return None
    return handoff_view(task, record.handoff if record is not None else None)


def handoff_view(task: TaskState, handoff: Handoff | None, *, details: bool = False) -> HandoffView:
    """What the task handed over; ``details`` shows all of it where it is still stored."""
    folded = task.handoff
    if handoff is None:
        if folded is None:
            return HandoffView(task.task_id, task.title, empty=True)
        state = {"compacted": "its details are gone", "archived": "archived with its epic"}
        return HandoffView(
            task.task_id,
            task.title,
            folded.status,
            _FATES.get(folded.status, "plain"),
            folded.summary,
            folded.files,
            state.get(folded.state, ""),
        )
    if handoff.archived_at:
        state_words = f"archived with its epic {when(handoff.archived_at)}"
    elif handoff.compacted_at:
        state_words = f"its details went with its story {when(handoff.compacted_at)}"
    else:
        state_words = when(handoff.created_at)
    has_details = handoff.full_details is not None
    return HandoffView(
        task.task_id,
        task.title,
        handoff.status,
        _FATES.get(handoff.status, "plain"),
        handoff.summary,
        handoff.files_changed,
        state_words,
        has_details,
        handoff.full_details if details and has_details else None,
    )


def queued_view(row: Queued, task: TaskState | None = None) -> QueuedView:
    """A row of the queue, its place in words; the journal's ``task`` knows what blocks it."""
    mark, tone, state = _queued(row)
    inherited = "" if row.queue_priority == row.priority else " of a task behind it"
    reasons = [f"priority {row.queue_priority}{inherited}"]
    if row.unblocks:
        reasons.append(f"{pluralize(row.unblocks, 'task')} behind it")
    else:
        reasons.append("nothing behind it")
    if row.blocked_by:
        reasons.insert(0, f"waits for {', '.join(row.blocked_by)}")
    elif row.status == "blocked" and task is not None and task.blocker:
        reasons.insert(0, task.blocker)
    if row.claims:
        more = " …" if len(row.claims) > _CLAIMS else ""
        reasons.append(f"touches {', '.join(row.claims[:_CLAIMS])}{more}")
    return QueuedView(row.task_id, row.title, mark, tone, state, " · ".join(reasons))


def queued_detail(row: Queued, place: int, tasks: Mapping[str, TaskState]) -> list[DetailRow]:
    """Say in full why a task is at its ``place`` (from 1) of the queue; ``tasks`` are the backlog's."""
    mark, tone, state = _queued(row)
    task = tasks.get(row.task_id)
    blocker = task.blocker if task is not None and row.status == "blocked" else ""
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
            ("Blocked", blocker),
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


def when(at: str) -> str:
    """A stored moment as it is read: day and minute."""
    return at[5:16].replace("T", " ")
