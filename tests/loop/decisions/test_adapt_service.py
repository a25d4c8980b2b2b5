"""Profile changes: proposed, decided once, applied, counted and ended, whoever acts at once."""

from __future__ import annotations

import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from adapt_world import Desk
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from cockpit.access.principals import PERSON, Caller, agent
from cockpit.access.token_scopes import ADMIN, APPROVE, PROPOSE, NotAllowed
from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import AlreadyDecided, CockpitError, IllegalTransition, NotFound, Stale
from cockpit.learn.decision_quality import VersionMeasure
from cockpit.loop.decisions.decision_outcome import ProfileChangeRefused
from cockpit.loop.decisions.profile_change_decision import Origin
from cockpit.loop.views.event_text import event_line
from cockpit.orient.profile_changes.profile_json import import_profile, profile_document
from cockpit.store.context import profile_changes, profiles
from cockpit.store.db.database import Store
from cockpit.store.journal import journal, verify_chain
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow

AGENT = agent("s-1")


def test_what_was_not_shown_is_not_approved(at_desk):
    desk = at_desk()
    made = desk.propose(desk.payload())
    with pytest.raises(Stale):
        desk.decide(made.proposal_id, shown_digest="0" * 64)
    assert desk.versions() == [1]
    shown = desk.store.read_now(lambda c: proposals.load(c, made.proposal_id))
    assert desk.decide(made.proposal_id, shown_digest=shown.shown_digest).version == 2


def test_what_is_refused_is_kept_with_its_code_and_changes_nothing(at_desk):
    desk = at_desk()
    before = desk.profile
    made = desk.propose(desk.payload(rules=[{"rule_id": "task", "enabled": False}]))
    assert (made.status, [one.code for one in made.refusals]) == ("rejected", ["critical_source"])
    with pytest.raises(ProfileChangeRefused) as refused:
        made.raise_if_refused()
    assert refused.value.code == "critical_source"
    broken = desk.propose("{")
    assert [one.code for one in broken.refusals] == ["malformed"]
    assert desk.codes() == ["critical_source", "malformed"]
    assert desk.profile == before
    assert desk.store.read_now(proposals.select_pending) == []
    again = desk.propose("{}", proposal_id=made.proposal_id)
    assert [one.code for one in again.refusals] == ["critical_source"]
    with pytest.raises(AlreadyDecided):
        desk.decide(made.proposal_id)


def test_other_programs_read_changes_from_the_view(at_desk):
    desk = at_desk()
    desk.propose("{")
    desk.decide(desk.propose(desk.payload()).proposal_id, "rejected", reason="not now")
    desk.decide(desk.propose(desk.payload()).proposal_id)
    with closing(sqlite3.connect(desk.store.path)) as connection:
        rows = connection.execute(
            "SELECT proposal_id, requested_by, base_profile_id, base_profile_version, effective_waves,"
            " proposal_json, status, rejection_code, rejection_reason, approved_by, applied_version,"
            " created_at, decided_at FROM profile_change_proposals"
        ).fetchall()
    ours = desk.store.read_now(profile_changes.select_changes)
    assert sorted(rows) == sorted(astuple(each) for each in ours)
    assert len(rows) == 3


def test_a_secret_in_a_payload_is_stored_nowhere(at_desk, tmp_path):
    desk = at_desk()
    secret = "ckp_" + "a1B2" * 10
    made = desk.propose(desk.payload(reason=f"use {secret}"))
    assert made.status == "pending"
    sneaky = [{"rule_id": "search", "predicate": {"ref_prefix": secret}}]
    assert [one.code for one in desk.propose(desk.payload(rules=sneaky)).refusals] == ["malformed"]
    desk.store.close()
    for path in tmp_path.iterdir():
        assert secret.encode() not in path.read_bytes()


def test_one_adaptation_runs_at_a_time(at_desk):
    desk = at_desk()
    first, second = (
        desk.propose(desk.payload(rules=[{"rule_id": name, "priority_weight": 2}]))
        for name in ("search", "tree")
    )
    desk.decide(first.proposal_id)
    while_it_runs = desk.propose(desk.payload(rules=[{"rule_id": "log", "priority_weight": 2}]))
    assert [one.code for one in while_it_runs.refusals] == ["adaptation_running"]
    late = desk.decide(second.proposal_id)
    assert [one.code for one in late.refusals] == ["stale_base", "adaptation_running"]
    assert desk.versions() == [1, 2]
    shown = desk.store.read_now(lambda c: proposals.load(c, second.proposal_id))
    assert (shown.status, shown.decided_by) == ("rejected", "guard")


