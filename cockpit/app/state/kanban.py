"""The backlog as it is looked at: lines of what is at work, and the board's columns of cards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice

from msgspec import Struct, field

from cockpit.app.state.work import COLUMNS, SETTLED, TaskState, Work
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.chains.retry_delays import describe_try
from widgets.work.task_card_views import CardView, ColumnView, KanbanView, TaskLineView, Tone

TITLES = {
    "todo": "To do",
    "in_progress": "In progress",
    "review": "Review",
    "blocked": "Blocked",
    "done": "Done",
    "archived": "Archived",
}
LEFT = "left here: the next worker resumes it"
_AT_WORK = ("in_progress", "review", "blocked")
_LINES_MOST = 40
_DONE_LINES = 3
_PRIORITIES = ("P0", "P1", "P2", "P3")


def sign(task: TaskState) -> tuple[str, Tone]:
    """The sign and tone of a task: one that waits for others, or for a worker, has a sign of its own."""
    state = task.status
    if state == "todo" and not task.ready:
        state = "later"
    elif state in ("in_progress", "review") and task.left:
        state = "left"
    look = state_sign("task", state)
    return look.sign, look.tone


def summary(work: Work) -> str:
    """The backlog in one line; empty while there is none."""
    counts = {name: len(work.standing(name)) for name in COLUMNS}
    total = sum(counts.values())
    if not total:
        return ""
    parts = [f"{counts['done']:,}/{total:,} task" + ("s" if total != 1 else "")]
    parts.append(f"{len(work.ready):,} ready")
    if counts["in_progress"]:
        parts.append(_count(counts, "in_progress"))
    if counts["blocked"]:
        parts.append(_count(counts, "blocked"))
    return "   ".join(parts)


def _count(counts: Mapping[str, int], status: str) -> str:
    look = state_sign("task", status)
    return f"{look.sign} {counts[status]:,} {look.word}"


def lines(work: Work, *, beside: Collection[str] = ()) -> tuple[TaskLineView, ...]:
    """The tasks at work, the oldest first, and those that were done last; without those that are
    shown ``beside``."""
    tasks: list[TaskState] = []
    for status in _AT_WORK:
        standing = work.standing(status)
        if len(standing) <= _LINES_MOST:
            tasks += sorted(standing.values(), key=lambda each: (each.number, each.task_id))
        else:
            tasks += islice(standing.values(), _LINES_MOST)
    done = islice(reversed(work.standing("done").values()), _DONE_LINES)
    shown = [*tasks[:_LINES_MOST], *done]
    return tuple(task_line(each) for each in shown if each.task_id not in beside)


def task_line(task: TaskState) -> TaskLineView:
    """Where a task stands, on one line."""
    mark, tone = sign(task)
    phase, words = task.phase or "started", f"next: {task.next_step}" if task.next_step else ""
    tests = task.tests
    if task.status == "todo":
        phase = "to do"
    elif task.left and task.status in ("in_progress", "review"):
        words = LEFT
    elif task.status == "review":
        phase, words = "review", words if task.rework else ""
    elif task.status == "blocked":
        phase, words = "blocked", task.blocker
    elif task.status in SETTLED:
        phase, tests, words = "done", None, ""
        if task.handoff is not None:
            phase, words = "handoff", f"{task.handoff.status}: {task.handoff.summary}"
    return TaskLineView(task.task_id, mark, tone, phase, title=task.title, tests=tests, text=words)


class Looking(Struct):
    """What of the backlog the board shows: the tasks in ``scope`` (an epic's or a story's id; empty:
    all) that have every one of ``words``; ``grouped`` puts those of a story together, under its name.

    ``task_id`` is where the cursor was. A column is drawn again only when one of its tasks changed.
    """

    scope: str = ""
    words: str = ""
    grouped: bool = False
    task_id: str = ""
    _columns: dict[str, tuple[object, ColumnView]] = field(default_factory=dict)

    def kanban(self, work: Work) -> KanbanView:
        """The board."""
        return KanbanView(
            tuple(self._column(work, status) for status in COLUMNS),
            summary(work),
            scope_words(work, self.scope),
            self.words,
        )

    def _column(self, work: Work, status: str) -> ColumnView:
        now = (work, work.moved[status], work.names, self.scope, self.words, self.grouped)
        before = self._columns.get(status)
        if before is None or before[0] != now:
            before = self._columns[status] = (now, self._drawn(work, status))
        return before[1]

    def _drawn(self, work: Work, status: str) -> ColumnView:
        tasks: Iterable[TaskState] = work.standing(status).values()
        typed = self.words.casefold().split()
        if self.scope:
            tasks = (each for each in tasks if in_scope(work, each, self.scope))
        if typed:
            tasks = (each for each in tasks if all(word in _sought(work, each) for word in typed))
        ordered = _ordered(work, status, tasks)
        cards = _grouped(work, ordered) if self.grouped else [_card(work, each) for each in ordered]
        return ColumnView(status, TITLES[status], tuple(cards), len(ordered))


def in_scope(work: Work, task: TaskState, scope: str) -> bool:
    """True when the task belongs to the story or epic of that id."""
    if task.story_id == scope:
        return True
    story = work.stories.get(task.story_id)
    return story is not None and story.epic_id == scope


def scope_words(work: Work, scope: str) -> str:
    """An epic or a story as people name it."""
    named = work.epics.get(scope) or work.stories.get(scope)
    return f"{scope} {named.title}".strip() if named is not None else scope


def _ordered(work: Work, status: str, tasks: Iterable[TaskState]) -> list[TaskState]:
    if status == "done":
        return list(tasks)[::-1]
    ranks = _ranks(work)
    return sorted(
        tasks,
        key=lambda each: (
            status == "todo" and not each.ready,
            ranks.get(each.story_id, _rank("P2")),
            each.number,
            each.task_id,
        ),
    )


def _ranks(work: Work) -> dict[str, int]:
    """The rank of each story: its epic's priority."""
    epics = {each.epic_id: _rank(each.priority) for each in work.epics.values()}
    return {
        each.story_id: epics.get(each.epic_id or "", _rank("P2")) for each in work.stories.values()
    }


