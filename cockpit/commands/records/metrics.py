"""``cockpit metrics``: print metrics from the journal in Prometheus text format."""

from __future__ import annotations

import click

from cockpit.cli_options import examples
from cockpit.commands.open_project import read_store
from cockpit.commands.terminal import show


@click.command(
    short_help="Print metrics in Prometheus format.",
    epilog=examples("cockpit metrics > cockpit.prom"),
)
def metrics() -> None:
    """Print the metrics of this project, counted from its journal, in Prometheus text format."""
    from cockpit.loop.views.metrics import Metrics, measured

    show(
        read_store(
            lambda connection: measured(connection).exposition(), empty=Metrics().exposition()
        ).rstrip()
    )
