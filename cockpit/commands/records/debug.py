"""``cockpit debug``: what explains, verifies and counts what cockpit recorded."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import click
from msgspec import to_builtins

from cockpit.cli_options import AS_JSON, examples
from cockpit.collections import events, outbox
from cockpit.commands.collection_groups import do_verb, format_parts, make_group, read_view
from cockpit.commands.knowledge.knowledge import show_index
from cockpit.commands.open_project import find_project, load_project_settings, open_store
from cockpit.commands.packets.packet import packet_checks
from cockpit.commands.records.journal import verify
from cockpit.commands.servers.hook import show_hooks
from cockpit.commands.setup.state import state
from cockpit.commands.terminal import show, show_list
from cockpit.store.sessions.events import StoredEvent


@click.group(
    hidden=True,  # diagnostics: `cockpit --help` names it in a sentence
    short_help="Explain, verify and count what is recorded.",
    epilog=examples("cockpit debug journal", "cockpit debug packet explain"),
)
def debug() -> None:
    """Explain, verify and count what cockpit recorded, and look at what is between its parts."""


def show_metrics(*, as_json: bool) -> None:
    """Print the metrics of this project, from its journal and tables, in Prometheus text format."""
    if as_json:
        raise click.UsageError("Metrics are text for Prometheus. Leave out --json.")
    from cockpit.loop.views.metrics import Metrics, measured

    place, counted = find_project(), Metrics()
    if place.database.exists():
        with open_store(place) as store:
            counted = store.read_now(measured)
    show(counted.exposition().rstrip())


def show_trust(*, as_json: bool) -> None:
    """Print how far the inner loops of each task type collapsed: Orient (reads) and Decide (actions)."""
    from cockpit.loop.trust.list_rules import list_states

    place = find_project()
    settings = load_project_settings(place).runtime
    with open_store(place) as store:
        states = store.read_now(lambda connection: list_states(connection, store.clock, settings))
    show_list(
        as_json,
        [to_builtins(each) for each in states],
        ("TASK TYPE", "ORIENT", "DECIDE", "WHY"),
        [
            (
                each.task_type,
                each.orient.state,
                each.decide.state,
                f"orient: {each.orient.why}; decide: {each.decide.why}",
            )
            for each in states
        ],
        "No decisions yet. The state appears after your first one.",
    )


TOPICS = MappingProxyType(
    {
        "hooks": show_hooks,
        "knowledge": show_index,
        "metrics": show_metrics,
        "trust": show_trust,
    }
)


@debug.command(
    "show",
    epilog=examples("cockpit debug show trust", "cockpit debug show metrics > cockpit.prom"),
)
@click.argument("topic", type=click.Choice(list(TOPICS)), metavar="TOPIC")
@AS_JSON
def show_topic(topic: str, as_json: bool) -> None:
    """Show hooks, knowledge, metrics or trust.

    hooks: where they are installed, and how many events wait. knowledge: how many documents, chunks and
    vectors are indexed. metrics: those of this project, as text for Prometheus. trust: of each task type,
    whether its inner loops Orient (what may be read) and Decide (what may be done) are early, trusted or
    collapsed.
    """
    TOPICS[topic](as_json=as_json)


def _show_event(row: StoredEvent, *, retry: bool) -> str:
    if retry:
        do_verb(events.COLLECTION, events.RETRY, row.event_id)
        return ""
    return format_parts(events.COLLECTION.describe(row))


def _event_document(row: StoredEvent, *, retry: bool) -> dict[str, Any]:
    if retry:
        do_verb(events.COLLECTION, events.RETRY, row.event_id)
        row = read_view(
            events.COLLECTION, lambda view: events.COLLECTION.find_row(view, row.event_id)
        )
    document: dict[str, Any] = events.COLLECTION.show_row(row)
    return document


_EVENTS = make_group(
    events.COLLECTION,
    details=[
        click.option(
            "--retry", is_flag=True, help="Let the session try a dead letter in a new wave."
        )
    ],
    describe=_show_event,
    document=_event_document,
)

for _command in (
    verify,
    packet_checks,
    _EVENTS,
    make_group(outbox.COLLECTION),
    state,
):
    debug.add_command(_command)
