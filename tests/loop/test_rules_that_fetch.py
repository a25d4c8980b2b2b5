"""Attention rules that fetch: read without asking, within their quota, and only where the user agreed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from copied_repository import copy_repository
from loop_calc import git
from loop_runs import pending, run_to_end, running
from scenario import ask, finish, turn

from cockpit.access.principals import PERSON
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.decisions.propose_profile_change import propose_profile_change
from cockpit.loop.runtime import Runtime
from cockpit.loop.runtime_settings import ProfileChangeLimits
from cockpit.orient.profile_changes.parse_change import parse_change
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.context import observation_jobs, packets, profile_changes, profiles
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import waves

pytestmark = pytest.mark.slow

LOOKS = ask(when="wave = 1") + ask(when="wave = 2")
"""Requests that are refused: the waves pass and read nothing."""
END = finish("wave_from = 3")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_repository(_make_roads, tmp_path / "project")


def _make_roads(root: Path) -> None:
    (root / "guide").mkdir(parents=True)
    for number in range(5):
        (root / "guide" / f"g{number}.md").write_text(f"Guide {number}: keep left.\n")
    (root / "app.py").write_text("# TODO: brake earlier\nspeed = 1\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Roads")


async def change_rules(runtime: Runtime, *rules: dict[str, Any]) -> None:
    """The user proposes a change of the default profile and approves it."""
    settings = runtime.engine.settings

    def step(tx: Any) -> Any:
        base = profiles.ensure_default(tx, settings.token_budget)
        payload = {
            "base_profile_version": base.version,
            "effective_waves": 0,
            "reason": "t",
            "rules": rules,
        }
        change = parse_change(json.dumps(payload), imported=True)
        outcome = propose_profile_change(
            tx, settings, change, PERSON, profile_id=base.profile_id, proposal_id=tx.ids.new("p")
        )
        assert outcome.status == "pending", outcome
        return decide_proposal(tx, settings, outcome.proposal_id, "approved", PERSON)

    outcome = await runtime.store.write(step)
    assert outcome.status == "approved", outcome


async def run(runtime: Runtime, model: str, policy: str = "all") -> str:
    session = await run_to_end(runtime, model, "implement it", policy)
    assert session.result.get("status") == "done", session
    return session.session_id


def jobs_by_wave(runtime: Runtime, session_id: str) -> list[list[tuple[str, str]]]:
    """(item, status) of the jobs of each wave."""
    return runtime.store.read_now(
        lambda c: [
            [(row.item, row.status) for row in observation_jobs.select_for_wave(c, wave.wave_id)]
            for wave in waves.select_for_session(c, session_id)
        ]
    )


def requests_by_rules(runtime: Runtime) -> list[dict[str, Any]]:
    rows = runtime.store.read_now(
        lambda c: c.execute(
            "SELECT actor, detail_json FROM journal WHERE action='context.requested' ORDER BY seq"
        ).fetchall()
    )
    bodies = [{"actor": actor, **json.loads(detail)} for actor, detail in rows]
    return [body for body in bodies if body.get("rule")]


def refs_in_packet(runtime: Runtime, session_id: str, ordinal: int) -> set[str]:
    def read(c: Any) -> set[str]:
        wave = waves.select_for_session(c, session_id)[ordinal - 1]
        entries = [e.fact_id for _, e in packets.load(c, wave.wave_id).packet.rendered()]
        marks = ",".join("?" * len(entries))
        rows = c.execute(
            f"SELECT source_ref FROM observed_facts WHERE fact_id IN ({marks})", entries
        )
        return {ref for (ref,) in rows}

    return runtime.store.read_now(read)


async def test_an_enabled_rule_reads_its_items_once_within_its_quota(runtime, script):
    await change_rules(
        runtime,
        {"rule_id": "search", "fetch": ["search:TODO"]},
        {"rule_id": "guide", "source_type": "file", "fetch": ["file:guide/*.md"], "quota": 2},
    )
    session_id = await run(runtime, script(LOOKS + END), policy="ask")
    first, *later = jobs_by_wave(runtime, session_id)
    assert sorted(first) == [
        ("file:guide/g0.md", "done"),
        ("file:guide/g1.md", "done"),
        ("file:guide/g2.md", "refused"),
        ("search:TODO", "done"),
    ]
    assert later == [[], []], "nothing changed, so nothing is read again"
    assert {"file:guide/g0.md", "search:TODO"} <= refs_in_packet(runtime, session_id, 1)
    requests = requests_by_rules(runtime)
    assert [(r["rule"], r["auto"], r["actor"]) for r in requests] == [
        ("guide", True, "policy:rule/guide"),
        ("search", True, "policy:rule/search"),
    ]
    for wave in runtime.store.read_now(lambda c: waves.select_for_session(c, session_id)):
        verified = runtime.store.read_now(lambda c, wave=wave: recompile_packet(c, wave.wave_id))
        assert verified.ok, verified.words
    assert (await runtime.store.read(verify_chain.verify)).ok


async def test_after_an_action_a_rule_reads_what_is_new_and_finds_what_changed(runtime, script):
    write = {"path": "guide/h.md", "content": "Guide h. TODO: signs\n"}
    model = script(LOOKS + turn("write_file", "wave = 1", **write) + END)
    await change_rules(
        runtime,
        {"rule_id": "search", "fetch": ["search:TODO"]},
        {"rule_id": "file", "source_type": "file", "fetch": ["file:guide/*.md"]},
    )
    session_id = await run(runtime, model)
    first, second, third = jobs_by_wave(runtime, session_id)
    assert len(first) == 6
    assert sorted(second) == [("file:guide/h.md", "done"), ("search:TODO", "done")]
    assert third == []
    query = (
        "SELECT f.normalized_json FROM session_facts AS s JOIN observed_facts AS f USING(fact_id)"
        " WHERE s.session_id=? AND s.source_type='search' AND s.superseded_at IS NULL"
    )
    ((text,),) = runtime.store.read_now(lambda c: c.execute(query, (session_id,)).fetchall())
    assert "signs" in text
    assert "brake earlier" in text


CHANGE = {
    "base_profile_version": 1,
    "effective_waves": 5,
    "reason": "watch the guide",
    "rules": [{"rule_id": "guide", "source_type": "file", "fetch": ["file:guide/g1.md"]}],
}


async def test_an_agents_rule_that_fetches_waits_for_the_user_under_every_policy(opened, script):
    model = script(LOOKS + turn("propose_profile_change", "wave = 1", **CHANGE) + END)
    async with (
        opened(adaptation=ProfileChangeLimits(auto="weights")) as runtime,
        running(runtime, model, "implement it", policy="all") as (session_id, work),
    ):
        shown = await pending(runtime)
        assert ["guide reads without asking", "file:guide/g1.md (at most 32 jobs a wave)"] in list(
            map(list, shown.body["fields"])
        )
        assert jobs_by_wave(runtime, session_id) == [[]]
        await runtime.approve(shown.proposal_id, shown_digest=shown.shown_digest)
        assert (await work).result["status"] == "done"
        assert jobs_by_wave(runtime, session_id) == [[], [("file:guide/g1.md", "done")], []]
        (change,) = await runtime.store.read(profile_changes.select_changes)
        assert change.approved_by == "person"
