"""``cockpit demo``: try cockpit on a sample project, without a key and without a network."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cockpit.cli_options import examples
from cockpit.commands.demo.sample_project import Sample, make_sample, shipped
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import find_project, load_project_settings
from cockpit.commands.terminal import is_terminal, say
from cockpit.core.project_paths import list_abandoned_states
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.config.load_settings import Settings
    from cockpit.core.project_paths import ProjectPaths

SCRIPT = "scenario.toml"
PREFIX = "cockpit-demo-"
"""How the names of sample projects in temporary folders begin."""

SESSION_STEPS = {
    "{} -c": "resumes the last session",
    "{} replay last": "replays it from its first row",
    "{} debug packet explain": "explains why each fact was kept, shortened or dropped",
}
OWN_SESSION = {
    "{} review BRANCH": "reviews it, without a key",
    "{}": "opens the screen; set ANTHROPIC_API_KEY or OPENAI_API_KEY to use a model",
}
CHAIN_STEPS = {
    "{} chain 1": "shows its workers and their tasks",
    "{} tasks handoff T-5": "shows why T-5 is blocked",
    "git log --graph --oneline cockpit/ch-1": "shows the commits",
    "git merge cockpit/ch-1": "merges them",
}
OWN_CHAIN = {
    "{} tasks add TITLE": "adds a task to the backlog",
    "{} work --all": "works through it and asks before each action",
}


@click.command(
    short_help="Try cockpit on a sample project, offline.",
    epilog=examples("cockpit demo", "cockpit demo --chain --dir parcel"),
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Make the sample project in this empty or new folder. Default: a temporary folder.",
)
@click.option(
    "--chain",
    is_flag=True,
    help="Work through a backlog of six tasks instead, with a chain of several workers.",
)
@click.pass_context
def demo(ctx: click.Context, /, folder: Path | None, chain: bool) -> None:
    """Try cockpit on a small git project: review a branch, then fix a bug.

    Enter approves a proposal of the agent, Escape discusses it. The agent's messages come from cockpit's
    offline rules and from a script; everything else is real. Without a terminal a policy decides, and a
    report of both sessions is printed. With --chain a chain of workers does six tasks without asking
    you, and the demo checks the results.
    """
    program = _program()
    root = folder.absolute() if folder else Path(tempfile.mkdtemp(prefix=PREFIX))
    earlier = [
        each for each, record in list_abandoned_states() if record.home.name.startswith(PREFIX)
    ]
    if earlier:
        say(
            f"{pluralize(len(earlier), 'earlier sample project')} left state behind:"
            f" `{program} debug state --clean` deletes it."
        )
    say(f"Making the sample project in {root} …")
    sample = asyncio.run(make_sample(root))
    os.chdir(root)
    place = find_project()
    place.prepare()
    script = place.state / SCRIPT  # in no worktree, and there for every worker
    script.write_bytes(shipped(SCRIPT).read_bytes())
    code = _play(place, sample, f"script:{script}", chain)
    say(_next_steps(root, program, chain, code))
    ctx.exit(code)


def _play(place: ProjectPaths, sample: Sample, script: str, chain: bool) -> int:
    from cockpit.commands.demo import demo_headless

    if chain:
        return asyncio.run(demo_headless.play_chain(place, sample, script))
    # A model's name and a policy of the user's own settings are for their own work.
    settings = load_project_settings(place, {"[model] name": script, "[approval] policy": "ask"})
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        return asyncio.run(_on_screen(place, settings, sample))
    return asyncio.run(demo_headless.play_sessions(place, settings, sample, script))


async def _on_screen(place: ProjectPaths, settings: Settings, sample: Sample) -> int:
    from cockpit.app.run_app import run_app
    from cockpit.commands.demo.demo_guide import guide
    from cockpit.config.change_setting import remember_theme
    from cockpit.loop.runtime import open_runtime

    async with open_runtime(place, settings.runtime) as runtime:
        session_id = await runtime.start(f"review main..{sample.branch}", model="offline")
        guiding = asyncio.create_task(guide(runtime.store))
        try:
            return await run_app(
                runtime,
                session_id=session_id,
                theme=settings.theme,
                keys=settings.keys,
                rings_bell=settings.bell,
                on_theme=remember_theme,
            )
        finally:
            guiding.cancel()
            (lost,) = await asyncio.gather(guiding, return_exceptions=True)
            if isinstance(lost, Exception):
                say(f"cockpit: the guide stopped: {lost}")


def _next_steps(root: Path, program: str, chain: bool, code: int) -> str:
    """Return the commands that the user can try after the demo."""
    steps, own = (CHAIN_STEPS, OWN_CHAIN) if chain else (SESSION_STEPS, OWN_SESSION)
    if chain and code == Exit.INTERRUPTED:
        steps, own = {"{} work --continue": "resumes where it stopped"}, {}
    lines = [
        f"\nThe sample project is in {root}. Delete it when you no longer need it;"
        f" `cockpit debug state --clean` then deletes its state.\n  cd {root}",
        *(f"  {command.format(program)}\n      {what}" for command, what in steps.items()),
        *(["In a repository of your own:"] if own else []),
        *(f"  {command.format(program)}\n      {what}" for command, what in own.items()),
    ]
    return "\n".join(lines)


def _program() -> str:
    """Return the command that starts this program: its name where it is on the PATH, else its path."""
    called = Path(sys.argv[0])
    if called.name != "cockpit" or shutil.which("cockpit") or not called.is_file():
        return "cockpit"
    return str(called.absolute())