def test_nobody_decides_in_time(at_desk, clock):
    desk = at_desk()
    made = desk.propose(desk.payload(), deadline_s=60)
    clock.advance(61)
    late = desk.decide(made.proposal_id)
    assert late.status == "expired"
    with pytest.raises(Stale):
        late.raise_if_refused()
    kept = desk.store.read_now(lambda c: profile_changes.load(c, made.proposal_id))
    shown = desk.store.read_now(lambda c: proposals.load(c, made.proposal_id))
    assert (kept.status, shown.status) == ("expired", "expired")
    assert desk.versions() == [1]
    assert desk.actions("proposal.")[-1] == "proposal.decided"


def test_rolled_back_by_hand_at_any_time(at_desk):
    desk = at_desk()
    with pytest.raises(IllegalTransition):
        desk.roll_back()
    desk.decide(desk.propose(desk.payload()).proposal_id)
    desk.begin()
    back = desk.roll_back()
    assert (back.version, desk.running()) == (3, None)
    assert desk.begin() == desk.begin()
    assert desk.actions()[-1] == "orientation.profile.ended"
    with pytest.raises(IllegalTransition):
        desk.roll_back()
    assert desk.roll_back(to=2).version == 4
    with pytest.raises(NotFound):
        desk.roll_back(to=9)
    assert desk.versions() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("quality", "how", "same_as"),
    [
        ({1: (0.5, 4), 2: (0.9, 4)}, "promoted", 2),
        ({1: (0.9, 4), 2: (0.5, 4)}, "reverted", 1),
        ({1: (0.5, 3), 2: (0.9, 4)}, "reverted", 1),
        ({1: (0.5, 4), 2: (0.9, 3)}, "reverted", 1),
        ({2: (0.9, 4)}, "reverted", 1),
        ({}, "reverted", 1),
    ],
)
def test_what_was_better_stays_when_policy_says_so(at_desk, quality, how, same_as):
    desk = at_desk(at_horizon="promote_if_better", min_judged_waves=4)
    desk.decide(desk.propose(desk.payload(effective_waves=1)).proposal_id)

    def measure(connection, profile_id, version):
        return VersionMeasure(*quality[version]) if version in quality else None

    assert desk.begin(measure).version == 2
    assert desk.begin(measure).version == 3
    found = desk.store.read_now(lambda c: profiles.select_versions(c, desk.name))
    assert found[2].digest == found[same_as - 1].digest
    assert (found[2].duration_waves, desk.actions()[-1]) == (0, "orientation.profile.ended")
    line = event_line(desk.store.read_now(journal.rows)[-1].detail)
    end = "kept" if how == "promoted" else "reverted"
    assert line is not None and line.text.startswith(f"temporary profile change {end}: ")
    assert (
        f"{quality[1][0]:.2f} → {quality[2][0]:.2f}" if len(quality) > 1 else "too few"
    ) in line.text
    # It is the base of what comes next, and does not end again.
    assert desk.begin(measure).version == 3
    assert desk.propose(desk.payload(rules=[{"rule_id": "log", "priority_weight": 2}])).status == (
        "pending"
    )


class TestWhoMay:
    """Scopes, limits, and who calls."""

    def test_without_the_scope_nothing_is_proposed(self, at_desk):
        desk = at_desk()
        for scopes in (frozenset(), frozenset({APPROVE, ADMIN})):
            with pytest.raises(NotAllowed) as refused:
                desk.propose(desk.payload(), Caller("ci", scopes))
            assert refused.value.code == "not_allowed"
        assert desk.store.read_now(profile_changes.select_changes) == []

    def test_a_change_for_good_needs_the_administrator(self, at_desk):
        desk = at_desk()
        other = profile_document(desk.profile) | {"total_token_budget": 140_000}
        change = import_profile(canonical_json(other), desk.profile, waves=0, reason="smaller")
        made = desk.propose(change)
        with pytest.raises(NotAllowed):
            desk.decide(made.proposal_id, caller=Caller("ci", frozenset({APPROVE})))
        assert desk.decide(made.proposal_id).version == 2
        assert [desk.begin().version for _ in range(3)] == [2, 2, 2]
        assert desk.running() is None

    @pytest.mark.parametrize(
        ("auto", "policy", "payload", "status"),
        [
            ("never", "ask", {}, "pending"),
            ("never", "reads", {}, "pending"),
            ("weights", "ask", {}, "approved"),
            ("weights", "ask", {"bands": {"exploration": {"max_tokens": 26_000}}}, "pending"),
            ("never", "all", {"bands": {"exploration": {"max_tokens": 26_000}}}, "approved"),
            ("weights", "all", {"rules": [{"rule_id": "task", "enabled": False}]}, "rejected"),
        ],
    )
    def test_what_passes_by_policy(self, at_desk, auto, policy, payload, status):
        desk = at_desk(auto=auto)
        made = desk.propose(desk.payload(**payload), AGENT, origin=Origin(policy=policy))
        assert made.status == status
        assert desk.propose(desk.payload(), AGENT, proposal_id=made.proposal_id).status == status

    @pytest.mark.parametrize("caller", [PERSON, Caller("ci", frozenset({PROPOSE}))])
    def test_policy_is_for_agents_alone(self, at_desk, caller):
        desk = at_desk(auto="weights")
        assert desk.propose(desk.payload(), caller).status == "pending"


