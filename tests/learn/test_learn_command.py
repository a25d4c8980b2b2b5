"""``cockpit feedback`` after a real session whose packet could not hold what it read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from commands.cli_world import Project, git

pytestmark = pytest.mark.slow

ASKS_TWICE = """
[[turn]]
text = "I need the table."
[[turn.call]]
name = "request_context"
arguments = { purpose = "look", question = "what is in it?", scope = ["file:table.txt"] }
[[turn]]
when = { wave_from = 2 }
text = "It is not there; once more."
[[turn.call]]
name = "request_context"
arguments = { purpose = "look", question = "what is in it?", scope = ["file:table.txt"] }
[[turn]]
when = { wave_from = 4 }
text = "I give up."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "too large" }
"""


def asking(place: Path) -> Project:
    """A finished session of four waves that asked for a large file in the first three."""
    root = place / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    rows = "".join(f"row {number} of the table\n" for number in range(9_000))
    (root / "table.txt").write_text(rows, encoding="utf-8")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "A table")
    project = Project(root, place / "config", {"ORIENTATION_TOKEN_BUDGET": "40000"})
    project.run(
        "run", "look at the table", "--model", project.script(ASKS_TWICE), "--approve", "all"
    )
    return project


@pytest.fixture
def asked(tmp_path: Path) -> Project:
    return asking(tmp_path)


@pytest.fixture(scope="module")
def asked_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """For tests that leave it as it is."""
    return asking(tmp_path_factory.mktemp("asked"))


def test_what_was_shortened_and_asked_for_again_is_a_missed_signal(asked_once):
    asked = asked_once
    listed = asked.json("feedback", "list", "--json")
    assert [row["ordinal"] for row in listed] == [4, 3, 2, 1]
    assert [len(row["missed_signals"]) for row in listed] == [0, 1, 1, 0]
    shown = asked.json("feedback", "show", "last:2", "--json")
    (signal,) = shown["missed_signals"]
    assert (signal["source_ref"], signal["held"]) == ("file:table.txt", "outline")
    assert [len(row["missed_signals"]) for row in shown["history"]] == [0, 1]
    assert shown["decision_quality_score"] < listed[0]["decision_quality_score"]
    assert "file:table.txt" in asked.run("feedback", "show", "last:2").stdout
    rows = asked.run("journal", "export").stdout.splitlines()
    journalled = [row for row in map(json.loads, rows) if row["action"] == "feedback.recorded"]
    assert len(journalled) == 6
    assert asked.json("journal", "verify", "--json")["ok"]


def test_a_suggestion_is_a_change_that_profile_propose_takes(asked):
    suggested = asked.run("feedback", "suggest")
    payload = json.loads(suggested.stdout)
    assert [rule["rule_id"] for rule in payload["rules"]] == ["file"]
    before = next(
        rule
        for rule in asked.json("profile", "show", "--json")["rules"]
        if rule["rule_id"] == "file"
    )
    assert payload["rules"][0]["priority_weight"] == before["priority_weight"] * 1.25
    change = asked.root / "change.json"
    change.write_text(suggested.stdout, encoding="utf-8")
    made = asked.json("profile", "propose", "change.json", "--json")
    assert made["status"] == "pending"


def test_a_persons_word_counts_for_the_wave_that_is_named(asked):
    wave = asked.json("feedback", "list", "--json")[0]["wave_id"]
    for named in ("last", "last:4", wave):
        words = f"it gave up, says {named}"
        told = asked.run("feedback", named, "bad", *words.split())
        assert told.stdout.startswith(f"{wave}: bad")
        shown = asked.json("feedback", "show", "--json")
        assert shown["operator"] == {"verdict": "bad", "words": words, "by": "person"}
        assert (shown["regret"], shown["regrets"]) == (True, ["operator"])
        assert shown["decision_quality_score"] <= 0.25
        assert f"person says bad: {words}" in asked.run("feedback", "show").stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("last", "fine"), 2),
        (("last:9", "good"), 2),
        (("s-none:1", "good"), 2),
        (("nowhere", "good"), 2),
        (("last",), 2),
        (("last", "good", "--token", "x" * 40), 3),
    ],
)
def test_what_names_no_wave_or_no_verdict_changes_nothing(asked_once, words, code):
    asked_once.run("feedback", *words, expect=code)
    assert asked_once.json("feedback", "show", "--json")["operator"] is None


def test_who_may_not_approve_may_not_judge(asked_once):
    asked = asked_once
    made: subprocess.CompletedProcess[str] = asked.run(
        "tokens", "issue", "--namespace", "ci", "--scope", "orientation.propose", "--json"
    )
    secret = next(
        value for key, value in json.loads(made.stdout).items() if key in ("token", "secret")
    )
    refused = asked.run("feedback", "last", "good", "--token", secret, expect=3)
    assert "orientation.approve" in refused.stderr
    assert asked.json("feedback", "show", "--json")["operator"] is None


def test_before_any_session_there_is_nothing_and_nothing_is_made(tmp_path):
    root = tmp_path / "empty"
    root.mkdir()
    git(root, "init", "--quiet")
    project = Project(root, tmp_path / "config")
    assert project.json("feedback", "list", "--json") == []
    project.run("feedback", "last", "good", expect=2)
    assert not (root / ".cockpit").exists()


CLUMSY = """
[[turn]]
text = "I try."
[[turn.call]]
name = "no_such_tool"
arguments = {}
[[turn]]
when = { wave_from = 2 }
text = "Done."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "done" }
"""
DEFT = """
[[turn]]
text = "Done."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "done" }
"""


@pytest.mark.parametrize(
    ("before", "during", "how"),
    [(CLUMSY, DEFT, "promoted"), (DEFT, CLUMSY, "reverted"), (DEFT, DEFT, "reverted")],
)
def test_measured_quality_decides_at_the_horizon(tmp_path, before, during, how):
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet")
    policy = {"COCKPIT_AT_HORIZON": "promote_if_better", "COCKPIT_MIN_JUDGED_WAVES": "1"}
    project = Project(root, tmp_path / "config", policy)

    def run(scenario: str) -> None:
        project.run("run", "look around", "--model", project.script(scenario), "--approve", "all")

    run(before)
    payload = {
        "base_profile_version": 1,
        "effective_waves": 2 if during == CLUMSY else 1,
        "rules": [{"rule_id": "file", "priority_weight": 1.4}],
    }
    (root / "change.json").write_text(json.dumps(payload), encoding="utf-8")
    made = project.json("profile", "propose", "change.json", "--json")
    project.run("profile", "approve", made["proposal_id"])
    run(during)
    run(DEFT)
    rows = [json.loads(line) for line in project.run("journal", "export").stdout.splitlines()]
    (ended,) = [
        row
        for row in rows
        if row["action"] in ("orientation.profile.promoted", "orientation.profile.reverted")
    ]
    assert ended["action"] == f"orientation.profile.{how}"
    better = ended["detail"]["quality"] > ended["detail"]["base_quality"]
    assert better == (how == "promoted")
