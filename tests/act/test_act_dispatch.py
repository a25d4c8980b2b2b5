"""The dispatcher: once, in order, with a receipt, through crashes, retries and rivals."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from act_world import git, journalled, plant_wave, queue, show

from cockpit.act.adapters import ADAPTERS, Outcome
from cockpit.act.adapters.adapter import Found, failed, succeeded
from cockpit.act.ground import ActGround
from cockpit.act.outbox import Dispatcher, settle
from cockpit.store import outbox
from cockpit.store.database import Store
from cockpit.store.errors import IllegalTransition
from cockpit.store.outbox import Outgoing

VICTIM = Path(__file__).with_name("act_victim.py")
Ids = tuple[str, str]


class Scripted:
    """An adapter whose attempts and probes are written down beforehand."""

    ends_when_cancelled = False

    def __init__(self, *outcomes: Outcome | Exception, probes: tuple[Found, ...] = ()) -> None:
        self.outcomes = list(outcomes)
        self.probes = list(probes)
        self.performed = 0

    async def perform(self, payload: Mapping[str, Any], key: str, ground: ActGround) -> Outcome:
        self.performed += 1
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def probe(self, payload: Mapping[str, Any], key: str, ground: ActGround) -> Found:
        return self.probes.pop(0)


def now(store: Store, action: Outgoing) -> Outgoing:
    return store.read_now(lambda c: outbox.load(c, action.action_id))


def receipts(store: Store, action: Outgoing) -> list[tuple[str, bool]]:
    found = store.read_now(lambda c: outbox.receipts(c, action.action_id))
    return [(receipt.status, receipt.terminal) for receipt in found]


async def test_a_wave_runs_in_order_with_receipts(
    store: Store, ids: Ids, ground: ActGround, dispatcher: Dispatcher
) -> None:
    write = await show(ground, "write_file", path="a.py", content="x = 1\n")
    look = await show(ground, "run", argv=["cat", "a.py"], reason="r")
    queue(store, ids, "run", look.payload, key="k-2", position=1)
    queue(store, ids, "write_file", write.payload, key="k-1", position=0)
    done = await dispatcher.run_wave(ids[1])
    assert [(a.action_type, a.phase, a.attempts) for a in done] == [
        ("write_file", "confirmed", 1),
        ("run", "confirmed", 1),
    ]
    assert (
        store.read_now(lambda c: outbox.receipts(c, done[1].action_id))[0].detail["stdout"]
        == "x = 1\n"
    )
    assert [a for a in journalled(store) if a.startswith("action.")] == [
        "action.queued", "action.queued", "action.dispatched", "action.confirmed",
        "action.dispatched", "action.confirmed",
    ]  # fmt: skip
    assert await dispatcher.run_wave(ids[1]) == done


async def test_planned_actions_are_left_alone(
    store: Store, ids: Ids, dispatcher: Dispatcher
) -> None:
    planned = store.write_now(
        lambda tx: outbox.plan(
            tx, wave_id=ids[1], session_id=ids[0], position=0, key="k", action_type="run", title="t",
            payload={"argv": ["touch", "x"], "timeout_s": 1, "sandboxed": False},
        )
    )  # fmt: skip
    await dispatcher.run_wave(ids[1])
    assert now(store, planned).phase == "planned"


async def test_transient_failures_back_off_and_are_probed_first(
    store: Store, ids: Ids, ground: ActGround
) -> None:
    start = store.clock.now()
    adapter = Scripted(failed("transient", "busy"), succeeded("there"), probes=("not_done",))
    action = queue(store, ids, "run", {})
    await Dispatcher(store, ground, {"run": adapter}).run_wave(ids[1])
    assert (now(store, action).phase, adapter.performed) == ("confirmed", 2)
    assert receipts(store, action) == [("failure", False), ("success", True)]
    assert (store.clock.now() - start).total_seconds() == 2.0
    assert "action.retried" in journalled(store) and "action.probed" in journalled(store)


@pytest.mark.parametrize(
    ("outcomes", "probes", "phase", "performed"),
    [
        ([failed("transient", "b")] * 3, ("not_done",) * 2, "failed_terminal", 3),
        ([failed("permanent", "b")], (), "failed_terminal", 1),
        ([failed("conflict", "b")], (), "failed_terminal", 1),
        ([Outcome("timeout", "b", "permanent")], (), "failed_terminal", 1),
        ([failed("transient", "b", maybe=True)], ("done",), "confirmed", 1),
        ([failed("transient", "b", maybe=True)], ("unknown",) * 3, "uncertain", 1),
        ([failed("transient", "b", maybe=True)] * 3, ("not_done",) * 3, "failed_terminal", 3),
        (
            [failed("transient", "b", maybe=True)] * 3,
            ("not_done", "not_done", "done"),
            "confirmed",
            3,
        ),
        ([ValueError("bug")], ("done",), "confirmed", 1),
        ([ValueError("bug")], ("not_done",), "failed_terminal", 1),
        ([ValueError("bug")], ("unknown",), "uncertain", 1),
    ],
)
async def test_every_ending(
    store: Store,
    ids: Ids,
    ground: ActGround,
    outcomes: list[Outcome | Exception],
    probes: tuple[Found, ...],
    phase: str,
    performed: int,
) -> None:
    adapter = Scripted(*outcomes, probes=probes)
    action = queue(store, ids, "run", {})
    await Dispatcher(store, ground, {"run": adapter}).run_wave(ids[1])
    assert (now(store, action).phase, adapter.performed) == (phase, performed)
    assert adapter.probes == []
    terminal = [status for status, last in receipts(store, action) if last]
    assert len(terminal) == (0 if phase == "uncertain" else 1)


async def test_a_refused_path_is_a_failure_in_words(
    store: Store, ids: Ids, ground: ActGround, dispatcher: Dispatcher
) -> None:
    proposal = await show(ground, "write_file", path="a.py", content="x")
    (ground.root / "a.py").symlink_to("app.py")
    action = queue(store, ids, "write_file", proposal.payload)
    await dispatcher.run_wave(ids[1])
    assert now(store, action).phase == "failed_terminal"
    assert "symbolic link" in now(store, action).last_error


@pytest.mark.parametrize(
    ("decision", "phase"), [("done", "confirmed"), ("retry", "queued"), ("drop", "failed_terminal")]
)
async def test_the_person_settles_what_is_uncertain_once(
    store: Store, ids: Ids, ground: ActGround, decision: Any, phase: str
) -> None:
    adapter = Scripted(ValueError("bug"), succeeded("now"), probes=("unknown",))
    action = queue(store, ids, "run", {})
    dispatcher = Dispatcher(store, ground, {"run": adapter})
    with pytest.raises(IllegalTransition):
        await settle(store, action.action_id, decision)
    await dispatcher.run_wave(ids[1])
    await dispatcher.run_wave(ids[1])
    assert adapter.performed == 1
    assert (await settle(store, action.action_id, decision)).phase == phase
    with pytest.raises(IllegalTransition):
        await settle(store, action.action_id, decision)
    await dispatcher.run_wave(ids[1])
    assert adapter.performed == (2 if decision == "retry" else 1)


def start_victim(store: Store, root: Path, wave: str, moment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(VICTIM), str(store.path), str(root), wave, moment],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", ["write_file", "edit_file", "git_commit", "github", "run"])
async def test_killed_between_dispatch_and_receipt(
    store: Store, ids: Ids, ground: ActGround, github: Path, kind: str, moment: str
) -> None:
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
    victim = start_victim(store, root, ids[1], moment)
    victim.communicate()
    assert victim.returncode == -signal.SIGKILL
    assert (now(store, action).phase, now(store, action).attempts) == ("dispatched", 1)

    dispatcher = Dispatcher(store, ground)
    assert (await dispatcher.run_wave(ids[1]))[0].phase == "dispatched"
    (recovered,) = await dispatcher.recover(ids[0])
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


async def test_a_command_dies_with_its_killed_cockpit(
    store: Store, ids: Ids, ground: ActGround
) -> None:
    assert ground.sandbox.works
    script = (
        "import fcntl, signal\n"
        "file = open('held', 'w'); fcntl.flock(file, fcntl.LOCK_EX); open('began', 'w'); signal.pause()"
    )
    proposal = await show(ground, "run", argv=["python", "-c", script], reason="r")
    queue(store, ids, "run", proposal.payload)
    victim = start_victim(store, ground.root, ids[1], "race")
    victim_goes(victim)
    await appears(ground.root / "began")
    victim.kill()
    victim.communicate()
    with (ground.root / "held").open() as file:
        await asyncio.wait_for(asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX), 60)
    assert (await Dispatcher(store, ground).recover(ids[0]))[0].phase == "uncertain"


async def test_a_commit_whose_hook_outlives_the_cockpit_is_uncertain(
    store: Store, ids: Ids, ground: ActGround
) -> None:
    root = ground.root
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch began\nread line < go\n")
    hook.chmod(0o755)
    os.mkfifo(root / "go")
    (root / "new.py").write_text("x = 1\n")
    proposal = await show(ground, "git_commit", message="m", paths=["new.py"])
    action = queue(store, ids, "git_commit", proposal.payload)
    victim = start_victim(store, root, ids[1], "race")
    victim_goes(victim)
    await appears(root / "began")
    victim.kill()
    victim.wait()
    (recovered,) = await Dispatcher(store, ground).recover(ids[0])
    assert recovered.phase == "uncertain"
    await asyncio.to_thread((root / "go").write_text, "go\n")
    while await ADAPTERS["git_commit"].probe(action.payload, action.key, ground) != "done":
        await asyncio.sleep(0)
    assert (await settle(store, action.action_id, "done")).phase == "confirmed"
    assert git(root, "log", "--format=%s") == "m\nBegin\n"
    victim.communicate()


async def test_a_post_that_hung_when_the_cockpit_died_is_found(
    store: Store, ids: Ids, ground: ActGround, github: Path
) -> None:
    github.write_text(json.dumps({"entries": [], "fail": ["hang"], "runs": 0}))
    proposal = await show(ground, "github", command="gh pr comment 24 --body hello")
    queue(store, ids, "github", proposal.payload)
    victim = start_victim(store, ground.root, ids[1], "race")
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
        await asyncio.sleep(0)


async def test_a_living_rival_is_not_robbed(store: Store, ids: Ids, ground: ActGround) -> None:
    action = queue(store, ids, "run", {})
    store.write_now(lambda tx: outbox.dispatch(tx, action.action_id, "1/"))
    dispatcher = Dispatcher(store, ground, {"run": Scripted()})
    assert await dispatcher.recover(ids[0]) == []
    assert (await dispatcher.run_wave(ids[1]))[0].phase == "dispatched"


async def test_two_dispatchers_of_one_process_do_it_once(
    store: Store, ids: Ids, ground: ActGround
) -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    class Waiting(Scripted):
        async def perform(self, payload: Mapping[str, Any], key: str, ground: ActGround) -> Outcome:
            entered.set()
            await go.wait()
            return await super().perform(payload, key, ground)

    adapter = Waiting(succeeded("there"))
    action = queue(store, ids, "run", {})
    first, second = (Dispatcher(store, ground, {"run": adapter}) for _ in range(2))
    running = asyncio.create_task(first.run_wave(ids[1]))
    await entered.wait()
    assert await second.recover(ids[0]) == []
    assert (await second.run_wave(ids[1]))[0].phase == "dispatched"
    go.set()
    await running
    assert (now(store, action).phase, adapter.performed) == ("confirmed", 1)


async def test_many_processes_at_once_run_each_action_once(
    store: Store, ids: Ids, ground: ActGround
) -> None:
    for number in range(12):
        payload = {
            "argv": ["sh", "-c", f"echo {number} >> ran"],
            "timeout_s": 60,
            "sandboxed": False,
        }
        queue(store, ids, "run", payload, key=f"k-{number}", position=number)
    rivals = [start_victim(store, ground.root, ids[1], "race") for _ in range(3)]
    for rival in rivals:
        victim_goes(rival)
    for rival in rivals:
        rival.communicate()
        assert rival.returncode == 0
    actions = store.read_now(lambda c: outbox.of_wave(c, ids[1]))
    assert {(action.phase, action.attempts) for action in actions} == {("confirmed", 1)}
    assert sorted(map(int, (ground.root / "ran").read_text().split())) == list(range(12))


async def test_an_interrupted_command_is_ended_and_says_so(
    store: Store, ids: Ids, ground: ActGround, dispatcher: Dispatcher
) -> None:
    script = "import signal; open('began', 'w').close(); signal.pause()"
    proposal = await show(ground, "run", argv=["python", "-c", script], reason="r")
    first = queue(store, ids, "run", proposal.payload, key="k-1")
    second = queue(store, ids, "run", proposal.payload, key="k-2", position=1)
    running = asyncio.create_task(dispatcher.run_wave(ids[1]))
    while not (ground.root / "began").exists():
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (now(store, first).phase, now(store, second).phase) == ("failed_terminal", "queued")
    assert "interrupted" in now(store, first).last_error


@pytest.mark.parametrize("turns", range(0, 1_200, 60))
async def test_interrupted_anywhere_a_write_is_whole_and_known(
    store: Store, ids: Ids, ground: ActGround, turns: int
) -> None:
    proposal = await show(ground, "write_file", path="a.py", content="x = 1\n")
    action = queue(store, ids, "write_file", proposal.payload)
    dispatcher = Dispatcher(store, ground)
    running = asyncio.create_task(dispatcher.run_wave(ids[1]))
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    there = (ground.root / "a.py").exists()
    assert now(store, action).phase == ("confirmed" if there else "queued")
    await dispatcher.run_wave(ids[1])
    assert now(store, action).phase == "confirmed"
    assert [last for _, last in receipts(store, action)] == [True]
    assert (ground.root / "a.py").read_text() == "x = 1\n"


async def test_payloads_of_the_outbox_are_what_was_shown(
    store: Store, ids: Ids, ground: ActGround
) -> None:
    proposal = await show(
        ground, "write_file", path="é 😀.py", content="a\r\n\ttoken = get_token()\n"
    )
    action = queue(store, ids, "write_file", proposal.payload)
    assert now(store, action).payload == proposal.payload
    assert plant_wave(store, ground.root)[0] != ids[0]
