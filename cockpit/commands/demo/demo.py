"""``cockpit demo``: a walk through the cockpit on a sample project, without key and network."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cockpit.commands.demo.sample_project import Sample, make_sample, shipped
from cockpit.commands.open_project import find_project, load_project_settings
from cockpit.commands.terminal import is_terminal, say

if TYPE_CHECKING:
    from cockpit.config.load_settings import Settings
    from cockpit.core.project_paths import ProjectPaths

SCRIPT = "bug.toml"


@click.command(short_help="A walk through the cockpit on a sample project, offline.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to make the sample project: a folder that is empty or not there. Default: a new one.",
)
@click.option(
    "--chain",
    is_flag=True,
    help="Six tasks of a backlog instead, done by roles over several processes.",
)
@click.pass_context
def demo(ctx: click.Context, /, folder: Path | None, chain: bool) -> None:
    """Make a small Git project and work in it: a review of a branch, then a bug.

    Enter approves what the agent asks for, Escape discusses it. The words are those of cockpit's
    offline rules and of a script; everything else is real. Without a terminal a policy decides, and
    the report of both sessions is printed. With --chain nobody is asked: a chain of sessions does six
    tasks on branches of its own, and what it left is checked.
    """
    program = _program()
    root = folder.absolute() if folder else Path(tempfile.mkdtemp(prefix="cockpit-demo-"))
    say(f"Making the sample project in {root} …")
    sample = asyncio.run(make_sample(root))
    if chain:
        from cockpit.commands.demo import demo_chain

        ended = asyncio.run(demo_chain.play(sample))
        say(demo_chain.next_words(root, program, ended))
        ctx.exit(ended)
    os.chdir(root)
    place = find_project()
    script = _script(place)
    # A model's name and a policy of the user's own settings are for their own work.
    settings = load_project_settings(place, {"[model] name": script, "[approval] policy": "ask"})
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        code = asyncio.run(_on_screen(place, settings, sample))
    else:
        from cockpit.commands.demo.demo_headless import play

        code = asyncio.run(play(place, settings, sample, script))
    say(_next(root, program))
    ctx.exit(code)


def _script(place: ProjectPaths) -> str:
    """The model that plays the bug, by a name that holds as long as the sample does."""
    place.prepare()
    target = place.state / SCRIPT
    target.write_bytes(shipped(SCRIPT).read_bytes())
    return f"script:{target.relative_to(place.root)}"


async def _on_screen(place: ProjectPaths, settings: Settings, sample: Sample) -> int:
    from cockpit.app.application import run_app
    from cockpit.commands.demo.demo_guide import guide
    from cockpit.commands.sessions.remembered_theme import remember_theme
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
                on_theme=remember_theme,
            )
        finally:
            guiding.cancel()
            (lost,) = await asyncio.gather(guiding, return_exceptions=True)
            if isinstance(lost, Exception):
                say(f"cockpit: the guide fell silent: {lost}")


def _next(root: Path, program: str) -> str:
    return (
        f"\nThe sample project stays in {root}; remove it when you are done with it.\n"
        f"  cd {root}\n"
        f"  {program} -c\n      opens the last session again\n"
        f"  {program} replay last\n      shows it once more, from its first row on\n"
        f"  {program} packet explain\n      says why each fact was kept, shortened or dropped\n"
        "In a repository of your own:\n"
        f"  {program} review main..HEAD\n      reviews without a key\n"
        f"  {program}\n      opens the screen; ANTHROPIC_API_KEY or OPENAI_API_KEY gives it a model"
    )


def _program() -> str:
    """How this program is called from anywhere: by its name where that is on the PATH."""
    called = Path(sys.argv[0])
    if called.name != "cockpit" or shutil.which("cockpit") or not called.is_file():
        return "cockpit"
    return str(called.absolute())
