"""Ids of epics, stories and tasks: a letter and a number, easy to type (``T-42``, ``S-12``, ``E-1``)."""

from __future__ import annotations

import re

from msgspec import Struct

from cockpit.core.errors import NotFound
from cockpit.store.db.transaction import Tx

HIGHEST_NUMBER = 9_999_999
"""The highest number that an id can have; scores of the work queue rely on it."""

_ID = re.compile(r"(?:([A-Za-z])-?)?0*([1-9][0-9]{0,6})", re.ASCII)


class Kind(Struct, frozen=True):
    """A kind of backlog item that has ids."""

    letter: str
    """The letter that its ids start with."""
    word: str
    """Its name in messages, and in the name of its id column."""
    table: str
    listed_by: str
    """The command that prints its ids."""


EPIC = Kind("E", "epic", "epics", "cockpit tasks --kind epic")
STORY = Kind("S", "story", "stories", "cockpit tasks --kind story")
TASK = Kind("T", "task", "tasks", "cockpit tasks")


def format_id(kind: Kind, number: int) -> str:
    """Write the id of ``number``: ``T-42``."""
    return f"{kind.letter}-{number}"


def read_id(kind: Kind, text: str) -> str:
    """Read an id as users and agents type it: ``t-42``, ``T42`` and ``42`` are all ``T-42``.

    Raises :class:`NotFound` for a text that cannot be an id of that kind.
    """
    match = _ID.fullmatch(text.strip())
    if match is None or (match[1] or kind.letter).upper() != kind.letter:
        article = "an" if kind is EPIC else "a"
        raise NotFound(
            f"{text[:40]!r} is not {article} {kind.word} id. Write one like {kind.letter}-42;"
            f" `{kind.listed_by}` lists them."
        )
    return format_id(kind, int(match[2]))


def id_number(identity: str) -> int:
    """Return the number in an id."""
    return int(identity.partition("-")[2])


def unknown_id(kind: Kind, identity: str) -> NotFound:
    """Make the error for an id that no row has."""
    return NotFound(f"There is no {kind.word} {identity}; `{kind.listed_by}` lists them.")


def next_number(tx: Tx, kind: Kind) -> int:
    """Return the number after the highest one. Rows are never deleted, so no number comes twice."""
    (highest,) = tx.execute(f"SELECT max(number) FROM {kind.table}").fetchone()  # noqa: S608
    return int(highest or 0) + 1
