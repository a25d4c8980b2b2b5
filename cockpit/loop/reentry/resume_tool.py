"""The agent's tool ``resume_action``: an action that was kept is planned again, as it was.

The call becomes the one that it names, with an idempotency key of its own. A call of the same tool, for the
same file where it writes one, revises the kept action instead. See ``docs/reference/re-entry.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cockpit.act.model_tools import RESUME, MalformedCall, parse_call
from cockpit.core.canonical_json import canonical_json
from cockpit.loop.reentry.kept_actions import (
    CONTINUES,
    Continued,
    HeldAction,
    continue_action,
    line_of,
    read_held,
)
from cockpit.loop.wave_context import WaveContext
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import plans
from cockpit.store.sessions.outbox import OutboxAction

RESUMES = "resumes"
"""The field of a planned call with the id of the kept action that ``resume_action`` named."""


class KeptCall(Struct, frozen=True):
    """The call of a kept action, as its model made it."""

    action_id: str
    name: str
    arguments: str
    """As JSON text."""


def find_kept_call(context: WaveContext, arguments_json: str) -> KeptCall:
    """Return the call that ``resume_action`` names. Raises ``MalformedCall`` with a message for the model."""
    asked_for = str(parse_call(RESUME, arguments_json).arguments["call"])
    session_id = context.session.session_id

    def read(connection: sqlite3.Connection) -> tuple[HeldAction | None, Mapping[str, Any], str]:
        held = read_held(connection, session_id)
        wanted = asked_for.strip().removeprefix("call-").replace("-", ".")
        named = next((each for each in held if each.event.call == wanted), None)
        call = _load_call(connection, named) if named is not None else {}
        listed = ", ".join(f"{each.event.call} ({each.event.title})" for each in held)
        return named, call, listed

    named, call, listed = context.store.read_now(read)
    if named is None or not call:
        there_are = f"There are: {listed}." if listed else "No action is kept."
        raise MalformedCall(
            f"{RESUME}: no kept action has the call {asked_for[:40]!r}. {there_are}"
        )
    return KeptCall(named.action_id, str(call["name"]), canonical_json(call["arguments"]))


def mark_continued(tx: Tx, context: WaveContext, calls: list[dict[str, Any]]) -> None:
    """Note in planned calls which kept actions they continue: each kept action is continued once at most.

    ``calls`` plan actions. They are stored with their plan, in this transaction.
    """
    if not calls:
        return
    held = list(read_held(tx.connection, context.session.session_id))
    lines = {each.action_id: _line_of(tx.connection, each) for each in held}
    for call in calls:
        if not held:
            return
        named = call.get(RESUMES, "")
        line = line_of(str(call["name"]), call["arguments"])
        newest = [*reversed(held)]
        match = next((each for each in held if each.action_id == named), None) or next(
            (each for each in newest if lines[each.action_id] == line), None
        )
        if match is None:
            continue
        held.remove(match)
        event = match.event
        call[CONTINUES] = {name: getattr(event, name) for name in Continued.__struct_fields__}


def journal_continued(tx: Tx, call: Mapping[str, Any], action: OutboxAction) -> None:
    """Journal that a planned action takes the place of a kept one, in the transaction of its plan."""
    body = call.get(CONTINUES)
    if body:
        how = "same" if call.get(RESUMES) == body["action_id"] else "revised"
        continue_action(tx, str(body["action_id"]), action, how)


def _load_call(connection: sqlite3.Connection, held: HeldAction) -> Mapping[str, Any]:
    plan = plans.find(connection, held.wave_id)
    call_id = f"call-{held.event.call.replace('.', '-')}"
    for call in plan.calls if plan else ():
        if call["call_id"] == call_id:
            return call
    return {}


def _line_of(connection: sqlite3.Connection, held: HeldAction) -> str:
    call = _load_call(connection, held)
    return line_of(str(call.get("name", "")), call.get("arguments", {}))
