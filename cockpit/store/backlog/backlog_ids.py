"""Ids of the backlog: a letter and a number, short, stable and typeable (``T-42``, ``S-12``, ``E-1``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cockpit.core.errors import NotFound
from cockpit.store.db.transaction import Tx

MOST = 9_999_999
"""The highest number there can be; scores count on it."""

_ID = re.compile(r"(?:([A-Za-z])-?)?0*([1-9][0-9]{0,6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Kind:
    """What is numbered: its letter, its word, its table and the command that lists it."""

    letter: str
    word: str
    table: str
    listed_by: str


EPIC = Kind("E", "epic", "epics", "cockpit epics list")
STORY = Kind("S", "story", "stories", "cockpit stories list")
TASK = Kind("T", "task", "tasks", "cockpit tasks list")


def written(kind: Kind, number: int) -> str:
    """The id of that number: ``T-42``."""
    return f"{kind.letter}-{number}"


def read_id(kind: Kind, given: str) -> str:
    """The id that a person or an agent means: ``t-42``, ``T42`` and ``42`` are ``T-42``.

    Raises :class:`NotFound` for what can be no id of that kind.
    """
    match = _ID.fullmatch(given.strip())
    if match is None or (match[1] or kind.letter).upper() != kind.letter:
        raise NotFound(
            f"{given[:40]!r} is no {kind.word}'s id: write one like {kind.letter}-42;"
            f" `{kind.listed_by}` names them."
        )
    return written(kind, int(match[2]))


def number_of(identity: str) -> int:
    """The number in an id."""
    return int(identity.partition("-")[2])


def unknown(kind: Kind, identity: str) -> NotFound:
    """The error for an id that nothing has."""
    return NotFound(f"There is no {kind.word} {identity}; `{kind.listed_by}` names them.")


def next_number(tx: Tx, kind: Kind) -> int:
    """The number after the highest. Nothing is ever deleted, so none comes twice."""
    (highest,) = tx.execute(f"SELECT max(number) FROM {kind.table}").fetchone()  # noqa: S608
    return int(highest or 0) + 1
