"""A safe shift of weather priority over the next N waves, and back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from adapt_world import cockpit, runtime_on, seen, settings_of, weather_scenario

from cockpit.loop.runtime_settings import Limits
from cockpit.store.context import profiles
from cockpit.store.journal import journal, verify_chain
from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "change-what-an-agent-knows.md"
ROUNDED_TO = 50
"""What the page's tokens are rounded to."""

HELD = 3
ROUNDS = 7
"""Wave 1 asks, 2 proposes under version 1; 3, 4, 5 run under version 2; 6 and 7 are back."""


async def watched(project, tmp_path, **fields):
    """The whole session, headless; returns what every wave knew."""
    scenario = tmp_path / "weather.toml"
    scenario.write_text(weather_scenario(HELD, ROUNDS))
    async with runtime_on(project, settings_of(tmp_path, **fields)) as runtime:
        session_id = await runtime.start(
            "implement a storm watch", model=f"script:{scenario}", policy="all", interactive=False
        )
        ended = await runtime.run(session_id)
        assert ended.result["status"] == "done"
        return runtime.store, session_id, seen(runtime.store, session_id), await report(runtime)


def bulletins(wave):
    return wave.tokens["search"] / (wave.tokens["search"] + wave.tokens["file"])


async def report(runtime):
    def read(connection):
        rows = journal.rows(connection, limit=5000)
        name = sessions.select_recent(connection, 1)[0].profile_id
        return rows, profiles.select_versions(connection, name), verify_chain.verify(connection)

    return await runtime.store.read(read)


async def test_packets_shift_for_so_many_waves_and_return(project, tmp_path):
    _, _, waves, (rows, versions, verdict) = await watched(project, tmp_path)

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
        "orientation.profile.reverted",
    ]
    ended = next(row for row in rows if row.action == "orientation.profile.reverted")
    begun = next(row for row in rows if row.seq > ended.seq and row.action == "wave.started")
    assert (ended.wave_id, ended.trace_id) == (begun.wave_id, begun.trace_id)
    assert begun.raw_detail()["ordinal"] == 2 + HELD + 1
    left = [row.raw_detail().get("waves_left") for row in rows if row.action == "wave.started"]
    assert left == [None, None, 2, 1, 0, None, None]
    assert verdict.ok


async def test_the_page_tells_what_the_waves_knew(project, tmp_path):
    _, _, waves, _ = await watched(project, tmp_path)
    row = re.compile(r"^\| (\d) \| version (\d) \| ([\d,]+) \| ([\d,]+) \|", re.MULTILINE)
    told = [
        tuple(int(number.replace(",", "")) for number in found)
        for found in row.findall(PAGE.read_text("utf-8"))
    ]
    assert [line[:2] for line in told] == [(wave.ordinal, wave.version) for wave in waves[1:]]
    for wave, (_, _, from_bulletins, from_stations) in zip(waves[1:], told, strict=True):
        assert abs(wave.tokens["search"] - from_bulletins) <= ROUNDED_TO, wave
        assert abs(wave.tokens["file"] - from_stations) <= ROUNDED_TO, wave


async def test_every_packet_of_the_shift_recompiles_to_its_digest(project, tmp_path):
    await watched(project, tmp_path)
    verdicts = json.loads(cockpit(project, "packet", "verify", "--json").stdout)
    assert [verdict["ok"] for verdict in verdicts] == [True] * ROUNDS


@pytest.mark.parametrize("policy", ["ask", "reads"])
async def test_without_a_person_the_proposal_waits_and_expires(project, tmp_path, policy):
    scenario = tmp_path / "weather.toml"
    scenario.write_text(
        """
[[turn]]
text = "A storm is coming."
[[turn.call]]
name = "propose_profile_change"
arguments = { base_profile_version = 1, effective_waves = 2, reason = "a storm", \
rules = [{ rule_id = "search", priority_weight = 3.0 }] }
[[turn]]
when = { contains = ["The proposal expired"] }
text = "Then I stop."
[[turn.call]]
name = "finish"
arguments = { status = "blocked", summary = "nobody decided" }
"""
    )
    settings = settings_of(tmp_path, limits=Limits(deadline_s=0.2))
    async with runtime_on(project, settings) as runtime:
        session_id = await runtime.start(
            "implement a storm watch", model=f"script:{scenario}", policy=policy, interactive=False
        )
        assert (await runtime.run(session_id)).status == "waiting"
        ended = await runtime.run(session_id)
        assert ended.result == {"status": "blocked", "summary": "nobody decided"}
        rows, versions, _ = await report(runtime)
        assert len(versions) == 1
        assert "orientation.profile.expired" in [row.action for row in rows]
