"""Kill a process of a growth at some of its moments, and see that the next one ends it once.

A growth for a task that lacks a tool, and one in a session of its own.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import growth_story as story
import pytest
from copied_repository import begin_repository
from examples import examples

pytestmark = [pytest.mark.slow, pytest.mark.search]

DRIVER = Path(__file__).with_name("growth_kill_driver.py")
ANSWERED = "evolution.answered"
BEGUN = [ANSWERED, ANSWERED]
GROWN = [*BEGUN, "evolution.ended", "proposal.created"]
ADOPTS = ["proposal.decided", "action.dispatched", "approval.changed"]
TASK = {
    # how what is stored ends when the process dies there
    ANSWERED: BEGUN[:1],
    f"{ANSWERED}*2": BEGUN,
    "proposal.created*2": GROWN,
    "approval.changed": [*GROWN, *ADOPTS],
}
ALONE = {
    ANSWERED: BEGUN[:1],
    f"{ANSWERED}*2": BEGUN,
    "proposal.created": [*BEGUN, "proposal.created"],
    "proposal.decided": [*BEGUN, "proposal.created", *ADOPTS[:1]],
    "action.dispatched": [*BEGUN, "proposal.created", *ADOPTS[:2]],
    "approval.changed": [*BEGUN, "proposal.created", *ADOPTS],
    "action.confirmed": [*BEGUN, "proposal.created", *ADOPTS, "action.confirmed"],
}
ALL = [*(("task", each) for each in TASK), *(("evolve", each) for each in ALONE)]


@pytest.mark.parametrize(
    ("kind", "moment"), random.Random(3).sample(ALL, min(len(ALL), examples(1)))
)
def test_killed_at_each_step_a_growth_goes_on_and_adopts_once(
    tmp_path: Path, kind: str, moment: str
) -> None:
    """Some moments, all in a long search. A test that is stored is not written again, nor are files."""
    root = begin_repository(tmp_path / "project", {"capture.pcab": story.CAPTURE})
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(story.ASKS + story.USES + story.ENDS + story.GROWS)
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(root), str(tmp_path / "user"), f"script:{scenario}", moment],
        env={**os.environ, "COCKPIT_TEST_GROWTH": kind}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    world = json.loads(done.stdout)
    ending = (TASK if kind == "task" else ALONE)[moment]
    assert world["died"] == -signal.SIGKILL, (world, done.stderr)
    assert world["stored"][-len(ending) :] == ending, world
    written = root / ".cockpit" / "tools"
    assert (written / "parse_pcab.py").exists() and world["chain"], world
    assert (written / "tests" / "test_parse_pcab.py").exists()
    words = "172.16.4.2 and 8.8.8.8" if kind == "task" else "The tool parse_pcab is adopted"
    assert words in world["summary"], world
    confirmed = 2 if kind == "task" else 1
    assert (world["asked"], world["approved"], world["confirmed"]) == (2, 1, confirmed), world
    assert world["actions"].count("evolution.ended") == 1, world
