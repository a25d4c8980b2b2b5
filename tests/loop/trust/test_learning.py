"""Rules come of the user's own decisions, pass exactly those requests, and end with one pushback."""

from __future__ import annotations

import pytest
from loop.trust.trust_world import TrustWorld, passed

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import NotAllowed
from cockpit.store.journal.details.trust import TrustChanged, TrustUsed

pytestmark = pytest.mark.slow


def changes(trust: TrustWorld, status: str):
    rows = trust.rows("trust.changed")
    return [row for row in rows if row.raw_detail()["status"] == status]


def read_tests(trust: TrustWorld):
    return lambda session_id, number: trust.read(session_id, f"file:tests/test_{number}.py")


def test_enough_approvals_are_offered_and_an_accepted_rule_lets_pass(trust):
    trust.learn(read_tests(trust))
    (rule_id,) = trust.offers()
    (offered,) = changes(trust, "offered")
    assert offered.raw_detail()["rule_id"] == rule_id
    assert offered.session_id, "the conversation says it"
    later = trust.begin()
    assert not passed(trust.read(later, "file:tests/test_new.py")), "an offer lets nothing pass"
    rule = trust.accept(rule_id)
    assert rule.shape.describe() == "read file tests/*.py"
    (accepted,) = changes(trust, "accepted")
    assert accepted.actor == "person"
    assert len(accepted.read(TrustChanged).evidence) == 4
    proposal = trust.read(later, "file:tests/test_newer.py")
    assert passed(proposal)
    (used,) = trust.rows("trust.used")
    detail = used.read(TrustUsed)
    assert (detail.proposal_id, detail.uses) == (proposal.proposal_id, 1)
    assert detail.what == "file:tests/test_newer.py"
    assert trust.offers() == []


def test_sessions_that_ask_ask_and_wider_policies_use_rules(trust):
    trust.learn_rule(
        lambda session_id, number: trust.run(session_id, "pytest", "-q", f"tests/test_{number}.py")
    )
    command = ("pytest", "-q", "tests/test_z.py")
    assert not passed(trust.run(trust.begin(policy="ask"), *command))
    assert passed(trust.run(trust.begin(policy="trusted"), *command))
    assert passed(trust.run(trust.begin(policy="reads"), *command))
    assert trust.run(trust.begin(policy="all"), *command).decided_by == "policy:all"


def test_high_risk_never_passes_whatever_it_was_when_it_was_learned(trust):
    def push(session_id: str, number: int):
        return trust.run(session_id, "git", "push", risk="high")

    trust.learn(push)
    assert trust.offers() == []
    for _ in range(3):  # the same command counts once in a session
        trust.learn(lambda session_id, number: trust.run(session_id, "make", "check"))
    rule = trust.accept(trust.offers()[0])
    assert rule.risk == "medium"
    session_id = trust.begin()
    assert passed(trust.run(session_id, "make", "check"))
    assert not passed(trust.run(session_id, "make", "check", risk="high")), "judged anew"


@pytest.mark.parametrize(
    ("decision", "options"),
    [
        ("rejected", {}),
        ("discussed", {"reason": "why these?"}),
        ("discussed", {"reason": "edited by the person"}),
        ("approved", {"narrowed": ["file:src/a.py"]}),
    ],
)
def test_one_pushback_suspends(trust, decision, options):
    (rule,) = trust.learn_rule(read_tests(trust))
    asked = trust.read(trust.begin(), "file:tests/test_a.py", "file:src/a.py")
    trust.decide(asked, decision, **options)
    assert not passed(trust.read(trust.begin(), "file:tests/test_b.py"))
    (row,) = [*changes(trust, "suspended"), *changes(trust, "revoked")]
    assert row.read(TrustChanged).proposal_id == asked.proposal_id
    (listed,) = trust.rules().rules
    assert (listed.rule_id, listed.status) == (rule.rule_id, "suspended")
    assert trust.offers() == [], "what was approved before the pushback no longer counts"
    trust.learn(read_tests(trust))
    assert trust.offers() == [rule.rule_id]


def test_a_rule_expires_and_is_revoked_and_only_the_user_begins_it_again(trust):
    (rule,) = trust.learn_rule(read_tests(trust))
    session_id = trust.begin()
    trust.revoke(rule.rule_id)
    assert not passed(trust.read(session_id, "file:tests/a.py"))
    assert trust.accept(rule.rule_id).status == "active"
    assert passed(trust.read(session_id, "file:tests/b.py"))
    trust.store.clock.advance(91 * 86_400)  # type: ignore[attr-defined]
    assert not passed(trust.read(session_id, "file:tests/c.py"))
    assert [each.status for each in trust.rules().rules] == ["expired"]
    trust.store.clock.advance(-91 * 86_400)  # type: ignore[attr-defined]
    assert not passed(trust.read(session_id, "file:tests/d.py")), "a clock set back revives none"
    trust.store.clock.advance(91 * 86_400)  # type: ignore[attr-defined]
    for namespace in ("agent:claude", "service:ci", "engine"):
        with pytest.raises(NotAllowed):
            trust.accept(rule.rule_id, Caller(namespace, frozenset()))


def test_floods_policies_and_rules_are_no_evidence(trust):
    session_id = trust.begin(policy="ask")
    for number in range(30):  # many requests of one session
        trust.decide(trust.read(session_id, f"file:tests/test_{number}.py"))
    assert trust.offers() == []
    for number in range(30):  # and the same request again and again
        trust.decide(trust.read(trust.begin(policy="ask"), "file:docs/a.md"))
        if number == 1:
            break
    assert trust.offers() == []
    for number in range(5):
        assert trust.read(trust.begin(policy="reads"), f"file:src/{number}.py").status == "approved"
    assert trust.offers() == []
