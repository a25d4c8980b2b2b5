"""Several processes on one store, some of which are killed: each brings a session of its own to its end."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from faults.session_trials import Child, Verdict, World, judge_rows, make_world, run_session

from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store

STARTS = 40
"""A session that has not ended after so many starts of its process never ends."""
_TURNS = r"""
[[turn]]
when = { contains = ["write number NUMBER "] }
text = "I write."
[[turn.call]]
name = "write_file"
arguments = { path = "number-NUMBER.md", content = "number NUMBER\n" }

[[turn]]
when.called = ["write_file"]
when.contains = ["write number NUMBER ", "number-NUMBER.md is written|write_file DID"]
text = "I tell them."
[[turn.call]]
name = "github"
arguments = { command = "gh pr comment 7 --body 'Number NUMBER is there.'" }

[[turn]]
when = { contains = ["write number NUMBER ", "gh pr comment done|github DID"] }
text = "Done."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "number NUMBER is there" }
""".replace("DID", r"[^\\n]*\\n→ [^\\n]*(had been done|had done it|It happened, although)")


def try_crowd(folder: Path, processes: int, seed: int) -> Verdict:
    """Let so many processes bring a session each to its end, and kill about one in two on the way."""
    chance = random.Random(seed)
    world = make_world(folder)
    scenario = folder / "scenario.toml"
    scenario.write_text(
        "".join(_TURNS.replace("NUMBER", str(number)) for number in range(processes))
    )
    world.use_state()
    verdict, database = Verdict(), locate_project(world.root).database
    children = {number: _start(world, number) for number in range(processes)}
    starts = dict.fromkeys(children, 1)
    while children:
        _wait_for_rows(database, chance.randint(1, 60), children)
        if chance.random() < 0.5:
            os.kill(children[chance.choice(list(children))].pid, signal.SIGKILL)
        for number, child in list(children.items()):
            if not _has_ended(child):
                continue
            code, words, _ = child.wait()
            del children[number]
            if code == 0:
                continue
            if code not in (-signal.SIGKILL, 1):
                verdict.stranded.append(f"process {number} ended with {code}: {words}")
            if starts[number] == STARTS:
                verdict.stranded.append(f"session {number} does not end; last: {code} {words}")
                continue
            starts[number] += 1
            children[number] = _start(world, number)
    _judge(world, processes, verdict)
    shutil.rmtree(folder)
    return verdict


def _start(world: World, number: int) -> Child:
    return Child.start(world, lambda: run_session(world, f"write number {number} now"))


def _wait_for_rows(database: Path, count: int, children: Mapping[int, Child]) -> None:
    """Wait until the journal has so many rows more, or a process has ended."""
    before = _last_row(database)
    while _last_row(database) < before + count:
        if any(_has_ended(child) for child in children.values()):
            return
        os.sched_yield()


def _last_row(database: Path) -> int:
    """The journal's last row, read by a connection that no forked process inherits."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT seq FROM journal_head").fetchone()[0])
    except (sqlite3.Error, TypeError):
        return 0  # nobody has made it yet


def _has_ended(child: Child) -> bool:
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _judge(world: World, processes: int, verdict: Verdict) -> None:
    world.use_state()
    with Store.open(locate_project(world.root).database) as store:
        store.read_now(lambda connection: judge_rows(connection, verdict, processes))
    posted = [path.read_text() for path in world.github.glob("comment.????????")]
    for number in range(processes):
        file = world.root / f"number-{number}.md"
        if not file.exists() or file.read_text() != f"number {number}\n":
            verdict.lost.append(f"{file.name} is not as it was to be")
        times = sum(f"Number {number} is there." in text for text in posted)
        if times != 1:
            (verdict.doubled if times else verdict.lost).append(f"comment {number}, {times} times")
