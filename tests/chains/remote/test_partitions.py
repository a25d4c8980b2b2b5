"""A network that is cut between a machine and the NATS server: nothing is lost, and nothing counts twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chains.chain_world import slowly
from chains.remote.remote_chaos import check
from chains.remote.remote_world import Machines, machines
from chains.remote.test_remote_chain import wait_until
from chains.remote.wires import FORMS, Wire, wire

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("form", FORMS)]

EVERYWHERE = "0.0.0.0"


@contextmanager
def wired(folder: Path, count: int, form: str) -> Iterator[tuple[Machines, Wire]]:
    """Machines with ``count`` tasks, and a wire to their server."""
    address = "127.0.0.1" if form == "proxy" else EVERYWHERE
    with machines(folder, count, address=address) as world, wire(form, world.server) as laid:
        yield world, laid


def claims(world: Machines, worker: str) -> list[str]:
    """The tasks that the worker took up, in order."""
    rows = world.chains.rows("remote.run.claimed")
    return [row["task_id"] for row in rows if row["worker"] == worker]


def test_a_worker_that_is_cut_off_cannot_merge_and_works_again_later(tmp_path, form):
    with wired(tmp_path, 2, form) as (world, laid):
        chains = world.chains
        world.start_worker("far", url=laid.url, enter=laid.enter)
        running = world.work(slowly(chains.scenario(2), 0.5))
        wait_until(lambda: claims(world, "far"))
        (lost,) = claims(world, "far")
        laid.cut()
        near = world.start_worker("near")
        code, output = chains.end(running)
        assert code == 0, (output, world.log("near"))
        assert set(claims(world, "near")) == {"T-1", "T-2"}
        check(world, 2)
        near.kill()
        laid.mend()
        # What it did is on its way still; then it does the next task.
        wait_until(lambda: f"{lost}: ready" in world.log("far"))
        chains.project.run("tasks", "add", "Write part3", "--file", "part3.py")
        code, output = chains.end(world.work(chains.scenario(3)))
        assert code == 0, (output, world.log("far"))
        assert claims(world, "far") == [lost, "T-3"]
        assert ("far", lost) in {
            (r["worker"], r["task_id"]) for r in chains.rows("remote.run.void")
        }
        merged = chains.project.git("log", "--format=%s", "--merges", "--all").splitlines()
        assert len([each for each in merged if each.startswith(f"Merge {lost}")]) == 1
        chains.project.run("journal", "verify")


def test_a_coordinator_that_is_cut_off_gets_everything_later(tmp_path, form):
    with wired(tmp_path, 3, form) as (world, laid):
        chains = world.chains
        world.configure(laid.url, at_once=2)
        world.start_worker("a")
        world.start_worker("b")
        running = world.work(slowly(chains.scenario(3), 0.5), enter=laid.enter)
        wait_until(lambda: len(chains.rows("remote.run.claimed")) == 2)
        laid.cut()
        wait_until(lambda: all(": ready" in world.log(name) for name in "ab"))
        assert not chains.rows("remote.run.returned")
        laid.mend()
        code, output = chains.end(running)
        assert code == 0, (output, world.log("a"), world.log("b"))
        assert [str(row) for row in chains.rows("remote.run.void")] == []
        check(world, 3)
        exported = tmp_path / "rows.jsonl"
        for task_id in chains.statuses():
            exported.write_text(chains.project.run("journal", "export", "--task", task_id).stdout)
            assert '"quality_review"' in exported.read_text().splitlines()[-1]
            chains.project.run("journal", "verify", "--export", str(exported))
