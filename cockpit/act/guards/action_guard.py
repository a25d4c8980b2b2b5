"""A guard: what it checks a call against, and its refusal.

A guard looks at a call and at what the session knows. It lets the call pass, or tells the model why not
and what to do instead. The first refusal counts. See ``docs/reference/actions.md``, guards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from cockpit.act.model_tools import Call
from cockpit.core.canonical_json import digest


class PacketLines(Struct, frozen=True):
    """Lines of a file that are in the current packet, at full detail.

    ``start`` and ``end`` are 1-based and inclusive; ``content_sha`` is the sha256 of the whole file that
    they were taken from; ``where`` names their place in the packet ('situational, f-12ab…');
    ``total_lines`` is the number of lines of that file, 0 when it is not known.
    """

    start: int
    end: int
    content_sha: str
    where: str = ""
    total_lines: int = 0


class GuardState(Struct, frozen=True):
    """What a session knows when its model's calls are checked.

    ``packet_files``: by path from the root, the lines that are in the current packet. ``failed_commands``:
    by :func:`argv_digest`, the value of ``changes`` when that command last failed. ``changes`` counts
    changes of the project since the session began (confirmed writes and commits, the user's messages).
    ``pinned_rev``: files are read from a revision, not from the worktree. ``shown_items``: by scope item as
    it is written, the places in the packet of those whose whole answer is there, in the version of now: they
    were compared before the guards are asked.
    """

    packet_files: Mapping[str, tuple[PacketLines, ...]] = field(default_factory=dict)
    failed_commands: Mapping[str, int] = field(default_factory=dict)
    shown_failures: Mapping[str, str] = field(default_factory=dict)
    changes: int = 0
    project_repo: str | None = None
    pinned_rev: bool = False
    shown_items: Mapping[str, str] = field(default_factory=dict)


class Refusal(Struct, frozen=True):
    """A refused call: the guard's name and the message for the model."""

    guard: str
    message: str


class ActionGuard(Protocol):
    """One rule. ``name`` is its name in the journal."""

    @property
    def name(self) -> str: ...

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        """Return a refusal, or None when this rule does not object to the call."""
        ...


def argv_digest(argv: Sequence[str]) -> str:
    """Return the digest by which two commands are the same."""
    return digest(list(argv))


def first_refusal(guards: Sequence[ActionGuard], call: Call, state: GuardState) -> Refusal | None:
    """Return the first refusal of ``guards``, in their order."""
    return next((refusal for guard in guards if (refusal := guard.check(call, state))), None)
