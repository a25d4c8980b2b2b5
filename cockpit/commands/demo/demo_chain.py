"""``cockpit demo --chain``: six tasks of the sample project, done by one worker after another.

A script plays the model; worktrees, edits, tests, commits, merges and processes are real. Each worker
ends at its token limit, and the next one continues.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from cockpit.backlog.import_export import import_backlog, read_lines
from cockpit.commands.demo.demo_chain_report import Checkout, chain_report
from cockpit.commands.demo.sample_project import Sample, shipped
from cockpit.commands.exit_codes import Exit
from cockpit.commands.terminal import say, show
from cockpit.core.project_paths import ProjectPaths, locate_project
from cockpit.store.chains import chains
from cockpit.store.db.database import Store

SCRIPT = "chain.toml"
BACKLOG = "chain.jsonl"
TOKENS = 18_000
"""The token limit of a worker; the six tasks need about four times as much."""

_SETTINGS = {"COCKPIT_SESSION_TOKEN_LIMIT": str(TOKENS), "COCKPIT_REPORT": "always"}


async def play(sample: Sample) -> Exit:
    """Fill the backlog, run the chain in processes of its own, and check the results.

    Returns an exit code: 0 where all checks pass.
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
            return Exit.FAILED  # its message has named the reason
        text, broken = await chain_report(store, place, before)
    show(f"\n{text}")
    if code not in (Exit.DONE, Exit.FAILED):
        broken.append(f"the chain ended with exit code {code}")
    for problem in broken:
        say(f"cockpit: the demo went wrong: {problem}.")
    return Exit.FAILED if broken else Exit.DONE


def next_steps(root: Path, program: str, ended: Exit) -> str:
    """Return the commands that a user can try in the sample project after the demo."""
    stays = (
        f"\nThe sample project is in {root}. Delete it when you no longer need it;"
        f" `cockpit state clean` then deletes its state.\n  cd {root}\n"
    )
    if ended == Exit.INTERRUPTED:
        return f"{stays}  {program} work --continue\n      resumes where it stopped"
    return (
        f"{stays}"
        f"  {program} chain show 1\n      shows its workers and their tasks\n"
        f"  {program} handoff show T-5 --details\n      shows why T-5 is blocked\n"
        "  git log --graph --oneline cockpit/ch-1\n      shows the commits\n"
        "  git merge cockpit/ch-1\n      merges them\n"
        "In a repository of your own:\n"
        f"  {program} tasks add TITLE\n      adds a task to the backlog\n"
        f"  {program} work --all\n      works through it and asks before each action"
    )


def _script(place: ProjectPaths) -> str:
    """Copy the script; return the name of its model, with an absolute path for every worktree."""
    target = place.state / SCRIPT
    target.write_bytes(shipped(SCRIPT).read_bytes())
    return f"script:{target}"


async def _run(argv: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> int:
    """Run cockpit on this terminal and pass each interrupt on to it."""
    loop = asyncio.get_running_loop()
    # In its own process group, or Ctrl+C would reach it twice.
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "cockpit", *argv, cwd=cwd, env=env, process_group=0
    )
    loop.add_signal_handler(signal.SIGINT, running.send_signal, signal.SIGINT)
    try:
        return await running.wait()
    finally:
        loop.remove_signal_handler(signal.SIGINT)
