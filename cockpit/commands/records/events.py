"""``cockpit events``: list, show and retry the events that waves handle."""

from __future__ import annotations

import json
from typing import Any

import click

from cockpit.cli_options import AS_JSON, TOKEN, examples
from cockpit.commands.caller_rights import find_caller
from cockpit.commands.open_project import find_project, open_store, read_store
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.core.errors import NotFound
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import events as stored
from cockpit.store.sessions.events import EVENT_STATES, StoredEvent


@click.group(
    short_help="List, show and retry events of sessions.",
    epilog=examples("cockpit events list --state dead", "cockpit events retry e-1a2b3c"),
)
def events() -> None:
    """List, show and retry the events that begin waves.

    An event whose wave failed too often is a dead letter: it stays until you retry it.
    """


@events.command("list", epilog=examples("cockpit events list --state dead --json"))
@click.option("--state", type=click.Choice(EVENT_STATES), help="List only events in this state.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="List this many events.",
)
@AS_JSON
def list_events(state: Any, lines: int, as_json: bool) -> None:
    """List events, newest first."""
    rows: list[StoredEvent] = read_store(
        lambda connection: stored.select_recent(connection, lines, state=state), empty=[]
    )
    show_list(
        as_json,
        [_record(event) for event in rows],
        ("EVENT", "STATE", "TYPE", "TRIES", "CREATED", "SOURCE", "ERROR"),
        [
            (
                event.event_id,
                event.state,
                event.event_type,
                f"{event.attempts}/{event.max_attempts}",
                event.created_at[:16].replace("T", " "),
                event.source,
                event.last_error[:60].replace("\n", " "),
            )
            for event in rows
        ],
        "No events yet." if state is None else f"No event is {state}.",
    )


@events.command("show", epilog=examples("cockpit events show e-1a2b3c"))
@click.argument("event_id")
@AS_JSON
def show_event(event_id: str, as_json: bool) -> None:
    """Show an event and its last error."""
    event = read_store(lambda connection: stored.load(connection, event_id))
    body = {**_record(event), "payload": json.loads(event.payload_json)}
    if as_json:
        show_json(body)
        return
    for name, value in body.items():
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
        show(f"{name}: {'–' if text in (None, '') else text}")
    if event.state == "dead":
        say(f"\nretry:  cockpit events retry {event_id}")


@events.command("retry", epilog=examples("cockpit events retry e-1a2b3c"))
@click.argument("event_id")
@TOKEN
@AS_JSON
def retry_event(event_id: str, token: str, as_json: bool) -> None:
    """Resume a dead letter in a new wave.

    It gets all of its attempts back. The session tries it in a new wave when it is resumed.
    """

    def step(tx: Tx) -> StoredEvent:
        from cockpit.access.principals import journal_actor
        from cockpit.access.token_scopes import APPROVE

        caller = find_caller(tx, token)
        caller.require(APPROVE, "retry events")
        return stored.retry(tx, event_id, actor=journal_actor(caller))

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
