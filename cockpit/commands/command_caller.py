"""Who calls a command: the person at the terminal, or the holder of a token."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cockpit.access.principals import Caller
    from cockpit.store.db.transaction import Tx

TOKEN = click.option(
    "--token", default="", metavar="SECRET", help="Act as the holder of this token."
)


def find_caller(tx: Tx, token: str) -> Caller:
    """The holder of ``token``, or of the environment's, or the person. Raises ``TokenRefused``.

    Looked up in the transaction that acts on it: a token revoked before that opens nothing.
    """
    from cockpit.access.capability_tokens import caller
    from cockpit.loop.decisions.decide_proposal import TOKEN as VARIABLE

    return caller(tx.connection, token or os.environ.get(VARIABLE, ""), tx.now())
