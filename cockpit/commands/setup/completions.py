"""``cockpit completions``: scripts that let a shell complete commands, options and their values.

The scripts are click's, but for :class:`WholeDescriptions`. They run ``cockpit`` with the words typed so far,
so they complete what ``--help`` of this version lists.
"""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from cockpit.cli_options import examples


class WholeDescriptions(FishComplete):
    """fish's script, which splits an answer at its first comma only: descriptions have commas too."""

    source_template = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )


SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": WholeDescriptions}
PROGRAM = "cockpit"
VARIABLE = "_COCKPIT_COMPLETE"
"""The scripts set it, so that ``cockpit`` prints completions instead of running a command."""


@click.command(
    short_help="Print a completion script for a shell.",
    epilog=examples(
        "cockpit completions bash > ~/.local/share/bash-completion/completions/cockpit",
        "cockpit completions zsh > ~/.zfunc/_cockpit",
        "cockpit completions fish > ~/.config/fish/completions/cockpit.fish",
    ),
)
@click.argument("shell", type=click.Choice(tuple(SHELLS)))
def completions(shell: str) -> None:
    """Print the script that lets a shell complete cockpit's commands and options.

    Write it where your shell looks for completions, then start a new shell. A folder for zsh must be in
    $fpath before compinit runs.
    """
    from cockpit.commands.terminal import show

    show(completion_script(shell, click.get_current_context().find_root().command).rstrip("\n"))


def completion_script(shell: str, root: click.Command) -> str:
    """Return the script for one of :data:`SHELLS`."""
    # Not the class's own source(), which for bash starts bash to look at its version.
    return ShellComplete.source(SHELLS[shell](root, {}, PROGRAM, VARIABLE))
