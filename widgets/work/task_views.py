"""Views of one task in full, and of a row of two lines.

As in :mod:`widgets.views` every string may be hostile; the widgets clean each one.
"""

from __future__ import annotations

import msgspec
from textual.content import Content

from widgets.text.detail import DetailRow
from widgets.work.task_card_views import Tone


class TaskView(msgspec.Struct, frozen=True):
    """One task in full: its head, what is asked for, and rows of what is known of it."""

    head: Content
    description: str = ""
    criteria: str = ""
    memory: tuple[DetailRow, ...] = ()
    """Dependencies, work in progress, handoff and failures."""
    activity: tuple[DetailRow, ...] = ()


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
