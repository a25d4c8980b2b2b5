"""``cockpit debug metrics``: print metrics from the journal in Prometheus text format."""

from __future__ import annotations

import click

from cockpit.cli_options import examples
from cockpit.commands.open_project import find_project, open_store
from cockpit.commands.terminal import show


@click.command(
    short_help="Print metrics in Prometheus format.",
    epilog=examples("cockpit debug metrics > cockpit.prom"),
)
def metrics() -> None:
    """Print the metrics of this project, from its journal and tables, in Prometheus text format."""
    from cockpit.loop.views.metrics import Metrics, measured

    place, counted = find_project(), Metrics()
    if place.database.exists():
        with open_store(place) as store:
            counted = store.read_now(measured)
    show(counted.exposition().rstrip())
