"""Views of one task in full, and of a row of two lines.

As in :mod:`widgets.views` every string may be hostile; the widgets clean each one.
"""

from __future__ import annotations

import msgspec
from textual.content import Content

from widgets.forms.key_values import SheetRow
from widgets.work.task_card_views import Tone


class TaskView(msgspec.Struct, frozen=True):
    """One task in full: its head, what is asked for, and rows of what is known of it."""

    head: Content
    description: str = ""
    criteria: str = ""
    memory: tuple[SheetRow, ...] = ()
    """Dependencies, work in progress, handoff and failures."""
    activity: tuple[SheetRow, ...] = ()


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
