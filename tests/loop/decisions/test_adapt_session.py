"""The agent's own tool, in whole sessions: asked, told, interrupted, killed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from adapt_world import runtime_on, settings_of

from cockpit.loop.decisions.profile_change_tool import TOOL, describe_profile
from cockpit.store.context import profile_changes, profiles
from cockpit.store.context.profile_model import load_shipped
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import plans, proposals, waves

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).with_name("adapt_kill_driver.py")
MOST = 120
"""More commits than this story has: the driver stops at the first run that survives."""

STORY = """
[[turn]]
text = "I shift my attention."
[[turn.call]]
name = "propose_profile_change"
%s
[[turn]]
when = { wave_from = 2, contains = ["%s"] }
text = "I go on."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "told" }
"""
SHIFT = (
    'arguments = { base_profile_version = 1, effective_waves = 1, reason = "a storm", '
    'rules = [{ rule_id = "search", priority_weight = 3.0 }] }'
)


def scenario(tmp_path, arguments, told):
    path = tmp_path / "story.toml"
    path.write_text(STORY % (arguments, told))
    return f"script:{path}"


async def ended(project, tmp_path, arguments, told, policy="all"):
    """Run the story to its end; the profile's versions and the changes then."""
    model = scenario(tmp_path, arguments, told)
    async with runtime_on(project, settings_of(tmp_path)) as runtime:
        session_id = await runtime.start("implement it", model=model, policy=policy)
        session = await runtime.run(session_id)
        assert session.result.get("status") == "done", session
        found = await runtime.store.read(lambda c: profiles.select_versions(c, session.profile_id))
        return found, await runtime.store.read(profile_changes.select_changes)


async def test_the_agent_is_told_that_it_holds(project, tmp_path):
    versions, changes = await ended(project, tmp_path, SHIFT, "version 2 of your attention")
    assert [one.version for one in versions] == [1, 2]
    assert changes[0].approved_by == "policy:all"
    assert changes[0].requested_by.startswith("agent/s-")


REFUSED = {
    "critical_source": SHIFT.replace('"search", priority_weight = 3.0', '"task", enabled = false'),
    "outside_envelope": SHIFT.replace("3.0", "3.5"),
    "namespace_spoofed": SHIFT.replace("reason", 'namespace = "main", reason'),
    "stale_base": SHIFT.replace("base_profile_version = 1", "base_profile_version = 9"),
    "malformed": SHIFT.replace("3.0", "1e12"),
}


@pytest.mark.parametrize("code", REFUSED)
async def test_the_agent_is_told_why_not(project, tmp_path, code):
    """Even where the session's policy approves everything that the guards let through."""
    versions, changes = await ended(project, tmp_path, REFUSED[code], f"Refused .{code}.")
    assert len(versions) == 1
    assert [(one.status, one.rejection_code) for one in changes] == [("rejected", code)]


@pytest.mark.parametrize(
    "raw",
    [
        '{"base_profile_version": 1, "effective_waves": NaN, "reason": "x"}',
        '{"base_profile_version": 1, "base_profile_version": 1, "effective_waves": 1, "reason": "x"}',
        '{"base_profile_version": 1, "effective_waves": 1, "reason": "x", "scopes": ["all"]}',
        '{"base_profile_version": 1, "effective_waves": 1',
    ],
    ids=["NaN", "twice", "scopes", "cut"],
)
async def test_a_call_that_cannot_be_read_changes_nothing(project, tmp_path, raw):
    versions, changes = await ended(project, tmp_path, f"raw_arguments = '{raw}'", "Not understood")
    assert (len(versions), changes) == (1, [])


@pytest.mark.parametrize(
    ("verdict", "told", "versions"),
    [
        ("approve", "Approved by main", [1, 2]),
        ("reject", "Rejected by person", [1]),
        ("discuss", "The user said: because", [1]),
    ],
)
async def test_a_person_decides_on_the_screen(project, tmp_path, verdict, told, versions):
    model = scenario(tmp_path, SHIFT, told)
    async with runtime_on(project, settings_of(tmp_path)) as runtime:
        session_id = await runtime.start("implement it", model=model, policy="ask")
        running = asyncio.create_task(runtime.run(session_id))

        def waiting():
            return runtime.store.read_now(proposals.select_pending) or (
                True if running.done() else None
            )

        (shown,) = await runtime.engine.change_waiter.wait_for(waiting)
        assert shown.body["base_version"] == 1
        assert [one["band"] for one in shown.body["bands_after"]] == [
            band.name for band in load_shipped().bands
        ]
        assert shown.body["rules_after"][0]["priority_weight"] == 3.0
        given = {"words": "because"} if verdict == "discuss" else {}
        decide = getattr(runtime, verdict)
        await decide(shown.proposal_id, shown_digest=shown.shown_digest, **given)
        session = await running
        assert session.result["status"] == "done"
        found = await runtime.store.read(lambda c: profiles.select_versions(c, session.profile_id))
        assert [one.version for one in found] == versions
        assert (await runtime.store.read(verify_chain.verify)).ok


async def test_the_tool_says_what_a_change_starts_from(project, tmp_path):
    async with runtime_on(project, settings_of(tmp_path)) as runtime:
        model = scenario(tmp_path, SHIFT, "version 2")
        session_id = await runtime.start("implement it", model=model, policy="all")
        await runtime.run(session_id)
        last = await runtime.store.read(lambda c: waves.find_latest(c, session_id))
        assert last.profile_version == 2
        plan = await runtime.store.read(lambda c: plans.find(c, f"{session_id}-w1"))
        assert plan.calls[0]["name"] == TOOL
    words = describe_profile(load_shipped())
    assert "base_profile_version is 1" in words
    assert "situational 45000/75000/110000" in words
    assert "search 0.9" in words


@pytest.mark.parametrize("half", [1, 2])
def test_killed_after_any_commit_it_shifts_once_and_returns(project, tmp_path, half):
    story = tmp_path / "story.toml"
    turns = STORY % (SHIFT, "no such words")
    turns += """
[[turn]]
when = { wave = 2 }
text = "I write."
[[turn.call]]
name = "write_file"
arguments = { path = "a.md", content = "a" }
[[turn]]
when = { wave_from = 3 }
text = "Done."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "shifted" }
"""
    story.write_text(turns)
    done = subprocess.run(
        [
            sys.executable,
            str(DRIVER),
            *(str(project), str(tmp_path / "user"), f"script:{story}"),
            *(str(half), str(MOST), "2"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    worlds = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(worlds) > 5
    assert worlds[-1]["died"] == 0
    assert all(world["died"] == -signal.SIGKILL for world in worlds[:-1])
    for world in worlds:
        assert world["resumed"] == 0, (world, done.stderr)
        assert world["status"] == "completed", world
        assert (world["changes"], world["begun"]) == (["approved"], [1]), world
        assert (world["versions"], world["same"]) == ([1, 2, 3], True), world
        assert world["waves"] == [1, 2, 3], world
        assert world["chain"], world
