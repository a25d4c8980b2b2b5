"""Ask the user at the terminal before something is written."""

from __future__ import annotations

import sys

import click

from cockpit.commands.open_project import WrongUse
from cockpit.commands.terminal import is_terminal, say

YES = click.option("--yes", is_flag=True, help="Do not ask, as in a script that you wrote.")


def confirm(question: str, *, yes: bool, undone: str) -> None:
    """Return once the user agrees, or at once with ``yes``.

    ``undone`` says what did not happen. Raises ``click.Abort`` where the user declines, and ``WrongUse``
    without a terminal to ask on.
    """
    if yes:
        return
    if not is_terminal(sys.stdin):
        raise WrongUse(f"No terminal to confirm on; {undone}. Pass --yes.")
    if not click.confirm(question, default=False, err=True):
        say(f"{undone[:1].upper()}{undone[1:]}.")
        raise click.Abort
