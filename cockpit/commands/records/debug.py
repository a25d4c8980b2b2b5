"""``cockpit debug``: what explains, verifies and counts what cockpit recorded."""

from __future__ import annotations

import click

from cockpit.cli_options import examples
from cockpit.collections import events, outbox
from cockpit.commands.collection_groups import make_group
from cockpit.commands.knowledge.knowledge import count_index
from cockpit.commands.knowledge.trust_state import show_state
from cockpit.commands.packets.packet import packet_checks
from cockpit.commands.records.journal import verify
from cockpit.commands.records.metrics import metrics
from cockpit.commands.servers.hook import status
from cockpit.commands.setup.state import state


@click.group(
    hidden=True,  # diagnostics: `cockpit --help` names it in a sentence
    short_help="Explain, verify and count what is recorded.",
    epilog=examples("cockpit debug journal", "cockpit debug packet explain"),
)
def debug() -> None:
    """Explain, verify and count what cockpit recorded, and look at what is between its parts."""


for _command in (
    verify,
    packet_checks,
    make_group(events.COLLECTION),
    make_group(outbox.COLLECTION),
    metrics,
    count_index,
    show_state,
    status,
    state,
):
    debug.add_command(_command)
