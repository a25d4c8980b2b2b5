"""What an agent from outside may do: deny rules, then the policy, else nobody answers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hook_world import SESSIONS, Project

from cockpit.config.load_settings import ConfigInvalid, load_settings
from cockpit.core.find_checkout import Checkout
from cockpit.hook.event_payload import Event
from cockpit.hook.permission_policy import decide_permission
from cockpit.hook.read_policy import read_policy
from cockpit.loop.permissions.judge_tool import find_denial


def asked(root: Path, tool: str, **arguments: Any) -> Event:
    """The agent asks whether it may."""
    payload = {
        "hook_event_name": "PermissionRequest",
        "session_id": "s",
        "cwd": str(root),
        "tool_name": tool,
        "tool_input": arguments,
    }
    return Event("claude", payload)


def answered(root: Path, tool: str, **arguments: Any) -> str:
    ruled = decide_permission(
        asked(root, tool, **arguments), Checkout(str(root), str(root), str(root))
    )
    return "" if ruled is None else "allow" if ruled.allow else "deny"


DENIED = [
    "sudo rm -rf /",
    "cd /tmp && sudo ls",
    "echo $(sudo id)",
    "env FOO=1 sudo ls",
    "bash -lc 'sudo systemctl stop shop'",
    "ls | xargs sudo rm",
    "/usr/bin/sudo ls",
    '"sudo" ls',
    "mkfs.ext4 /dev/sda1",
    "dd if=disk.img of=/dev/sda",
    "shutdown now",
    "cockpit proposals approve p-1",
    "cockpit run 'review pr 3' --approve all",
    "cockpit",
    "cockpit hook uninstall claude --yes",
    "cd x; .venv/bin/cockpit tokens issue --namespace me --scope orientation.approve",
]
NOT_DENIED = [
    "ls",
    "npm test",
    "git commit -m 'sudo is no more'",
    "gh pr view 3",
    "cockpit tasks start T-2",
    "cockpit proposals list",
    "cockpit profile show --version 2",
    "cockpit --version",
    "cockpit hook status",
    "cockpit wip set T-1 phase=testing",
    "rm -rf node_modules",
    "dd if=/dev/zero of=file bs=1M count=1",
    "grep -rn sudo docs",
    "cat sudo.md",
    "x" * 20_000 + " sudo",
]


@pytest.mark.parametrize("command", DENIED)
def test_the_deny_rules_hold_wherever_the_command_stands(command: str) -> None:
    assert find_denial(command)


@pytest.mark.parametrize("command", NOT_DENIED, ids=lambda words: words[:30])
def test_the_deny_rules_hold_nothing_else(command: str) -> None:
    assert find_denial(command) == ""


READS: dict[str, tuple[str, dict[str, str]]] = {
    "a file": ("Read", {"file_path": "src/a.py"}),
    "a search": ("Grep", {"pattern": "x"}),
    "a listing": ("LS", {"path": "."}),
    "a plain command": ("Bash", {"command": "sed -n '1,9p' src/a.py"}),
    "a plain command of git": ("Bash", {"command": "git diff -- src/a.py"}),
}
WRITES: dict[str, tuple[str, dict[str, str]]] = {
    "a new file": ("Write", {"file_path": "src/b.py", "content": "x"}),
    "an edit": ("Edit", {"file_path": "src/a.py", "old_string": "a", "new_string": "b"}),
    "a medium command": ("Bash", {"command": "mkdir build"}),
    "tests": ("Bash", {"command": "pytest -q"}),
    "tests in a folder": ("Bash", {"command": "cd src && python -m pytest -q 2>&1 | tail -3"}),
    "a read with a glob": ("Bash", {"command": "cat *.py"}),
    "a pipe of reads": ("Bash", {"command": "git log | head -3"}),
    "a read in a folder": ("Bash", {"command": "cd src && sed -n '1,9p' a.py 2>/dev/null"}),
}
NEVER: dict[str, tuple[str, dict[str, str]]] = {
    "high risk": ("Bash", {"command": "rm -rf node_modules"}),
    "high in a shell": ("Bash", {"command": "ls && git push --force"}),
    "the network": ("Bash", {"command": "curl https://example.org"}),
    "git's own files": ("Write", {"file_path": ".git/hooks/pre-commit", "content": "x"}),
    "the agent's settings": ("Write", {"file_path": ".claude/settings.json", "content": "{}"}),
    "cockpit's settings": ("Edit", {"file_path": ".cockpit/config.toml"}),
    "outside": ("Read", {"file_path": "/etc/passwd"}),
    "outside by dots": ("Write", {"file_path": "../other/x.py", "content": "x"}),
    "a link outside": ("Read", {"file_path": "away/secret"}),
    "secrets": ("Read", {"file_path": "config/.env"}),
    "secrets by a command": ("Bash", {"command": "cat config/.env"}),
    "secrets by a pipe": ("Bash", {"command": "cat config/.env | head"}),
    "a redirection": ("Bash", {"command": "echo x > ~/.bashrc"}),
    "a place outside": ("Bash", {"command": "cp a.py /etc/a.py"}),
    "the agent's settings by a command": ("Bash", {"command": "cp a.json .claude/settings.json"}),
    "another tool": ("WebFetch", {"url": "https://example.org"}),
    "no path": ("Read", {}),
    "a commit": ("Bash", {"command": "git commit -m x"}),
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder with a link that leads out of it, and nobody's own settings."""
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("COCKPIT_APPROVE", raising=False)
    top = tmp_path / "shop"
    (top / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    (top / "src" / "a.py").touch()
    (tmp_path / "elsewhere").mkdir()
    (top / "away").symlink_to(tmp_path / "elsewhere")
    return top


@pytest.mark.parametrize(
    ("held", "reads", "writes"),
    [
        ("", "", ""),
        ("ask", "", ""),
        ("trusted", "", ""),
        ("reads", "allow", ""),
        ("all", "allow", "allow"),
        ("everything", "", ""),
    ],
)
def test_the_policy_answers_what_it_covers(
    root: Path, monkeypatch: pytest.MonkeyPatch, held: str, reads: str, writes: str
) -> None:
    monkeypatch.setenv("COCKPIT_APPROVE", held)
    for expected, table in ((reads, READS), (writes, WRITES), ("", NEVER)):
        for what, (tool, arguments) in table.items():
            assert answered(root, tool, **arguments) == expected, what
    assert answered(root, "Bash", command="sudo ls") == "deny"


def test_only_what_is_asked_is_allowed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_APPROVE", "all")
    event = asked(root, "Bash", command="ls")
    event.name = "PreToolUse"
    assert decide_permission(event, Checkout(str(root), str(root), str(root))) is None


LAYERS = [
    (mine, theirs, env)
    for mine in ("", "ask", "reads", "all", "nonsense")
    for theirs in ("", "ask", "all")
    for env in ("", "reads", "nonsense")
]


@pytest.mark.parametrize(("mine", "theirs", "env"), LAYERS)
def test_the_policy_is_the_one_of_the_settings(
    root: Path, monkeypatch: pytest.MonkeyPatch, mine: str, theirs: str, env: str
) -> None:
    config = root.parent / "config"
    for folder, value in ((config, mine), (root / ".cockpit", theirs)):
        folder.mkdir(exist_ok=True)
        if value:
            text = f'[approval]\npolicy = "{value}"\n'
            (folder / "config.toml").write_text(text, encoding="utf-8")
    variables = {"COCKPIT_CONFIG_DIR": str(config), "COCKPIT_APPROVE": env}
    monkeypatch.setenv("COCKPIT_APPROVE", env)
    try:
        expected = load_settings(root / ".cockpit", env=variables).runtime.policy
    except ConfigInvalid:
        # cockpit itself would not start; an agent goes on, and its person is asked.
        expected = "reads" if env == "reads" else "ask"
    assert read_policy(str(root)) == expected


@pytest.mark.parametrize("agent", SESSIONS)
def test_a_denied_command_is_refused_before_it_runs(project: Project, agent: str) -> None:
    said = project.told(agent, "pre_tool_use_bash_denied")["hookSpecificOutput"]
    assert set(said) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
    assert (said["hookEventName"], said["permissionDecision"]) == ("PreToolUse", "deny")
    assert "rights" in said["permissionDecisionReason"]
    assert project.told(agent, "pre_tool_use_bash") is None
    (row,) = project.journal("agent.hook")
    assert (row["actor"], row["answer"], row["event"]) == ("deny rules", "deny", "PreToolUse")
    assert "sudo" in row["about"]


@pytest.mark.parametrize("agent", SESSIONS)
def test_a_permission_is_answered_in_the_agent_s_words(project: Project, agent: str) -> None:
    assert project.told(agent, "permission_request_read") is None
    project.extra["COCKPIT_APPROVE"] = "reads"
    plain = {"tool_input": {"command": "ls"}}
    assert project.told(agent, "permission_request_read", **plain) == {
        "hookSpecificOutput": {
            "hookEventName": "PermissionRequest",
            "decision": {"behavior": "allow"},
        }
    }
    assert project.told(agent, "permission_request_high") is None
    (row,) = project.journal("agent.hook")
    assert (row["actor"], row["answer"], row["tool"]) == ("policy:reads", "allow", "Bash")


def test_a_denied_permission_says_why(project: Project) -> None:
    command = {"tool_input": {"command": "sudo ls"}}
    said = project.told("claude", "permission_request_read", **command)["hookSpecificOutput"]
    assert said["decision"]["behavior"] == "deny"
    assert "rights" in said["decision"]["message"]


def test_a_repository_cannot_widen_what_its_agents_may(project: Project) -> None:
    text = '[approval]\npolicy = "all"\n'
    (project.root / ".cockpit").mkdir(exist_ok=True)
    (project.root / ".cockpit" / "config.toml").write_text(text, encoding="utf-8")
    assert project.told("claude", "permission_request_read") is None
