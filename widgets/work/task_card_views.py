"""Tasks at a glance: frozen views of lines and cards, which the first picture needs.

As in :mod:`widgets.views` every string may be hostile; the widgets clean each one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tone = Literal["dim", "good", "bad", "warn", "accent", "plain"]


@dataclass(frozen=True, slots=True)
class ResultsView:
    """How the tests of a task stood when they last ran; counts are None where only that is known."""

    passed: int | None = None
    failed: int | None = None
    first_failing: str = ""
    ran: bool = True


@dataclass(frozen=True, slots=True)
class TaskLineView:
    """One task at work, on one line: ``T-42 ▶ testing 12✓ 1✗ next: token expiry``.

    ``phase`` is a word for where it stands, ``words`` the next step, or why it does not go on.
    """

    key: str
    sign: str
    tone: Tone
    phase: str
    title: str = ""
    tests: ResultsView | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class CardView:
    """One card of the board. ``mark`` stands at its right edge (a priority), ``note`` below the
    title. A card with ``heading`` set is none: it only names the group that follows."""

    key: str
    title: str
    sign: str = ""
    tone: Tone = "plain"
    mark: str = ""
    note: str = ""
    note_tone: Tone = "dim"
    tests: ResultsView | None = None
    heading: str = ""


@dataclass(frozen=True, slots=True)
class ColumnView:
    """One column of the board; ``count`` is how many tasks stand in it, headings not counted."""

    key: str
    title: str
    cards: tuple[CardView, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class KanbanView:
    """The backlog as a board, or the part of it that ``scope`` and ``words`` leave."""

    columns: tuple[ColumnView, ...] = ()
    summary: str = ""
    scope: str = ""
    words: str = ""
