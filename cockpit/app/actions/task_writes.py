"""What a key writes into the backlog: one function for each, over the open transaction."""

from __future__ import annotations

from cockpit.backlog import service
from cockpit.backlog.completion import Boundaries
from cockpit.store.db.transaction import Tx

PERSON = "person"
"""Who did it, in the journal."""


def start(tx: Tx, task_id: str) -> Boundaries:
    """The task is in progress."""
    return service.set_status(tx, task_id, "in_progress", by=PERSON)


def to_review(tx: Tx, task_id: str) -> Boundaries:
    """The task is up for review."""
    return service.set_status(tx, task_id, "review", by=PERSON)


def unblock(tx: Tx, task_id: str) -> Boundaries:
    """Nothing blocks the task any more."""
    return service.resolve_blocker(tx, task_id, by=PERSON)


def done(tx: Tx, task_id: str, words: str) -> Boundaries:
    """The task is done."""
    return service.set_status(tx, task_id, "done", words or None, by=PERSON)


def block(tx: Tx, task_id: str, words: str) -> Boundaries:
    """The task is blocked, for a reason. Without one it is refused."""
    return service.block(tx, task_id, words, by=PERSON)


def reopen(tx: Tx, task_id: str, words: str) -> Boundaries:
    """The task is to be done again."""
    return service.reopen(tx, task_id, words or None, by=PERSON)


def archive(tx: Tx, task_id: str, words: str) -> Boundaries:
    """The task is put away."""
    return service.archive(tx, task_id, words or None, by=PERSON)


def note(tx: Tx, task_id: str, words: str) -> None:
    """Words that stay with the task. Without any they are refused."""
    service.add_activity(tx, task_id, "note", words, by=PERSON)


def depend(tx: Tx, task_id: str, other: str) -> None:
    """The task waits for the other one. Refused where that would be a cycle."""
    service.add_dependency(tx, task_id, other, by=PERSON)


def independ(tx: Tx, task_id: str, other: str) -> None:
    """The task waits for the other one no longer."""
    service.remove_dependency(tx, task_id, other, by=PERSON)
