"""Views of the rows of chain trees: chains, their workers and tasks.

As in :mod:`widgets.views` every string may be hostile; the widgets clean each one.
"""

from __future__ import annotations

import msgspec

from widgets.work.task_card_views import TaskLineView, Tone


class MarkView(msgspec.Struct, frozen=True):
    """One worker in the row of its chain: ``✔ s1``."""

    sign: str
    tone: Tone
    label: str


class ChainView(msgspec.Struct, frozen=True):
    """The first row of a chain's tree: its workers, and the progress of the tasks in its scope.

    ``scope`` is short, ``about`` is its title. ``earlier`` counts the workers before ``marks``. ``text``
    is more about the tasks, ``state`` the state of the chain where it matters. ``folded`` is True
    while the tree is closed.
    """

    key: str
    sign: str
    tone: Tone
    name: str
    scope: str = ""
    about: str = ""
    earlier: int = 0
    marks: tuple[MarkView, ...] = ()
    done: int = 0
    total: int = 0
    text: str = ""
    state: str = ""
    state_tone: Tone = "dim"
    tokens: str = ""
    cost: str = ""
    folded: bool = False


class ChainSessionView(msgspec.Struct, frozen=True):
    """One worker in its chain's tree; ``pressure`` is the share of its token limit, as text."""

    key: str
    sign: str
    tone: Tone
    name: str
    state: str = ""
    pressure: str = ""
    tokens: str = ""
    cost: str = ""
    full: bool = False
    """True near the token limit."""


class ChainTaskView(msgspec.Struct, frozen=True):
    """One task in its chain's tree; ``current`` while its session is followed."""

    key: str
    line: TaskLineView
    tokens: str = ""
    cost: str = ""
    current: bool = False


ChainRowView = ChainView | ChainSessionView | ChainTaskView
