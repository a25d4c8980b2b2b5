"""``cockpit demo --chain``: six tasks of the sample project, done by one process after another.

The words are a script's; working trees, edits, tests, commits and merges are real. So are the
processes: each session of the chain ends when it has spent its tokens, and the next one goes on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from cockpit.backlog.import_export import import_backlog, read_lines
from cockpit.commands.demo.chain_report import Checkout, chain_report
from cockpit.commands.demo.sample_project import Sample, shipped
from cockpit.commands.exit_codes import Exit
from cockpit.commands.terminal import say, show
from cockpit.core.project_paths import ProjectPaths, locate_project
from cockpit.store.chains import chains
from cockpit.store.db.database import Store

SCRIPT = "chain.toml"
BACKLOG = "chain.jsonl"
TOKENS = 12_000
"""What a session may spend: the six tasks take about four times as much."""

_SETTINGS = {"COCKPIT_SESSION_TOKEN_LIMIT": str(TOKENS), "COCKPIT_REPORT": "always"}


async def play(sample: Sample) -> Exit:
    """Fill the backlog, run the chain in processes of its own, and check all that it left.

    The exit code says whether all of it is as it should be.
    """
    place = locate_project(sample.root)
    place.prepare()
    with Store.open(place.database) as store:
        lines = read_lines(shipped(BACKLOG).read_text(encoding="utf-8").splitlines())
        await store.write(lambda tx: import_backlog(tx, lines, by="demo"))
    before = await Checkout.of(sample.root)
    argv = ("work", "--all", "--headless", "--approve", "all", "--model", _script(place))
    show(f"\n$ cockpit {' '.join(argv[:-1])} script:{SCRIPT}\n")
    code = await _run(argv, sample.root, {**os.environ, **_SETTINGS})
    if code == Exit.INTERRUPTED:
        return Exit.INTERRUPTED
    with Store.open(place.database) as store:
        if not await store.read(chains.select):
            return Exit.FAILED  # it has said why no chain was begun
        text, broken = await chain_report(store, place, before)
    show(f"\n{text}")
    if code not in (Exit.DONE, Exit.FAILED):
        broken.append(f"the chain ended with exit code {code}")
    for problem in broken:
        say(f"cockpit: the demo went wrong: {problem}.")
    return Exit.FAILED if broken else Exit.DONE


def next_words(root: Path, program: str, ended: Exit) -> str:
    """What a person can do in the sample project now that the demo has ``ended``."""
    stays = (
        f"\nThe sample project stays in {root}; remove it when you are done with it.\n  cd {root}\n"
    )
    if ended == Exit.INTERRUPTED:
        return f"{stays}  {program} work --continue\n      goes on where it stopped"
    return (
        f"{stays}"
        f"  {program} chain show 1\n      shows its sessions and their tasks\n"
        f"  {program} handoff show T-5 --details\n      says why T-5 is blocked\n"
        "  git log --graph --oneline cockpit/ch-1\n      shows what was made\n"
        "  git merge cockpit/ch-1\n      takes it\n"
        "In a repository of your own:\n"
        f"  {program} tasks add WORDS\n      puts a task on the backlog\n"
        f"  {program} work --all\n      does what is there, and asks before it acts"
    )


def _script(place: ProjectPaths) -> str:
    """The model's name; by its whole path, since every task has a working tree of its own."""
    target = place.state / SCRIPT
    target.write_bytes(shipped(SCRIPT).read_bytes())
    return f"script:{target}"


async def _run(argv: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> int:
    """Run cockpit with this terminal as its own; what interrupts this process is passed on, once each."""
    loop = asyncio.get_running_loop()
    # In its own group, or Ctrl+C would reach it twice.
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "cockpit", *argv, cwd=cwd, env=env, process_group=0
    )
    loop.add_signal_handler(signal.SIGINT, running.send_signal, signal.SIGINT)
    try:
        return await running.wait()
    finally:
        loop.remove_signal_handler(signal.SIGINT)
