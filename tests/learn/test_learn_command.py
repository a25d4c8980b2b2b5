"""``cockpit feedback`` after a real session whose packet could not hold what it read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands.cli_world import Project, git
from loop.scenario import ask, finish

pytestmark = pytest.mark.slow

LOOKS = ask("file:table.txt", purpose="look", question="what is in it?")
ASKS_TWICE = LOOKS + finish("wave_from = 4", summary="too large")


def asking(place: Path, auto: str = "never") -> Project:
    """A finished session of four waves that asked for a file in the first three that has no room."""
    root = place / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    rows = "".join(f"row {number} of the table\n" for number in range(2_000))
    (root / "table.txt").write_text(rows, encoding="utf-8")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "A table")
    project = Project(
        root, place / "config", {"ORIENTATION_TOKEN_BUDGET": "10000", "COCKPIT_PROFILE_AUTO": auto}
    )
    project.run(
        "run", "look at the table", "--model", project.script(ASKS_TWICE), "--approve", "reads"
    )
    return project


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """For tests that leave its feedback as it is."""
    return asking(tmp_path_factory.mktemp("asked"))


def test_a_shortened_fact_that_is_asked_for_again_is_a_missed_signal(asked):
    listed = asked.json("feedback", "--json")
    assert [row["ordinal"] for row in listed] == [4, 3, 2, 1]
    assert [len(row["missed_signals"]) for row in listed] == [0, 1, 1, 0]
    shown = asked.json("feedback", "last:2", "--json")
    (signal,) = shown["missed_signals"]
    assert (signal["source_ref"], signal["held"]) == ("file:table.txt", "outline")
    assert [len(row["missed_signals"]) for row in shown["history"]] == [0, 1]
    assert shown["decision_quality_score"] < listed[0]["decision_quality_score"]
    assert "file:table.txt" in asked.run("feedback", "last:2").stdout
    rows = asked.run("journal", "--all", "--json").stdout.splitlines()
    journalled = [row for row in map(json.loads, rows) if row["action"] == "feedback.recorded"]
    assert len(journalled) == 6
    assert asked.json("debug", "journal", "--json")["ok"]


def find_changes(project):
    rows = project.json("proposals", "--all", "--json")
    named = [row["proposal_id"] for row in rows if row["kind"] == "profile"]
    return [project.json("proposals", each, "--json") for each in reversed(named)]


def test_two_waves_that_missed_context_bring_the_suggestion_in_the_session(tmp_path, asked):
    for project, expected in ((asking(tmp_path, "suggested"), "approved"), (asked, "pending")):
        change = find_changes(project)[-1]
        assert (change["status"], change["body"]["effective_waves"]) == (expected, 10)
        assert "Asked for although it had been dropped: file in 2" in str(change)
        shown = project.run("sessions", "last").stdout
        assert ("approved by policy:suggested" in shown) == (expected == "approved")


def test_a_suggestion_is_a_change_that_profile_propose_takes(asked):
    suggested = asked.run("profile", "propose", "--suggested", "--dry-run")
    payload = json.loads(suggested.stdout)
    assert [rule["rule_id"] for rule in payload["rules"]] == ["file"]
    rules = {rule["rule_id"]: rule for rule in asked.json("profile", "current", "--json")["rules"]}
    assert payload["rules"][0]["priority_weight"] == rules["file"]["priority_weight"] * 1.25
    (asked.root / "change.json").write_text(suggested.stdout, encoding="utf-8")
    for what in ("change.json", "--suggested"):
        assert asked.json("profile", "propose", what, "--json")["status"] == "pending"


def test_what_was_measured_in_vain_is_not_suggested_again(tmp_path: Path) -> None:
    """Eight files in turn, of which five have room: more weight for all of them brings nothing."""
    (root := tmp_path / "project").mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    for number in range(8):
        lines = (f"def f{number}_{place}():\n    return {place * 7919}\n" for place in range(200))
        (root / f"m{number}.py").write_text("".join(lines), encoding="utf-8")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "Eight modules")
    turns = [ask(*(f"file:m{number}.py" for number in range(8)))]
    for wave in range(2, 20):
        pair = (f"file:m{3 * wave % 8}.py", f"file:m{(3 * wave + 1) % 8}.py")
        turns.append(ask(*pair, when=f"wave = {wave}"))
    script = "".join(turns) + finish("wave_from = 20")
    settings = {"ORIENTATION_TOKEN_BUDGET": "16000", "COCKPIT_PROFILE_AUTO": "suggested"}
    project = Project(root, tmp_path / "config", settings)
    project.run("run", "look", "--model", project.script(script), "--approve", "reads")
    rows = map(json.loads, project.run("journal", "--all", "--json").stdout.splitlines())
    ended = [row for row in rows if row["action"] == "orientation.profile.ended"]
    assert [row["detail"]["quality"] <= row["detail"]["base_quality"] for row in ended] == [True]
    missed = [row for row in project.json("feedback", "--json") if row["missed_signals"]]
    assert sum(row["profile_version"] == 3 for row in missed) >= 2, "it would suggest it"
    assert len(find_changes(project)) == 1
    shown = project.run("sessions", "last").stdout
    assert "temporary profile change reverted: decision quality" in shown


def test_a_persons_word_counts_for_the_wave_that_is_named(tmp_path):
    asked = asking(tmp_path)
    wave = asked.json("feedback", "--json")[0]["wave_id"]
    for named in ("last", "last:4", wave):
        words = f"it gave up, says {named}"
        told = asked.run("feedback", "give", named, "bad", *words.split())
        assert told.stdout.startswith(f"{wave}: bad")
        shown = asked.json("feedback", "last", "--json")
        assert shown["operator"] == {"verdict": "bad", "words": words, "by": "person"}
        assert (shown["regret"], shown["regrets"]) == (True, ["operator"])
        assert shown["decision_quality_score"] <= 0.25
        assert f"bad by person: {words}" in asked.run("feedback", "last").stdout


def test_wrong_use_and_a_service_without_the_scope_change_nothing(asked):
    for words in (("last", "fine"), ("last:9", "good"), ("s-none:1", "good"), ("nowhere", "good")):
        asked.run("feedback", "give", *words, expect=2)
    asked.run("feedback", "give", "last", expect=2)
    scope = ("--namespace", "ci", "--scope", "orientation.propose")
    secret = asked.json("tokens", "issue", *scope, "--json")["token"]
    asked.extra["COCKPIT_TOKEN"] = secret
    refused = asked.run("feedback", "give", "last", "good", expect=3)
    assert "orientation.approve" in refused.stderr
    asked.extra["COCKPIT_TOKEN"] = "x" * 40
    asked.run("feedback", "give", "last", "good", expect=3)
    del asked.extra["COCKPIT_TOKEN"]
    assert asked.json("feedback", "last", "--json")["operator"] is None


def test_before_any_session_there_is_nothing_and_nothing_is_made(tmp_path):
    root = tmp_path / "empty"
    root.mkdir()
    git(root, "init", "--quiet")
    project = Project(root, tmp_path / "config")
    assert project.json("feedback", "--json") == []
    project.run("feedback", "give", "last", "good", expect=2)
    assert not (root / ".cockpit").exists()
