"""``cockpit profile`` and ``cockpit tokens`` as processes: codes, exits, and who may."""

from __future__ import annotations

import json

import pytest
from commands.cli_world import Project

pytestmark = pytest.mark.slow

CHANGE = {
    "base_profile_version": 1,
    "effective_waves": 3,
    "rules": [{"rule_id": "search", "priority_weight": 2.5}],
    "reason": "a storm",
}


@pytest.fixture
def run(project, tmp_path):
    """Runs ``cockpit`` in the weather project; names in capitals are variables."""
    at = Project(project, tmp_path / "config")

    def runner(*words, expect=0, stdin="", **variables):
        at.extra = variables
        return at.run(*words, expect=expect, stdin=stdin)

    return runner


@pytest.fixture
def propose(run, tmp_path):
    """Proposes a change; returns what it printed as JSON."""

    def proposer(change=None, *, text=None, expect=0, token="", **fields):
        path = tmp_path / "change.json"
        path.write_text(text if text is not None else json.dumps((change or CHANGE) | fields))
        secret = {"COCKPIT_TOKEN": token} if token else {}
        done = run("profile", "propose", str(path), "--json", expect=expect, **secret)
        return json.loads(done.stdout)

    return proposer


def shown(run, *words):
    return json.loads(run("profile", "current", "--json", *words).stdout)


def test_proposed_approved_shown_and_rolled_back(run, propose):
    profile = shown(run)
    assert (profile["total_token_budget"], profile["horizon_waves"]) == (150_000, 0)
    made = propose()
    assert (made["status"], made["code"]) == ("pending", None)
    assert all(entry["ok"] for entry in made["verdict"])
    waiting = json.loads(run("proposals", "--json").stdout)
    assert [(one["proposal_id"], one["kind"]) for one in waiting] == [
        (made["proposal_id"], "profile")
    ]
    text = run("proposals", made["proposal_id"]).stdout
    assert "search: priority 0.9" in text
    assert "outside any session" in text

    assert shown(run)["version"] == 1
    run("proposals", "approve", made["proposal_id"])
    done = json.loads(run("proposals", made["proposal_id"], "--json").stdout)
    assert done["status"] == "approved"
    now = shown(run)
    assert (now["version"], now["horizon_waves"]) == (2, 3)
    assert now["adaptation"]["waves_left"] == 3
    assert "3 of 3 waves left" in run("profile", "current").stdout

    found = json.loads(run("profile", "2", "--since", "1", "--json").stdout)
    assert [entry["rule_id"] for entry in found["rules"]] == ["search"]
    assert "search priority_weight: 0.9 → 2.5" in run("profile", "2", "--since", "1").stdout

    back = json.loads(run("profile", "rollback", "--json").stdout)
    assert back["version"] == 3
    assert "The versions are the same" in run("profile", "3", "--since", "1").stdout
    history = json.loads(run("profile", "--json").stdout)
    assert [one["version"] for one in history] == [1, 2, 3]
    run("debug", "journal")


def test_a_refusal_prints_its_code_and_ends_with_three(run, propose, tmp_path):
    over = {"total_token_budget": 150_001}
    before = shown(run)
    told = propose(**over, expect=3)
    assert (told["status"], told["code"]) == ("rejected", "over_budget")
    path = tmp_path / "again.json"
    path.write_text(json.dumps(CHANGE | over))
    done = run("profile", "propose", str(path), expect=3)
    assert "over_budget" in done.stdout
    assert "over_budget" in done.stderr
    assert shown(run)["digest"] == before["digest"]
    assert json.loads(run("proposals", "--json").stdout) == []


def issued(run, *words):
    return run("tokens", "issue", *words).stdout.strip()


def test_an_agents_token_proposes_and_never_approves(run, propose):
    scopes = ("--scope", "orientation.read", "--scope", "orientation.propose")
    token = issued(run, "--namespace", "agent/s-9", *scopes)
    made = propose(token=token)
    for words in (
        ("proposals", "approve", made["proposal_id"]),
        ("proposals", "reject", made["proposal_id"]),
        ("profile", "rollback"),
    ):
        run(*words, expect=3, COCKPIT_TOKEN=token)
    assert propose(token=token, namespace="main", expect=3)["code"] == "namespace_spoofed"
    outside = propose(token=token, total_token_budget=140_000, expect=3)
    assert outside["code"] == "outside_envelope"
    assert shown(run)["version"] == 1
    run("proposals", "approve", made["proposal_id"])
    assert shown(run)["version"] == 2


def test_a_project_may_only_tighten(run, project):
    config = project / ".cockpit" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text('[profile]\nauto = "weights"\n')
    assert "config.toml" in run("profile", "current", expect=2).stderr
    config.write_text('[profile]\nauto = "never"\n')
    told = run(
        "profile", "propose", "-", expect=3, stdin=json.dumps(CHANGE | {"effective_waves": 51})
    )
    assert "horizon_too_long" in told.stdout
