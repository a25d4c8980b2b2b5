"""Profile changes in whole sessions: an agent proposes, packets shift for so many waves, and return."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from adapt_world import runtime_on, seen, settings_of, weather_scenario
from commands.cli_world import Project
from loop.scenario import finish, turn

from cockpit.store.context import profile_changes, profiles
from cockpit.store.context.profile_model import load_shipped
from cockpit.store.journal import journal, verify_chain
from cockpit.store.sessions import proposals, sessions

pytestmark = pytest.mark.slow

SHIFT = {
    "base_profile_version": 1,
    "effective_waves": 1,
    "reason": "a storm",
    "rules": [{"rule_id": "search", "priority_weight": 3.0}],
}
PROPOSE = "propose_profile_change"


def scenario(tmp_path, arguments, told):
    path = tmp_path / "story.toml"
    proposes = turn(PROPOSE, **arguments) if isinstance(arguments, dict) else arguments
    path.write_text(proposes + finish(f'wave_from = 2, contains = ["{told}"]'))
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


REFUSED = {"critical_source": SHIFT | {"rules": [{"rule_id": "task", "enabled": False}]}}


@pytest.mark.parametrize("code", REFUSED)
async def test_the_agent_is_told_why_not(project, tmp_path, code):
    """Even where the session's policy approves everything that the guards let through."""
    versions, changes = await ended(project, tmp_path, REFUSED[code], f"Refused .{code}.")
    assert len(versions) == 1
    assert [(one.status, one.rejection_code) for one in changes] == [("rejected", code)]


@pytest.mark.parametrize(
    ("verdict", "told", "versions"),
    [("approve", "Approved by person", [1, 2]), ("discuss", "The user said: because", [1])],
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


PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "change-what-an-agent-knows.md"
ROUNDED_TO = 50
"""What the page's tokens are rounded to."""

HELD = 3
ROUNDS = 7
"""Wave 1 asks, 2 proposes under version 1; 3, 4, 5 run under version 2; 6 and 7 are back."""


async def watched(project, tmp_path):
    """The whole session, headless; returns what every wave knew."""
    scenario = tmp_path / "weather.toml"
    scenario.write_text(weather_scenario(HELD, ROUNDS))
    async with runtime_on(project, settings_of(tmp_path)) as runtime:
        session_id = await runtime.start(
            "implement a storm watch", model=f"script:{scenario}", policy="all", interactive=False
        )
        ended = await runtime.run(session_id)
        assert ended.result["status"] == "done"
        return seen(runtime.store, session_id), await report(runtime)


def bulletins(wave):
    return wave.tokens["search"] / (wave.tokens["search"] + wave.tokens["file"])


async def report(runtime):
    def read(connection):
        rows = journal.rows(connection, limit=5000)
        name = sessions.select_recent(connection, 1)[0].profile_id
        return rows, profiles.select_versions(connection, name), verify_chain.verify(connection)

    return await runtime.store.read(read)


async def test_packets_shift_for_so_many_waves_and_return(project, tmp_path):
    waves, (rows, versions, verdict) = await watched(project, tmp_path)

    assert [wave.version for wave in waves] == [1, 1, 2, 2, 2, 3, 3]
    # Shares of the bulletins in what both sources have of the packet.
    before, *share = [bulletins(wave) for wave in waves[1:]]
    during, after = share[:HELD], share[HELD:]
    assert min(during) > before
    assert max(after) < min(during)
    # Back at the end of the horizon the stations stand before the bulletins again.
    for wave in waves[2:5]:
        assert wave.tokens["search"] > wave.tokens["file"], wave
    for wave in waves[5:]:
        assert wave.tokens["search"] < wave.tokens["file"], wave

    assert [version.version for version in versions] == [1, 2, 3]
    assert versions[2].digest == versions[0].digest != versions[1].digest
    assert [version.status for version in versions] == ["retired", "retired", "active"]
    told = [row.action for row in rows if row.action.startswith("orientation.profile.")]
    assert told == [
        "orientation.profile.proposed",
        "orientation.profile.approved",
        "orientation.profile.applied",
        "orientation.profile.ended",
    ]
    ended = next(row for row in rows if row.action == "orientation.profile.ended")
    begun = next(row for row in rows if row.seq > ended.seq and row.action == "wave.started")
    assert (ended.wave_id, ended.trace_id) == (begun.wave_id, begun.trace_id)
    assert begun.raw_detail()["ordinal"] == 2 + HELD + 1
    left = [row.raw_detail().get("waves_left") for row in rows if row.action == "wave.started"]
    assert left == [None, None, 2, 1, 0, None, None]
    assert verdict.ok
    # The page tells what the waves knew.
    row = re.compile(r"^\| (\d) \| version (\d) \| ([\d,]+) \| ([\d,]+) \|", re.MULTILINE)
    told = [
        tuple(int(number.replace(",", "")) for number in line)
        for line in row.findall(PAGE.read_text("utf-8"))
    ]
    assert [line[:2] for line in told] == [(wave.ordinal, wave.version) for wave in waves[1:]]
    for wave, (_, _, from_bulletins, from_stations) in zip(waves[1:], told, strict=True):
        assert abs(wave.tokens["search"] - from_bulletins) <= ROUNDED_TO, wave
        assert abs(wave.tokens["file"] - from_stations) <= ROUNDED_TO, wave
    # Every packet compiles again to its digest.
    verdicts = Project(project, tmp_path / "config").json("debug", "packet", "verify", "--json")
    assert [verdict["ok"] for verdict in verdicts] == [True] * ROUNDS
