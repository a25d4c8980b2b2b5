"""Killed, with no warning, between dispatch and receipt: nothing is done twice, nothing forgotten."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from act_world import git, now, queue, receipts, show

from cockpit.act.adapters import ADAPTERS
from cockpit.act.dispatch_actions import LOOK_FIRST, Dispatcher, settle
from cockpit.act.live_output import live_file
from cockpit.store.db.database import Store
from cockpit.store.sessions import outbox

pytestmark = pytest.mark.slow

VICTIM = Path(__file__).with_name("act_victim.py")
Ids = tuple[str, str]


def start_victim(*words: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(VICTIM), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def die() -> Iterator[Callable[..., int]]:
    """Let a process dispatch a wave and die at a moment; returns its exit code."""
    with start_victim() as parent:
        assert parent.stdin is not None and parent.stdout is not None

        def fork(store: Store, root: Path, wave: str, moment: str) -> int:
            line = [str(store.path), str(root), wave, moment, dict(os.environ)]
            print(json.dumps(line), file=parent.stdin, flush=True)
            return int(parent.stdout.readline())

        yield fork
        parent.stdin.close()


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        *(("write_file", "before"), ("edit_file", "after"), ("git_commit", "before")),
        *(("git_commit", "after"), ("github", "before"), ("github", "after"), ("run", "after")),
    ],
)
async def test_killed_between_dispatch_and_receipt(store, ids, ground, github, die, kind, moment):
    root = ground.root
    (root / "new.py").write_text("x = 1\n")
    arguments: dict[str, dict[str, Any]] = {
        "write_file": {"path": "a.py", "content": "x = 1\n"},
        "edit_file": {"path": "app.py", "old": "3 *", "new": "4 *"},
        "git_commit": {"message": "m", "paths": ["new.py"]},
        "github": {"command": "gh pr comment 24 --body hello"},
        "run": {"argv": ["sh", "-c", "echo x >> ran"], "reason": "r"},
    }
    proposal = await show(ground, kind, **arguments[kind])
    action = queue(store, ids, kind, proposal.payload)
    assert die(store, root, ids[1], moment) == -signal.SIGKILL
    assert (now(store, action).phase, now(store, action).attempts) == ("dispatched", 1)

    dispatcher = Dispatcher(store, ground)
    assert (await dispatcher.run_wave(ids[1]))[0].phase == "dispatched"
    left = live_file(store.path, action.action_id)
    left.parent.mkdir(exist_ok=True)
    left.write_text("what it had written\n")
    (recovered,) = await dispatcher.recover(ids[0])
    assert not left.exists()
    wanted = "uncertain" if kind == "run" else "confirmed" if moment == "after" else "queued"
    assert recovered.phase == wanted
    assert await dispatcher.recover(ids[0]) == []
    (final,) = await dispatcher.run_wave(ids[1])
    assert final.phase == ("uncertain" if kind == "run" else "confirmed")
    assert [last for _, last in receipts(store, action) if last] == (
        [] if kind == "run" else [True]
    )

    effects = {
        "write_file": lambda: (root / "a.py").read_text() == "x = 1\n",
        "edit_file": lambda: (root / "app.py").read_text().count("4 *") == 1,
        "git_commit": lambda: git(root, "log", "--format=%s") == "m\nBegin\n",
        "github": lambda: len(json.loads(github.read_text())["entries"]) == 1,
        "run": lambda: (root / "ran").exists() == (moment == "after"),
    }
    assert effects[kind]()
    if kind == "run":
        await settle(store, action.action_id, "drop", by="policy:all")
        (receipt,) = store.read_now(lambda c: outbox.select_receipts(c, action.action_id))
        assert receipt.summary.startswith(f"It was cut off. {LOOK_FIRST}"), "the agent is warned"


async def test_a_commit_whose_hook_outlives_the_cockpit_is_uncertain(store, ids, plain):
    ground, root = plain, plain.root
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch began\nread line < go\n")
    hook.chmod(0o755)
    os.mkfifo(root / "go")
    (root / "new.py").write_text("x = 1\n")
    proposal = await show(ground, "git_commit", message="m", paths=["new.py"])
    action = queue(store, ids, "git_commit", proposal.payload)
    victim = start_victim(store.path, root, ids[1])
    victim_goes(victim)
    await appears(root / "began")
    victim.kill()
    victim.wait()
    (recovered,) = await Dispatcher(store, ground).recover(ids[0])
    assert recovered.phase == "uncertain"
    await asyncio.to_thread((root / "go").write_text, "go\n")
    while await ADAPTERS["git_commit"].probe(action.payload, action.key, ground) != "done":
        await asyncio.sleep(0.005)
    assert (await settle(store, action.action_id, "done")).phase == "confirmed"
    assert git(root, "log", "--format=%s") == "m\nBegin\n"
    victim.communicate()


async def test_a_post_that_hung_when_the_cockpit_died_is_found(store, ids, ground, github):
    github.write_text(json.dumps({"entries": [], "fail": ["hang"], "runs": 0}))
    proposal = await show(ground, "github", command="gh pr comment 24 --body hello")
    queue(store, ids, "github", proposal.payload)
    victim = start_victim(store.path, ground.root, ids[1])
    victim_goes(victim)
    await appears(github.with_name("posted"))
    victim.kill()
    os.kill(int(github.with_name("posted").read_text()), signal.SIGKILL)
    victim.communicate()
    assert (await Dispatcher(store, ground).recover(ids[0]))[0].phase == "confirmed"
    assert json.loads(github.read_text())["runs"] == 1


def victim_goes(victim: subprocess.Popen[str]) -> None:
    """Let a racing process go on when it is ready."""
    assert victim.stdout is not None and victim.stdin is not None
    assert victim.stdout.readline() == "ready\n"
    victim.stdin.write("go\n")
    victim.stdin.flush()


async def appears(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.005)


async def test_many_processes_at_once_run_each_action_once(store, ids, ground):
    for number in range(6):
        argv = ["sh", "-c", f"echo {number} >> ran"]
        payload = {"argv": argv, "timeout_s": 60, "sandboxed": False}
        queue(store, ids, "run", payload, key=f"k-{number}", position=number)
    rivals = [start_victim(store.path, ground.root, ids[1]) for _ in range(2)]
    for rival in rivals:
        victim_goes(rival)
    for rival in rivals:
        rival.communicate()
        assert rival.returncode == 0
    actions = store.read_now(lambda c: outbox.select_for_wave(c, ids[1]))
    assert {(action.phase, action.attempts) for action in actions} == {("confirmed", 1)}
    assert sorted(map(int, (ground.root / "ran").read_text().split())) == list(range(6))
