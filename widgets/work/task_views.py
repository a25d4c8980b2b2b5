"""Views of one task in full, of its memory, and of the queue.

As in :mod:`widgets.views` every string may be hostile; the widgets clean each one.
"""

from __future__ import annotations

import msgspec

from widgets.work.task_card_views import ResultsView, Tone


class LinkView(msgspec.Struct, frozen=True):
    """A task that this one depends on, or that depends on it."""

    key: str
    relation: str
    sign: str
    tone: Tone
    title: str


class ErrorView(msgspec.Struct, frozen=True):
    """One error in the work in progress of a task."""

    kind: str
    place: str
    message: str


class WipView(msgspec.Struct, frozen=True):
    """A task's work in progress. ``decisions`` are (what, why), the newest last."""

    task: str
    title: str = ""
    updated: str = ""
    phase: str = ""
    next_step: str = ""
    context: str = ""
    tests: ResultsView | None = None
    last_commit: str = ""
    uncommitted: bool | None = None
    files: tuple[str, ...] = ()
    decisions: tuple[tuple[str, str], ...] = ()
    errors: tuple[ErrorView, ...] = ()
    empty: bool = False


class HandoffView(msgspec.Struct, frozen=True):
    """The handoff of a task. ``details`` is None while they are hidden; ``kept`` says whether there are any.

    ``state`` describes compaction and archiving.
    """

    task: str
    title: str = ""
    status: str = ""
    tone: Tone = "plain"
    summary: str = ""
    files: tuple[str, ...] = ()
    state: str = ""
    kept: bool = False
    details: str | None = None
    empty: bool = False


class ActivityView(msgspec.Struct, frozen=True):
    """One line of a task's activity or failures."""

    at: str
    sign: str
    tone: Tone
    kind: str
    text: str
    by: str = ""


class TaskView(msgspec.Struct, frozen=True):
    """One task in full. ``facts`` are (name, value) pairs; ``blocker`` is the reason of a blocked task."""

    key: str
    title: str
    sign: str = ""
    tone: Tone = "plain"
    status: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    description: str = ""
    criteria: str = ""
    blocker: str = ""
    links: tuple[LinkView, ...] = ()
    wip: WipView | None = None
    handoff: HandoffView | None = None
    failures: tuple[ActivityView, ...] = ()
    activity: tuple[ActivityView, ...] = ()


class QueuedView(msgspec.Struct, frozen=True):
    """One row of two lines, as a task of the queue: ``state`` says whether it is ready; ``why`` explains its
    place, or what it waits for."""

    key: str
    title: str
    sign: str = ""
    tone: Tone = "plain"
    state: str = ""
    why: str = ""
    name: str = ""
    """Drawn in place of the key."""
