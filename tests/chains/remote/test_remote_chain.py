"""Chains whose tasks workers of other machines do: what comes back, and what a death of anyone costs."""

from __future__ import annotations

import pytest
from chains.remote.remote_world import machines

pytestmark = pytest.mark.slow


def test_three_workers_do_a_chain(tmp_path):
    with machines(tmp_path, 4) as world:
        chains = world.chains
        for name in ("a", "b", "c"):
            world.start_worker(name)
        code, output = chains.end(world.work(chains.scenario(4)))
        logs = {name: world.log(name) for name in world.workers}
        assert code == 0, (output, logs)
        assert set(chains.statuses().values()) == {"done"}, (output, logs)
        merged = chains.project.git("log", "--format=%s", "--merges", "cockpit/ch-1")
        assert len(merged.splitlines()) == 4
        assert {row["fence"] for row in chains.rows("remote.run.returned")} == {1}
        assert len(chains.rows("remote.rows.received")) >= 4
        chains.project.run("journal", "verify")
