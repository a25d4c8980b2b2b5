"""``cockpit run --agent`` as a person or a script runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from commands.cli_world import Project, git

pytestmark = pytest.mark.slow

AGENT = Path(__file__).with_name("scripted_agent.py")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root, config = tmp_path / "project", tmp_path / "config"
    root.mkdir()
    config.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "room.py").write_text("def area(): ...\n", encoding="utf-8")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "begin")
    made = Project(root, config)
    made.run("agents", "add", "mine", "--", sys.executable, str(AGENT))
    return made


def test_a_headless_session_tells_its_story_and_can_be_resumed(project: Project) -> None:
    told = project.run("run", "--agent", "mine", "everything please").stdout
    for words in ("plan: 1 of 2", "First I look.", "Read room.py · seen, not gated", "All seen."):
        assert words in told
    assert "took 1 turn; expected about 1" in told
    document = project.json(
        "run", "--agent", "mine", "--continue", "last", "answer more", "--output-format", "json"
    )
    assert document["status"] == "completed"
    (row,) = [row for row in project.json("sessions", "--json") if row]
    assert "mine" in json.dumps(row)
    by_id = project.run("run", "--continue", document["session_id"], "answer the third").stdout
    assert "You said: the third" in by_id


def test_the_change_of_a_worktree_is_decided_from_the_command_line(project: Project) -> None:
    project.run("run", "--agent", "mine", "--worktree", "do echo one > one.txt")
    (waits,) = project.json("proposals", "--json")
    name = waits["proposal_id"]
    assert (waits["agent"], waits["kind"]) == ("mine", "action")
    (tree,) = project.json("chain", "worktrees", "--json")
    assert (tree["proposal_id"], tree["status"]) == (name, "active")
    assert name in project.run("chain", "worktrees").stdout
    shown = project.run("proposals", name)
    assert "+one" in shown.stdout and "edit:" not in shown.stderr
    words = project.run("proposals", "discuss", name, "--words", "one.txt:1: say two").stderr
    project.run(*words.rpartition("cockpit ")[2].split())
    (waits,) = project.json("proposals", "--json")
    assert waits["revises"] == name
    asked = project.run("proposals", "reject", waits["proposal_id"]).stderr
    assert "Nothing is removed." in asked
    (drop,) = project.json("proposals", "--json")
    project.run("proposals", "approve", drop["proposal_id"], expect=3)
    assert Path(tree["path"]).is_dir()
    done = project.run(
        "proposals", "approve", drop["proposal_id"], "--shown", drop["shown_digest"]
    ).stderr
    assert "refs/cockpit/dropped/s-" in done and not Path(tree["path"]).exists()
    project.run("run", "--agent", "mine", "--worktree", "do echo two > two.txt")
    (waits,) = project.json("proposals", "--json")
    merged = project.run("proposals", "approve", waits["proposal_id"]).stderr
    assert "is merged into main as" in merged and (project.root / "two.txt").exists()
    (tree,) = project.json("chain", "worktrees", "--json")
    assert (tree["proposal_id"], tree["status"]) == (None, "merged")
    project.run("chain", "worktrees", "--clean")
    assert project.json("chain", "worktrees", "--json") == []


def test_wrong_words_are_answered_before_anything_starts(project: Project) -> None:
    for options in ((), ("--worktree",)):
        refused = project.run("run", "--agent", "nobody", *options, "hello", expect=2).stderr
        assert "There is no agent 'nobody'" in refused
    project.run("agents", "add", "gone", "--", "/no/such/program")
    refused = project.run("run", "--agent", "gone", "--worktree", "hello", expect=1).stderr
    assert "'/no/such/program' could not be started" in refused
    assert project.json("chain", "worktrees", "--json") == []
    assert project.json("sessions", "--json") == []
    both = project.run("run", "--continue", "last", "--checkout", "--agent", "mine", "x", expect=2)
    assert "stays where it began" in both.stderr
    model = project.run("run", "--agent", "mine", "--model", "large", "x", expect=2).stderr
    assert "--model is for the built-in agent" in model
    assert "Name one with --agent" in project.run("run", "--worktree", "x", expect=2).stderr


def test_limits_of_cost_and_tokens_are_kept_between_turns(project: Project) -> None:
    run = ("run", "--agent", "mine", "--output-format", "json")
    ended = project.json(*run, "--max-tokens", "1000", "spend 1500", expect=1)
    assert ended["result"]["status"] == "limit"
    assert "The limit of 1,000 tokens is reached (1,520 spent)." in ended["result"]["summary"]
    last = ("--continue", "last")
    # Nothing is sent to an agent that is over its limit; the message waits for a higher one.
    again = project.json(*run, *last, "--max-tokens", "1000", "answer two", expect=1)
    assert "(1,520 spent)" in again["result"]["summary"]
    # Without a price the limit ends the session after its first turn.
    unpriced = project.json(*run, "--max-cost", "1", "answer one", expect=1)
    assert "The limit of $1.00 cannot be kept" in unpriced["result"]["summary"]
    priced = project.json(*run, "--max-cost", "1", "everything please")
    assert priced["result"]["status"] == "done"


def test_a_limit_of_cost_ends_an_agent_while_it_works(project: Project) -> None:
    run = ("run", "--agent", "mine", "--output-format", "json", "--max-cost", "0.1", "costly")
    ended = project.json(*run, expect=1)
    assert ended["result"]["status"] == "limit"
    assert "The limit of $0.10 is reached ($0.25 spent)." in ended["result"]["summary"]
