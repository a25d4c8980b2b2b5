"""``cockpit demo``: the cockpit on a sample project, without a key and without a network."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import click

from cockpit.commands.project import WrongUse
from cockpit.commands.sample import make
from cockpit.commands.terminal import on_terminal, say


@click.command(short_help="The cockpit on a sample project, offline.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to make the sample project: a folder that is empty or not there. Default: a new one.",
)
@click.pass_context
def demo(ctx: click.Context, /, folder: Path | None) -> None:
    """Make a small repository and open the cockpit on the review of a branch in it.

    Enter approves what the reviewer asks for, Escape discusses it. The reviewer is cockpit's offline
    rules. Where there is no terminal, the review is done and told without the screen.
    """
    target = Path(tempfile.mkdtemp(prefix="cockpit-demo-")) if folder is None else folder.absolute()
    if target.exists() and any(target.iterdir()):
        raise WrongUse(f"{target} is not empty; name a folder that is, or that is not there yet.")
    target.mkdir(parents=True, exist_ok=True)
    plan = asyncio.run(make(target))
    os.chdir(target)
    say(f"The sample project is in {target}; remove it when you are done.")
    words = f"review {plan.review}"
    if on_terminal(sys.stdout) and on_terminal(sys.stdin):
        from cockpit.commands.screen import open_screen

        ctx.exit(open_screen(None, {"[model] name": "offline"}, first_words=words))
    from cockpit.commands.headless import drive

    flags = {"[model] name": "offline", "[approval] policy": "all"}
    ctx.exit(drive(words, None, output="text", flags=flags))