def _rank(priority: str) -> int:
    return _PRIORITIES.index(priority) if priority in _PRIORITIES else len(_PRIORITIES)


def _grouped(work: Work, tasks: list[TaskState]) -> list[CardView]:
    groups: dict[str, list[TaskState]] = {}
    for task in tasks:
        groups.setdefault(task.story_id, []).append(task)
    cards: list[CardView] = []
    for story_id, members in groups.items():
        story = work.stories.get(story_id)
        epic = work.epics.get(story.epic_id or "") if story is not None else None
        above = f"{epic.epic_id} {epic.title}" if epic is not None else ""
        heading = f"{story_id} {story.title}" if story is not None else story_id or "no story"
        cards.append(CardView(f"# {story_id}", above, heading=heading))
        cards += [_card(work, each) for each in members]
    return cards


def _card(work: Work, task: TaskState) -> CardView:
    if task.card is not None and task.card[0] == work.names:
        return task.card[1]
    mark, tone = sign(task)
    note, note_tone = _note(work, task)
    card = CardView(
        task.task_id,
        task.title,
        mark,
        tone,
        mark=work.priority(task) if work.epic_of(task) is not None else "",
        note=note,
        note_tone=note_tone,
        tests=None if task.status in SETTLED else task.tests,
    )
    task.card = (work.names, card)
    return card


def _note(work: Work, task: TaskState) -> tuple[str, Tone]:
    if task.status == "blocked":
        return task.blocker or "blocked", "bad"
    if task.rework and task.status not in SETTLED:
        return "needs rework", "warn"
    if task.status in ("in_progress", "review") and task.retry:
        return f"broke off, starts again soon; {describe_try(task.retry)}", "warn"
    if task.status in ("in_progress", "review") and task.left:
        return LEFT, "dim"
    if task.status in ("in_progress", "review") and task.phase:
        return task.phase, "dim"
    if task.status == "todo" and task.needs and (waits := work.waits_for(task)):
        return f"waits for {', '.join(waits)}", "dim"
    if task.status == "done" and task.handoff is not None:
        return f"{task.handoff.status} {task.handoff.summary}".strip(), "dim"
    story = work.stories.get(task.story_id)
    return (f"{story.story_id} {story.title}" if story is not None else task.type), "dim"


def _sought(work: Work, task: TaskState) -> str:
    if task.sought is None or task.sought[0] != work.names:
        story = work.stories.get(task.story_id)
        words = f"{task.task_id} {task.title} {task.type} {task.story_id}"
        if story is not None:
            words += f" {story.title} {story.epic_id or ''}"
        task.sought = (work.names, words.casefold())
    return task.sought[1]
