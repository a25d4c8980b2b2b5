"""The dispatcher: once, in order, with a receipt, through crashes, retries and rivals."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from act_world import journalled, now, queue, receipts, show
from examples import examples

from cockpit.act.adapters import Outcome
from cockpit.act.adapters.adapter import Found, failed, succeeded
from cockpit.act.adapters.run_command import MACHINE
from cockpit.act.dispatch_actions import Dispatcher, settle
from cockpit.act.live_output import read_live_output
from cockpit.act.workspace import Workspace
from cockpit.core.errors import CockpitError, IllegalTransition, MachineFault, find_full_disk
from cockpit.store.db.database import Store
from cockpit.store.sessions import outbox

pytestmark = pytest.mark.slow

Ids = tuple[str, str]


class Scripted:
    """An adapter whose attempts and probes are written down beforehand."""

    ends_when_cancelled = False

    def __init__(self, *outcomes: Outcome | Exception, probes: tuple[Found, ...] = ()) -> None:
        self.outcomes = list(outcomes)
        self.probes = list(probes)
        self.performed = 0

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        self.performed += 1
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        return self.probes.pop(0)


async def test_a_wave_runs_in_order_with_receipts(store, ids, ground, dispatcher):
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
        store.read_now(lambda c: outbox.select_receipts(c, done[1].action_id))[0].detail["stdout"]
        == "x = 1\n"
    )
    assert [a for a in journalled(store) if a.startswith("action.")] == [
        "action.queued", "action.queued", "action.dispatched", "action.confirmed",
        "action.dispatched", "action.confirmed",
    ]  # fmt: skip
    assert await dispatcher.run_wave(ids[1]) == done


async def test_planned_actions_are_left_alone(store, ids, dispatcher):
    planned = store.write_now(
        lambda tx: outbox.plan(
            tx, wave_id=ids[1], session_id=ids[0], position=0, key="k", action_type="run", title="t",
            payload={"argv": ["touch", "x"], "timeout_s": 1, "sandboxed": False},
        )
    )  # fmt: skip
    await dispatcher.run_wave(ids[1])
    assert now(store, planned).phase == "planned"


async def test_transient_failures_back_off_and_are_probed_first(store, ids, ground):
    start = store.clock.now()
    adapter = Scripted(failed("transient", "busy"), succeeded("there"), probes=("not_done",))
    action = queue(store, ids, "run", {})
    await Dispatcher(store, ground, {"run": adapter}).run_wave(ids[1])
    assert (now(store, action).phase, adapter.performed) == ("confirmed", 2)
    assert receipts(store, action) == [("failure", False), ("success", True)]
    assert (store.clock.now() - start).total_seconds() == 2.0
    assert "action.retried" in journalled(store)


@pytest.mark.parametrize(
    ("outcomes", "probes", "phase", "performed"),
    [
        ([failed("transient", "b")] * 3, ("not_done",) * 2, "failed_terminal", 3),
        ([failed("permanent", "b")], (), "failed_terminal", 1),
        ([Outcome("timeout", "b", "permanent")], (), "failed_terminal", 1),
        ([failed("transient", "b", maybe=True)], ("done",), "confirmed", 1),
        ([failed("transient", "b", maybe=True)], ("unknown",) * 3, "uncertain", 1),
        ([failed("transient", "b", maybe=True)] * 3, ("not_done", "not_done", "done"), "confirmed", 3),
        ([ValueError("bug")], ("done",), "confirmed", 1),
        ([ValueError("bug")], ("not_done",), "failed_terminal", 1),
        ([ValueError("bug")], ("unknown",), "uncertain", 1),
        ([CockpitError("no git")], ("done",), "confirmed", 1),
        ([CockpitError("no git")], ("unknown",), "failed_terminal", 1),
    ],
)  # fmt: skip
async def test_every_ending(store, ids, ground, outcomes, probes, phase, performed):
    adapter = Scripted(*outcomes, probes=probes)
    action = queue(store, ids, "run", {})
    await Dispatcher(store, ground, {"run": adapter}).run_wave(ids[1])
    assert (now(store, action).phase, adapter.performed) == (phase, performed)
    assert adapter.probes == []
    terminal = [status for status, last in receipts(store, action) if last]
    assert len(terminal) == (0 if phase == "uncertain" else 1)


async def test_a_refused_path_is_a_failure_in_words(store, ids, ground, dispatcher):
    proposal = await show(ground, "write_file", path="a.py", content="x")
    (ground.root / "a.py").symlink_to("app.py")
    action = queue(store, ids, "write_file", proposal.payload)
    await dispatcher.run_wave(ids[1])
    assert now(store, action).phase == "failed_terminal"
    assert "symbolic link" in now(store, action).last_error


@pytest.mark.parametrize(
    ("decision", "phase"), [("done", "confirmed"), ("retry", "queued"), ("drop", "failed_terminal")]
)
async def test_the_person_settles_what_is_uncertain_once(store, ids, ground, decision, phase):
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


async def test_a_living_rival_is_not_robbed(store: Store, ids: Ids, ground: Workspace) -> None:
    action = queue(store, ids, "run", {})
    store.write_now(lambda tx: outbox.dispatch(tx, action.action_id, "1/"))
    dispatcher = Dispatcher(store, ground, {"run": Scripted()})
    assert await dispatcher.recover(ids[0]) == []
    assert (await dispatcher.run_wave(ids[1]))[0].phase == "dispatched"


async def test_two_dispatchers_of_one_process_do_it_once(store, ids, ground):
    entered, go = asyncio.Event(), asyncio.Event()

    class Waiting(Scripted):
        async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
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


async def test_an_interrupted_command_is_ended_and_says_so(store, ids, ground, dispatcher):
    script = "import signal; open('began', 'w').close(); signal.pause()"
    proposal = await show(ground, "run", argv=["python", "-c", script], reason="r")
    first = queue(store, ids, "run", proposal.payload, key="k-1")
    second = queue(store, ids, "run", proposal.payload, key="k-2", position=1)
    running = asyncio.create_task(dispatcher.run_wave(ids[1]))
    while not (ground.root / "began").exists():
        await asyncio.sleep(0.005)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (now(store, first).phase, now(store, second).phase) == ("failed_terminal", "queued")
    assert "interrupted" in now(store, first).last_error


@pytest.mark.search
@pytest.mark.parametrize("turns", range(0, 1_200, max(1, 1_200 // examples(4))))
async def test_interrupted_anywhere_a_write_is_whole_and_known(store, ids, ground, turns):
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


async def test_output_is_there_while_a_command_runs_masked_and_gone_afterwards(
    store, ids, ground, dispatcher
):
    secret = "ghp_" + "a1B2c3D4e5" * 4
    await asyncio.to_thread(os.mkfifo, ground.root / "go")
    script = "echo first ghp_$(printf 'a1B2c3D4e5%.0s' 1 2 3 4); printf half; cat go"
    run = await show(ground, "run", argv=["sh", "-c", script], reason="r")
    queue(store, ids, "run", run.payload, key="k-1")
    wave = asyncio.ensure_future(dispatcher.run_wave(ids[1]))
    (action,) = await store.read(lambda c: outbox.select_for_wave(c, ids[1]))
    while (text := read_live_output(store.path, action.action_id)) is None and not wave.done():
        await asyncio.sleep(0.01)
    with (ground.root / "go").open("w") as pipe:
        pipe.write(" whole\n")
    (done,) = await wave
    assert text is not None
    assert text.startswith("first ")
    assert secret not in text
    assert "half" not in text
    assert read_live_output(store.path, action.action_id) is None
    (receipt,) = store.read_now(lambda c: outbox.select_receipts(c, done.action_id))
    assert "half whole" in receipt.detail["stdout"]


@pytest.mark.parametrize(
    ("met", "probes"),
    [
        (failed("machine", "no room."), ()),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), ("not_done",)),
        (MachineFault("No processes."), ("not_done",)),
    ],
)
async def test_what_the_machine_had_no_room_for_stays_queued(
    store: Store, ids: Ids, ground: Workspace, met: Outcome | Exception, probes: tuple[Found, ...]
) -> None:
    adapter = Scripted(met, succeeded("Done."), probes=probes)
    action = queue(store, ids, "run", {"argv": ["x"]})
    dispatcher = Dispatcher(store, ground, {"run": adapter})
    with pytest.raises(MachineFault, match="Make room"):
        await dispatcher.run_wave(ids[1])
    assert now(store, action).phase == "queued"
    (ended,) = await dispatcher.run_wave(ids[1])
    assert (ended.phase, adapter.performed) == ("confirmed", 2)


async def test_a_command_that_met_a_full_disk_is_not_run_again(store, ids, ground, dispatcher):
    words = "No space left on device"
    shown = await show(ground, "run", argv=["sh", "-c", f"echo {words} >&2; exit 1"], reason="r")
    action = queue(store, ids, "run", shown.payload)
    await dispatcher.run_wave(ids[1])
    (receipt,) = store.read_now(lambda c: outbox.select_receipts(c, action.action_id))
    assert MACHINE not in receipt.detail, "the disk has room: these are words alone"
    assert find_full_disk(words, Path("/proc")), "a file system without room"
    assert not find_full_disk("other words", Path("/proc"))
