"""``cockpit trust rules``: a rule is offered, read, accepted with a second key, and ended."""

from __future__ import annotations

import pytest
from commands.cli_world import Project
from loop.trust.trust_world import TrustWorld

from cockpit.core.clock import RandomIds, SystemClock
from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store

pytestmark = pytest.mark.slow


def learn(project: Project) -> None:
    """Approve reads of test files in four sessions of the project's own store."""
    place = locate_project(project.root)
    place.prepare()
    with Store.open(place.database, SystemClock(), RandomIds()) as store:
        world = TrustWorld(store, project.root)
        for _ in range(2):
            world.learn(lambda session, number: world.read(session, f"file:tests/test_{number}.py"))


def test_a_rule_from_its_offer_to_its_revocation(project: Project) -> None:
    learn(project)
    (offer,) = project.json("trust", "rules", "--offers", "--json")
    rule_id = offer["rule_id"]
    assert offer["says"] == "read file tests/*.py"
    shown = project.run("trust", "rules", rule_id).stdout
    assert "evidence: what" in shown and "file:tests/test_1.py" in shown
    refused = project.run("trust", "rules", "accept", rule_id, expect=2)
    assert "nothing was done" in refused.stderr, "Enter is not a second key"
    assert "is accepted until" in project.run("trust", "rules", "accept", rule_id, "--yes").stderr
    (state,) = project.json("debug", "show", "trust", "--json")
    assert (state["task_type"], state["orient"]["state"]) == ("review_pr", "trusted")
    project.run("trust", "rules", "revoke", rule_id, "--suspend", "--reason", "too wide")
    (rule,) = project.json("trust", "rules", "--json")
    assert (rule["status"], rule["why"]) == ("suspended", "too wide")
    project.run("trust", "rules", "revoke", rule_id)
    assert "No rules yet" in project.run("trust", "rules").stderr
    assert rule_id in project.run("trust", "rules", "--all").stdout
    assert project.run("debug", "journal").returncode == 0


def test_the_other_meaning_of_trust_is_reached_as_before(project: Project) -> None:
    assert project.run("trust", "--show").stdout == project.run("trust", "--show").stdout
    assert project.run("trust", str(project.root), "--show")


def test_a_token_decides_no_rule(project: Project) -> None:
    learn(project)
    (offer,) = project.json("trust", "rules", "--offers", "--json")
    issued = project.json(
        *("tokens", "issue", "--namespace", "agent/s-1", "--scope", "orientation.approve", "--json")
    )
    project.extra["COCKPIT_TOKEN"] = issued["token"]
    for words in (("accept", "--yes"), ("revoke", "--suspend"), ("revoke",)):
        done = project.run("trust", "rules", words[0], offer["rule_id"], *words[1:], expect=3)
        assert "may not" in done.stderr
