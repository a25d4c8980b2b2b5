"""Chains at a glance: frozen views of the heads of their trees.

As in :mod:`widgets.views` every string may be hostile; the widgets clean each one.
"""

from __future__ import annotations

from dataclasses import dataclass

from widgets.work.task_card_views import TaskLineView, Tone


@dataclass(frozen=True, slots=True)
class MarkView:
    """One session in the head of its chain: ``✔ s1``."""

    sign: str
    tone: Tone
    label: str


@dataclass(frozen=True, slots=True)
class ChainView:
    """The head of a chain's tree: its sessions, and how the tasks in its whole scope stand.

    ``scope`` is short, ``about`` names it; ``earlier`` counts sessions before ``marks``; ``words`` say
    what else there is to know of the tasks, ``state`` how the chain stands where that is not plain.
    ``folded`` is True while the tree is closed.
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
    words: str = ""
    state: str = ""
    state_tone: Tone = "dim"
    tokens: str = ""
    cost: str = ""
    folded: bool = False


@dataclass(frozen=True, slots=True)
class ChainSessionView:
    """One session of a chain in its tree; ``pressure`` says how full its context is."""

    key: str
    sign: str
    tone: Tone
    name: str
    state: str = ""
    pressure: str = ""
    tokens: str = ""
    cost: str = ""
    full: bool = False
    """The pressure is near its limit."""


@dataclass(frozen=True, slots=True)
class ChainTaskView:
    """One task of a chain in its tree; ``current`` while its session is followed."""

    key: str
    line: TaskLineView
    tokens: str = ""
    cost: str = ""
    current: bool = False


ChainRowView = ChainView | ChainSessionView | ChainTaskView
