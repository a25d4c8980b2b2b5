"""Where a server listens: the options of ``cockpit serve`` and ``cockpit web``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from cockpit.commands.open_project import WrongUse

HOST = "127.0.0.1"
F = TypeVar("F", bound=Callable[..., Any])


def listen_options(*, port: int) -> Callable[[F], F]:
    """Return the decorator that adds ``--host``, ``--port``, ``--tls-cert`` and ``--tls-key``."""
    options = (
        click.option(
            "--host",
            default=HOST,
            metavar="ADDRESS",
            help=f"Listen on this address. Default: {HOST}.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65_535),
            default=port,
            help=f"Listen on this port; 0 picks a free one. Default: {port}.",
        ),
        click.option(
            "--tls-cert",
            type=click.Path(path_type=Path),
            help="Use this certificate chain, a PEM file, to encrypt.",
        ),
        click.option(
            "--tls-key",
            type=click.Path(path_type=Path),
            help="Read the certificate's key from this PEM file. Default: the certificate's own file.",
        ),
    )

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def check_listening(tls_cert: Path | None, tls_key: Path | None) -> None:
    """Raise :class:`WrongUse` for options of a server that exclude each other."""
    if tls_key is not None and tls_cert is None:
        raise WrongUse("--tls-key needs --tls-cert.")
