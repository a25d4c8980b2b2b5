"""Views of tasks as lines and cards, and of the board.

As in :mod:`widgets.views` every string may be hostile; the widgets clean each one.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Tone = Literal["dim", "good", "bad", "warn", "accent", "plain"]


class ResultsView(msgspec.Struct, frozen=True):
    """The last test run of a task; counts are None when they are unknown."""

    passed: int | None = None
    failed: int | None = None
    first_failing: str = ""
    ran: bool = True


class TaskLineView(msgspec.Struct, frozen=True):
    """One active task on one line: ``T-42 ▶ testing 12✓ 1✗ next: token expiry``.

    ``text`` is the next step, or the reason why the task is blocked.
    """

    key: str
    sign: str
    tone: Tone
    phase: str
    title: str = ""
    tests: ResultsView | None = None
    text: str = ""


class CardView(msgspec.Struct, frozen=True):
    """One card of the board. ``mark`` (a priority) is at its right edge, ``note`` below the title.

    A card with ``heading`` only names the group that follows.
    """

    key: str
    title: str
    sign: str = ""
    tone: Tone = "plain"
    mark: str = ""
    note: str = ""
    note_tone: Tone = "dim"
    tests: ResultsView | None = None
    heading: str = ""


class ColumnView(msgspec.Struct, frozen=True):
    """One column of the board; ``count`` is the number of its tasks, without headings."""

    key: str
    title: str
    cards: tuple[CardView, ...] = ()
    count: int = 0


class KanbanView(msgspec.Struct, frozen=True):
    """The backlog as a board, filtered by ``scope`` and ``filter_text``."""

    columns: tuple[ColumnView, ...] = ()
    summary: str = ""
    scope: str = ""
    filter_text: str = ""