STEP = st.one_of(
    st.tuples(st.just("propose"), st.sampled_from(["search", "tree", "log"]), st.integers(0, 5)),
    st.tuples(st.just("hostile"), st.sampled_from(["task", "tools"]), st.integers(0, 5)),
    st.tuples(st.sampled_from(["approved", "rejected", "discussed"]), st.integers(0, 9)),
    st.tuples(st.just("begin")),
    st.tuples(st.just("roll_back")),
)


@pytest.mark.search
@settings(
    max_examples=examples(8),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(STEP, max_size=24))
def test_whatever_happens_versions_grow_and_decisions_stand(tmp_path_factory, steps):
    """Monotonic versions, single decisions, bounds never widened."""
    from adapt_world import desk as open_desk

    desk = open_desk(tmp_path_factory.mktemp("store") / "cockpit.db")
    made, decided = [], {}
    waves = 0
    try:
        for kind, *rest in steps:
            if kind in ("propose", "hostile"):
                fields = {"priority_weight": rest[1] / 2, "enabled": kind == "propose"}
                payload = desk.payload(rules=[{"rule_id": rest[0], **fields}])
                made.append(desk.propose(payload).proposal_id)
            elif kind == "begin":
                pinned = desk.begin()
                waves += 1
                assert pinned.version == desk.profile.version
            elif kind == "roll_back":
                try:
                    desk.roll_back()
                except IllegalTransition:
                    assert desk.running() is None
            elif made:
                chosen = made[rest[0] % len(made)]
                try:
                    desk.decide(chosen, kind)
                except AlreadyDecided:
                    assert chosen in decided
                else:
                    assert chosen not in decided
            for change in desk.store.read_now(profile_changes.select_changes):
                if change.status != "pending":
                    assert decided.setdefault(change.proposal_id, change) == change
            versions = desk.versions()
            assert versions == list(range(1, len(versions) + 1))
            found = desk.store.read_now(lambda c: profiles.select_versions(c, desk.name))
            assert [one.status for one in found].count("active") == 1
            shipped = {band.name: band.min_tokens for band in found[0].bands}
            for one in found:
                assert one.total_token_budget <= found[0].total_token_budget
                assert all(band.min_tokens >= shipped[band.name] for band in one.bands)
                on = {rule.rule_id for rule in one.rules if rule.enabled}
                assert {"task", "tools", "person"} <= on
            running = desk.running()
            assert running is None or 0 <= running.waves_begun <= running.duration_waves
        assert desk.store.read_now(verify_chain.verify).ok
        payloads = [
            json.loads(c.payload) for c in desk.store.read_now(profile_changes.select_changes)
        ]
        assert len(payloads) == len(made)
    finally:
        desk.store.close()


@pytest.fixture
def desk(at_desk):
    return at_desk()


def race(desk: Desk, *verbs: str, proposal: str = "") -> list[str]:
    """Let each verb act over a connection of its own, all at once; returns how each went."""
    start = threading.Barrier(len(verbs))

    def act(verb: str) -> str:
        with Store.open(desk.store.path) as store:
            own = Desk(store, desk.settings)
            start.wait(60)
            try:
                if verb == "begin":
                    return str(own.begin().version)
                if verb == "roll back":
                    return str(own.roll_back().version)
                return own.decide(proposal, verb).status
            except CockpitError as error:
                return error.code

    with ThreadPoolExecutor(len(verbs)) as pool:
        return list(pool.map(act, verbs))


def test_a_temporary_change_ends_once_however_it_ends(desk):
    desk.decide(desk.propose(desk.payload(effective_waves=1)).proposal_id)
    desk.begin()
    assert "illegal_transition" in race(desk, "begin", "roll back", "begin", "roll back")
    assert desk.versions() == [1, 2, 3]
    ended = [action for action in desk.actions() if action.endswith("profile.ended")]
    assert len(ended) == 1
