"""A growth in a session of its own goes on where it was interrupted, and does nothing twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import growth_story as story
import pytest
from loop.loop_calc import git

from cockpit.core.errors import Stale
from cockpit.evolve.evolve import EvolveRefused, begin_evolution, evolve, find_growth
from cockpit.loop.runtime import Runtime
from cockpit.store.journal import journal
from cockpit.store.sessions import proposals
from cockpit.store.sessions.hold_session import hold_session
from cockpit.store.sessions.proposals import Proposal

Opened = Callable[[str], AbstractAsyncContextManager[Runtime]]

WANT = "Extract the IP addresses of a .pcab file"
ANSWERED = "evolution.answered"
GROWN = [ANSWERED, ANSWERED, ANSWERED, "proposal.created"]
DECIDED = [*GROWN, "proposal.approved"]
DISPATCHED = [*DECIDED, "action.dispatched"]
MOMENTS = {
    # what is stored when the process dies there
    "evolution.started": [],
    "evolution.answered": [ANSWERED],
    "evolution.answered*3": [ANSWERED, ANSWERED, ANSWERED],
    "proposal.created": GROWN,
    "proposal.approved": DECIDED,
    "action.dispatched": DISPATCHED,
    "tool.approved": [*DISPATCHED, "tool.approved"],
    "action.confirmed": [*DISPATCHED, "tool.approved", "action.confirmed"],
}
ROUNDS = (
    story.test_round(1, story.GOOD_TEST)
    + story.growing(2, "write_code", source=story.WRONG)
    + story.growing(3, "write_code", source=story.RIGHT)
)


@pytest.mark.slow
def test_killed_at_each_step_a_growth_goes_on_and_adopts_once(tmp_path: Path) -> None:
    root, scenario = tmp_path / "project", tmp_path / "scenario.toml"
    root.mkdir()
    (root / "capture.pcab").write_text(story.CAPTURE)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "A")
    git(root, "config", "user.email", "a@example.org")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")
    scenario.write_text(ROUNDS)
    driver = Path(__file__).with_name("growth_kill_driver.py")
    done = subprocess.run(
        [
            sys.executable,
            str(driver),
            *(str(root), str(tmp_path / "user"), f"script:{scenario}"),
            *MOMENTS,
        ],
        env={**os.environ, "COCKPIT_TEST_GROWTH": "evolve"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    worlds = {world["moment"]: world for world in map(json.loads, done.stdout.splitlines())}
    assert list(worlds) == list(MOMENTS)
    for moment, world in worlds.items():
        assert world["died"] == -signal.SIGKILL, (world, done.stderr)
        assert world["stored"] == ["evolution.started", *MOMENTS[moment]], world
        assert world["summary"].startswith("The tool parse_pcab is adopted"), (world, done.stderr)
        assert (world["asked"], world["approved"], world["confirmed"]) == (3, 1, 1), world
        assert world["actions"].count("evolution.ended") == 1, world
        assert world["log"].count("Adopt the tool parse_pcab") == 1, world
        assert world["chain"], world


async def proposed(runtime: Runtime, work: asyncio.Task[object]) -> Proposal:
    while not work.done():
        if pending := await runtime.store.read(proposals.select_pending):
            return pending[0]
        await asyncio.sleep(0.01)
    raise AssertionError(work.result())


async def stop(work: asyncio.Task[object]) -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


async def test_what_the_user_said_of_a_tool_is_heard_after_an_interruption(opened: Opened) -> None:
    """Interrupted while it waits, then in the rounds that the user's words began."""
    again = story.GOOD_TEST.replace("come_once", "are_unique")
    more = story.test_round(4, again) + story.growing(5, "write_code", source=story.RIGHT)
    async with opened(ROUNDS + more) as runtime:
        engine = runtime.engine
        session_id = await begin_evolution(engine, WANT)
        work: asyncio.Task[object] = asyncio.create_task(evolve(engine, session_id))
        first = await proposed(runtime, work)
        await stop(work)
        await runtime.discuss(first.proposal_id, words="say that they are unique")
        work = asyncio.create_task(evolve(engine, (await find_growth(engine)).session_id))
        second = await proposed(runtime, work)
        assert second.revises == first.proposal_id
        assert "are_unique" in second.body["diffs"][1]["after"]
        await stop(work)
        work = asyncio.create_task(evolve(engine, session_id))
        await runtime.approve(second.proposal_id, shown_digest=second.shown_digest)
        await work
        rows = await runtime.store.read(lambda c: journal.rows(c, session_id=session_id))
        assert sum(row.action == "model.completed" for row in rows) == 5
        assert [row.action for row in rows].count("proposal.created") == 2
        with pytest.raises(EvolveRefused, match="has ended: The tool parse_pcab"):
            await find_growth(engine, session_id)
        with pytest.raises(EvolveRefused, match="No growth is left"):
            await find_growth(engine)


async def test_only_one_process_grows_a_session(opened: Opened) -> None:
    async with opened(ROUNDS) as runtime:
        session_id = await begin_evolution(runtime.engine, WANT)
        async with hold_session(runtime.store, session_id):
            with pytest.raises(Stale, match="runs session"):
                await evolve(runtime.engine, session_id)


async def test_a_session_that_grows_nothing_is_none_to_go_on_with(opened: Opened) -> None:
    async with opened(story.ASKS) as runtime:
        session_id = await runtime.start(story.TASK)
        with pytest.raises(EvolveRefused, match="grows no tool"):
            await find_growth(runtime.engine, session_id)
