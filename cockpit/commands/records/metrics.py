"""``cockpit metrics``: the journal's numbers in Prometheus' text format."""

from __future__ import annotations

import click

from cockpit.commands.open_project import read_store
from cockpit.commands.terminal import show


@click.command(short_help="The numbers, in Prometheus' text format.")
def metrics() -> None:
    """Print the metrics of this project, counted from its journal."""
    from cockpit.loop.views.metrics import Metrics, measured

    show(
        read_store(
            lambda connection: measured(connection).exposition(), empty=Metrics().exposition()
        ).rstrip()
    )
