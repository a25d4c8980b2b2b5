"""``cockpit debug events``: list, show and retry the events that waves handle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.caller_rights import find_caller
from cockpit.commands.collection import Collection, limit_option
from cockpit.commands.open_project import find_project, open_store, read_store
from cockpit.commands.terminal import say, show_json
from cockpit.core.errors import NotFound
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import events as stored
from cockpit.store.sessions.events import EVENT_STATES, StoredEvent


def _read(state: Any, limit: int) -> Sequence[StoredEvent]:
    return read_store(
        lambda connection: stored.select_recent(connection, limit, state=state), empty=[]
    )


def _find(name: str) -> StoredEvent:
    return read_store(lambda connection: stored.load(connection, name))


events = Collection(
    "events",
    short_help="List, show and retry events of sessions.",
    help="""List, show and retry the events that begin waves, newest first.

    An event whose wave failed too often is a dead letter: it stays until you retry it.
    """,
    examples=(
        "cockpit debug events --state dead",
        "cockpit debug events e-1a2b3c",
        "cockpit debug events retry e-1a2b3c",
    ),
    row="EVENT",
    columns={
        "EVENT": lambda event: event.event_id,
        "STATE": lambda event: event.state,
        "TYPE": lambda event: event.event_type,
        "TRIES": lambda event: f"{event.attempts}/{event.max_attempts}",
        "CREATED": lambda event: event.created_at[:16].replace("T", " "),
        "SOURCE": lambda event: event.source,
        "ERROR": lambda event: event.last_error[:60].replace("\n", " "),
    },
    read=_read,
    find=_find,
    none=lambda state, limit: "No events yet." if state is None else f"No event is {state}.",
    body=lambda event: _record(event),
    document=lambda event: {**_record(event), "payload": json.loads(event.payload_json)},
    filters=[
        click.option(
            "--state", type=click.Choice(EVENT_STATES), help="List only events in this state."
        ),
        limit_option(50),
    ],
)


@events.command("retry", epilog=examples("cockpit debug events retry e-1a2b3c"))
@click.argument("event_id")
@AS_JSON
def retry_event(event_id: str, as_json: bool) -> None:
    """Resume a dead letter in a new wave.

    It gets all of its attempts back. The session tries it in a new wave when it is resumed.
    """

    def step(tx: Tx) -> StoredEvent:
        from cockpit.access.token_scopes import APPROVE

        caller = find_caller(tx)
        caller.require(APPROVE, "retry events")
        return stored.retry(tx, event_id)

    place = find_project()
    if not place.database.exists():
        raise NotFound(f"There is no event {event_id}: nothing was recorded in this project yet.")
    with open_store(place) as store:
        event = store.write_now(step)
    if as_json:
        show_json(_record(event))
        return
    kind, _, session = event.source.partition("session/")
    resume = f" Resume its session: cockpit -r {session}" if session and not kind else ""
    say(f"{event_id} waits to be handled.{resume}")


def _record(event: StoredEvent) -> dict[str, Any]:
    return {
        "event_id": event.event_id,
        "state": event.state,
        "event_type": event.event_type,
        "source": event.source,
        "tier": event.tier,
        "attempts": event.attempts,
        "max_attempts": event.max_attempts,
        "created_at": event.created_at,
        "available_at": event.available_at,
        "ended_at": event.ended_at,
        "lease_owner": event.lease_owner,
        "last_error": event.last_error,
        "trace_id": event.trace_id,
    }
