"""Days of cockpit from one seed: nothing is lost or doubled, and the same seed gives the same bytes."""

from __future__ import annotations

import pytest
from examples import examples
from faults.simulation import Simulation

pytestmark = [pytest.mark.slow, pytest.mark.search]

STEPS = examples(16)
"""``make chaos`` takes 10,000."""


async def test_the_same_seed_gives_the_same_journal(tmp_path, monkeypatch):
    # Both in the same place: the journal names paths.
    monkeypatch.setenv("COCKPIT_STATE_DIR", str(tmp_path / "world" / "state"))
    digests = []
    for _ in range(2):
        simulation = Simulation(tmp_path / "world", seed=1)
        verdict = await simulation.run(STEPS)
        assert verdict, verdict
        assert simulation.deaths
        assert simulation.faults
        digests.append(simulation.digest())
    assert digests[0] == digests[1]
