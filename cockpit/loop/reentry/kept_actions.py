"""Actions that are kept, as the journal has them: read, found again, resumed, and given up.

A kept action never runs itself: the call that resumes or revises it plans a new one, with an idempotency key
of its own. See ``docs/reference/re-entry.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import parse_json
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.detail import read_part
from cockpit.store.journal.details.reentry import ActionKept
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions.outbox import OutboxAction

MOST_RETURNS = 3
"""How often the line of one action may go back; after that it fails as it would without."""
EVIDENCE = "the user discusses an action"
"""The purpose of the request for what the user named in a discussion."""
CONTINUES = "continues"
"""The field of a planned call with the kept action that it takes up again."""
_WRITES = ("write_file", "edit_file")
_SELECT = (
    "SELECT wave_id, detail_json FROM journal WHERE wave_id IN"
    " (SELECT wave_id FROM wave_runs WHERE session_id=?) AND action=? ORDER BY seq"
)


class HeldAction(Struct, frozen=True):
    """An action that is kept."""

    wave_id: str
    event: ActionKept

    @property
    def action_id(self) -> str:
        return self.event.action_id


class Continued(Struct, frozen=True):
    """What a planned call continues: the kept action, and how often its line went back."""

    action_id: str
    root: str
    times: int
    proposal_id: str
    why: str


def read_continued(call: Mapping[str, Any]) -> Continued | None:
    """Return what a planned call continues; None for one that begins a line."""
    body = call.get(CONTINUES)
    return Continued(**body) if body else None


def read_held(connection: sqlite3.Connection, session_id: str) -> tuple[HeldAction, ...]:
    """Read the actions that the session keeps now, oldest first."""
    held: dict[str, HeldAction] = {}
    for wave_id, body in connection.execute(_SELECT, (session_id, str(Action.ACTION_KEPT))):
        event = read_part(ActionKept, parse_json(body))
        if event.status == "held":
            held[event.action_id] = HeldAction(str(wave_id), event)
        else:
            held.pop(event.action_id, None)
    return tuple(held.values())


def read_held_in(connection: sqlite3.Connection, wave_id: str) -> tuple[HeldAction, ...]:
    """Read the actions that a wave kept, whatever came of them later."""
    rows = connection.execute(
        "SELECT detail_json FROM journal WHERE wave_id=? AND action=? ORDER BY seq",
        (wave_id, str(Action.ACTION_KEPT)),
    )
    events = [read_part(ActionKept, parse_json(body)) for (body,) in rows]
    return tuple(HeldAction(wave_id, event) for event in events if event.status == "held")


def line_of(name: str, arguments: Mapping[str, Any]) -> str:
    """Return what a call is about: calls about the same revise each other.

    A write is about its file, a command about its first two words, any other call about its tool.
    """
    if name in _WRITES:
        return f"write {arguments.get('path')}"
    words = arguments.get("argv") or str(arguments.get("command", "")).split()
    return " ".join([name, *map(str, words[:2])])


def continue_action(tx: Tx, action_id: str, by: OutboxAction, how: str) -> None:
    """Journal that the action ``by`` takes the place of a kept one; ``how`` is ``same`` or ``revised``."""
    resumed = ActionKept(action_id=action_id, status="resumed", by=by.action_id, how=how)
    tx.journal(resumed, actor="agent", session_id=by.session_id, wave_id=by.wave_id)


def release_all(tx: Tx, session_id: str, wave_id: str, reason: str) -> None:
    """Give up every action that the session keeps, and journal why."""
    for held in read_held(tx.connection, session_id):
        released = ActionKept(
            action_id=held.action_id, status="released", title=held.event.title, why=reason
        )
        tx.journal(released, session_id=session_id, wave_id=wave_id)


def describe_return(held: Sequence[HeldAction]) -> str:
    """Say why a wave goes back to Orient, in one line; '' where nothing was kept."""
    lines = []
    for each in held:
        event = each.event
        if event.cause == "stopped" or (event.cause == "discussed" and not event.items):
            continue
        reading = f", reading {', '.join(event.items)}" if event.items else ""
        lines.append(f"back to Orient for {event.title}: {event.why}{reading}")
    return "; ".join(lines)
