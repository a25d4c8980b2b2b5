"""Actions that agents planned, newest first, with the receipt of every attempt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from cockpit.access.token_scopes import AUDIT_READ
from cockpit.collections.choose_session import choose_session
from cockpit.collections.collection import LIMIT, Collection, Field, Part, View, open_records
from cockpit.core.canonical_json import canonical_json
from cockpit.store.sessions import outbox
from cockpit.store.sessions.outbox import PHASES, OutboxAction, Receipt


class PlannedAction(Struct, frozen=True):
    """An action, and its receipts where it is shown alone."""

    action: OutboxAction
    receipts: Sequence[Receipt] = ()


def _read(
    view: View, phase: str | None, session: str | None, limit: int
) -> Sequence[PlannedAction]:
    if view.connection is None:
        return ()
    named = None if session is None else choose_session(view.connection, session)
    rows = outbox.select_recent(view.connection, limit, phase=phase, session_id=named)
    return [PlannedAction(action) for action in rows]


def _find(view: View, name: str) -> PlannedAction:
    connection = open_records(view)
    return PlannedAction(outbox.load(connection, name), outbox.select_receipts(connection, name))


def _body(row: PlannedAction) -> dict[str, Any]:
    body: dict[str, Any] = to_builtins(row.action)
    del body["payload"]
    return body


def _detail(row: PlannedAction) -> Iterator[Part]:
    facts = [(name, str(value)) for name, value in _body(row).items() if value is not None]
    yield Part(fields=facts)
    yield Part("payload", text=canonical_json(dict(row.action.payload)))
    receipts = [
        (f"receipt {receipt.attempt}", f"{receipt.status}: {receipt.summary}")
        for receipt in row.receipts
    ]
    yield Part("receipts", receipts or [("none", "it did not run")])


COLLECTION = Collection[PlannedAction](
    name="outbox",
    command="debug outbox",
    title="Outbox",
    summary="List and show actions and their receipts.",
    help="""List and show the actions that agents planned, newest first, with the receipt of every attempt.

    An action in phase failed_terminal failed permanently, or was refused before it ran.
    """,
    examples=("cockpit debug outbox --phase failed_terminal", "cockpit debug outbox a-1a2b3c"),
    row="ACTION",
    sample="a-1a2b3c",
    columns={
        "ACTION": lambda row: row.action.action_id,
        "PHASE": lambda row: row.action.phase,
        "TYPE": lambda row: row.action.action_type,
        "TRIES": lambda row: f"{row.action.attempts}/{row.action.max_attempts}",
        "WAVE": lambda row: row.action.wave_id,
        "ERROR": lambda row: row.action.last_error[:60].replace("\n", " "),
        "TITLE": lambda row: row.action.title[:60],
    },
    read=_read,
    find=_find,
    none=lambda phase=None, **_: "No actions yet." if phase is None else f"No action is {phase}.",
    detail=lambda row: tuple(_detail(row)),
    body=_body,
    document=lambda row: {
        **_body(row),
        "payload": to_builtins(row.action.payload),
        "receipts": to_builtins(row.receipts),
    },
    filters=(
        Field("phase", "List only actions in this phase.", choices=PHASES, metavar="PHASE"),
        Field("session", "List only actions of this session, an id or last.", metavar="ID"),
        LIMIT,
    ),
    scope=AUDIT_READ,
    synonyms="actions receipts",
)
