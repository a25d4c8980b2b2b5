"""The registry of agents: what ships, what users add, and what ``cockpit agents`` says of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from commands.cli_world import Project

from cockpit.access import user_presence
from cockpit.agents.registry.known_agents import (
    AgentInvalid,
    load_agents,
    read_agent,
    recognise_agent,
)
from cockpit.commands.setup.agents import add_agent
from cockpit.core.errors import CockpitError

AGENT = Path(__file__).with_name("scripted_agent.py")


def test_every_agent_that_ships_says_how_it_starts_and_where_that_is_documented() -> None:
    registry = load_agents()
    assert registry.agents.keys() >= {"claude", "codex", "opencode", "vibe", "qwen", "copilot"}
    for agent in registry.agents.values():
        assert agent.docs.startswith("https://"), agent.name
        assert agent.acp.install or agent.acp.notes, agent.name
        assert agent.login.how, agent.name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 3", "title"),
        ('title = "X"\n[acp]\ncommand = []', "acp.command"),
        ('title = "X"\n[acp]\ncommand = ["x"]\ncolour = "red"', "colour"),
        ('title = "X"\n[acp]\ncommand = ["./x"]', "a program of the project"),
        ('title = "X"\n[acp]\ncommand = ["x"]\n[login]\nfiles = ["/etc/shadow"]', "/etc/shadow"),
        ('title = "X"\n[acp]\ncommand = ["x"]\n[login]\nvariables = ["COCKPIT_TOKEN"]', "COCKPIT_TOKEN"),
        ('title = "X"\n[acp]\ncommand = ["x"]\n[sandbox]\ncopies = ["../x"]', "../x"),
        ("title = ", "not TOML"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_named_with_its_fault(text: str, words: str) -> None:
    with pytest.raises(AgentInvalid, match=r"mine\.toml") as error:
        read_agent("mine", text.encode(), "mine.toml")
    assert words in str(error.value)


def test_a_broken_file_leaves_the_agent_that_ships(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "claude.toml").write_text("title = 3", encoding="utf-8")
    (folder / "codex.toml").write_text(
        'title = "Mine"\n[acp]\ncommand = ["mine"]', encoding="utf-8"
    )
    registry = load_agents(tmp_path)
    assert registry.agents["claude"].title == "Claude Code"
    assert registry.agents["codex"].title == "Mine"
    assert len(registry.problems) == 1
    with pytest.raises(AgentInvalid, match=r"There is no agent 'nobody'.*claude\.toml"):
        registry.find("nobody")


def test_an_adapter_needs_in_the_sandbox_what_its_agent_needs() -> None:
    assert recognise_agent(["/opt/bin/claude-agent-acp"]) == recognise_agent(["claude"]) is not None
    assert recognise_agent(["someone-else"]) is None


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root, config = tmp_path / "project", tmp_path / "config"
    root.mkdir()
    config.mkdir()
    return Project(root, config)


def test_an_agent_is_added_listed_and_checked(project: Project) -> None:
    command = ("agents", "add", "mine", "--title", "My agent", "--", sys.executable, str(AGENT))
    project.run(*command)
    refused = project.run(*command, expect=2).stderr
    assert "exists; nothing was written" in refused
    listed = {row["name"]: row for row in json.loads(project.run("agents", "--json").stdout)}
    assert listed["mine"]["installed"] and listed["mine"]["title"] == "My agent"
    assert listed["claude"]["install"].startswith("npm install -g ")
    (checked,) = json.loads(project.run("agents", "check", "mine", "--json").stdout)
    assert checked["speaks"] and checked["version"] == "1.2.3"
    assert checked["abilities"]["forks"] and checked["abilities"]["images"]
    assert not list(project.root.iterdir())


def test_no_agent_adds_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it named would run with the user's rights as soon as they choose it."""
    words = "this was started by an agent (CLAUDECODE is set)"
    monkeypatch.setattr(user_presence, "find_agent", lambda **_: words)
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path))
    done = CliRunner().invoke(add_agent, ["evil", "--", "sh"])
    assert isinstance(done.exception, CockpitError) and "by an agent" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_a_check_says_why_an_agent_does_not_speak(project: Project) -> None:
    project.run("agents", "add", "old", "--", sys.executable, str(AGENT))
    file = project.config / "agents" / "old.toml"
    text = file.read_text(encoding="utf-8")
    cases = {
        '{"protocol": 7}': "speaks version 7",
        '{"dies": "initialize"}': "ended with exit code 7",
    }
    for switches, words in cases.items():
        file.write_text(f"{text}environment = {{ SCRIPTED = '{switches}' }}\n", encoding="utf-8")
        answer = project.run("agents", "check", "old", "--json", expect=1).stdout
        (checked,) = json.loads(answer)
        assert not checked["speaks"] and words in checked["problem"]
        assert "sk-ant" not in answer and "\\u001b" not in json.loads(answer)[0]["problem"]
    missing = project.run("agents", "check", "goose", expect=1).stdout
    assert "not installed. curl" in missing


WAYS = [
    {"id": "term FORGED", "name": "In a terminal", "type": "terminal", "args": ["--cli", "log in"],
     "env": {"LANG": "C", "BAD NAME": "x"}},
    {"id": "key", "name": "By key", "type": "env_var", "vars": [{"name": "SCRIPTED_KEY"}, {"name": "; rm"}]},
    {"id": "new", "name": "By stars", "type": "_stars"},
]  # fmt: skip


def test_ways_to_log_in_are_listed_with_what_to_do(project: Project) -> None:
    project.run("agents", "add", "mine", "--", sys.executable, str(AGENT))
    file = project.config / "agents" / "mine.toml"
    switches = json.dumps({"ways": WAYS})
    with file.open("a", encoding="utf-8") as text:
        text.write(f"environment = {{ SCRIPTED = {json.dumps(switches)} }}\n")
    told = project.run("agents", "check", "mine").stderr
    for words in (
        "Log in with a browser: `cockpit agents login mine login`",
        f"In a terminal: `LANG=C {sys.executable} {AGENT} --cli 'log in'` in a terminal",
        "By key: set SCRIPTED_KEY before you start cockpit, and name SCRIPTED_KEY in [login] variables of"
        " agents/mine.toml",
        "By stars: log in with mine's own program",
    ):
        assert words in told
    assert "BAD" not in told and "; rm" not in told
    done = project.run("agents", "login", "mine")
    assert done.stdout == "mine is logged in by Log in with a browser.\n"
    assert "Follow it in your browser" in done.stderr and (project.root / "logged-in").exists()
    for words in (("key",), ("nothing",)):
        refused = project.run("agents", "login", "mine", *words, expect=1).stderr
        assert "does not log in by itself" in refused and "SCRIPTED_KEY" in refused
