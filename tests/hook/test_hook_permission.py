"""What an agent from outside may do: deny rules, then the policy, else nobody answers."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import click
import pytest
from hook_world import SESSIONS, Project

from cockpit.cli import COMMANDS
from cockpit.cli import root as program
from cockpit.commands.records.debug import debug
from cockpit.config.load_settings import ConfigInvalid, load_settings
from cockpit.core.find_checkout import Checkout
from cockpit.hook.event_payload import Event
from cockpit.hook.permission_policy import decide_permission, read_policy
from cockpit.loop.permissions.judge_tool import _OF_EVERYBODY, _an_agent_may, find_denial


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


def answered(root: Path, tool: str, policy: str = "", **arguments: Any) -> str:
    checkout = Checkout(str(root), str(root), str(root))
    ruled = decide_permission(asked(root, tool, **arguments), checkout, policy=policy or "ask")
    return "" if ruled is None else ruled.answer


DENIED = """sudo rm -rf /
echo $(sudo id)
env FOO=1 sudo ls
bash -lc 'sudo systemctl stop shop'
ls | xargs sudo rm
/usr/bin/sudo ls
mkfs.ext4 /dev/sda1
dd if=disk.img of=/dev/sda
cockpit
cockpit proposals approve p-1
cockpit run 'review pr 3' --approve all
cockpit hook install claude --remove --yes
cockpit trust
cockpit trust no_migrations --yes
cockpit debug events e-1 --retry
cockpit debug events --retry e-1
cockpit debug state --clean --yes
cockpit knowledge --index
cd x; .venv/bin/cockpit tokens issue --namespace me --scope orientation.approve"""
NOT_DENIED = """ls
git commit -m 'sudo is no more'
cockpit tasks move T-2 in_progress
cockpit proposals
cockpit proposals p-1
cockpit skills git
cockpit chain diff T-2
cockpit debug events --state dead
cockpit debug show metrics
cockpit profile 2 --since 1
cockpit --version
cockpit tasks wip T-1 phase=testing
dd if=/dev/zero of=file bs=1M count=1
grep -rn sudo docs"""


def test_the_deny_rules_hold_wherever_the_command_stands_and_hold_nothing_else() -> None:
    assert [each for each in DENIED.splitlines() if not find_denial(each).words] == []
    others = [*NOT_DENIED.splitlines(), "x" * 20_000 + " sudo"]
    assert [each for each in others if find_denial(each).words] == []


def test_a_verb_of_a_collection_is_no_name_of_a_row() -> None:
    """What is no verb passes as a name: so every verb that decides something is in the rules."""
    for group, names in (((), COMMANDS), (("debug",), debug.commands)):
        for noun in names:
            inner = (debug if group else program).get_command(click.Context(program), noun)
            for verb in inner.commands if isinstance(inner, click.Group) else ():
                may = _an_agent_may((*group, noun, verb))
                assert not may or noun in _OF_EVERYBODY or verb == "diff", (noun, verb)


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
def test_the_policy_answers_what_it_covers(root: Path, held: str, reads: str, writes: str) -> None:
    for expected, table in ((reads, READS), (writes, WRITES), ("", NEVER)):
        for what, (tool, arguments) in table.items():
            assert answered(root, tool, policy=held, **arguments) == expected, what
    assert answered(root, "Bash", command="sudo ls") == "deny"


@pytest.mark.parametrize("mine", ["", "reads", "all", "nonsense"])
def test_the_policy_is_the_one_of_the_settings(
    root: Path, monkeypatch: pytest.MonkeyPatch, mine: str
) -> None:
    config = root.parent / "config"
    for theirs, env in product(("", "ask", "all"), ("", "ask", "reads", "all", "nonsense")):
        for folder, value in ((config, mine), (root / ".cockpit", theirs)):
            folder.mkdir(exist_ok=True)
            text = f'[approval]\npolicy = "{value}"\n' if value else ""
            (folder / "config.toml").write_text(text, encoding="utf-8")
        # The environment is the agent's: it tightens alone.
        monkeypatch.setenv("COCKPIT_APPROVE", env)
        try:
            variables = {"COCKPIT_CONFIG_DIR": str(config)}
            expected = load_settings(root / ".cockpit", env=variables).runtime.policy
        except ConfigInvalid:
            expected = (
                "ask"  # cockpit itself would not start; an agent goes on, and its user is asked
            )
        expected = "ask" if env in ("ask", "nonsense") else expected
        assert read_policy(str(root), config=str(config)) == expected, (theirs, env)


@pytest.mark.parametrize("agent", SESSIONS)
def test_an_agent_is_answered_in_its_own_words(project: Project, agent: str) -> None:
    said = project.told(agent, "pre_tool_use_bash_denied")["hookSpecificOutput"]
    assert set(said) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
    assert (said["hookEventName"], said["permissionDecision"]) == ("PreToolUse", "deny")
    assert "rights" in said["permissionDecisionReason"]
    assert project.told(agent, "pre_tool_use_bash") is None
    command = {"tool_input": {"command": "sudo ls"}}
    said = project.told(agent, "permission_request_read", **command)["hookSpecificOutput"]
    assert said["decision"]["behavior"] == "deny" and "rights" in said["decision"]["message"]
    # A repository cannot widen what agents may do; the user can.
    (project.root / ".cockpit").mkdir(exist_ok=True)
    (project.root / ".cockpit" / "config.toml").write_text('[approval]\npolicy = "all"\n')
    assert project.told(agent, "permission_request_read") is None
    (project.root / ".cockpit" / "config.toml").unlink()
    # Nor does a variable, which a repository's settings of the agent can set.
    project.extra["COCKPIT_APPROVE"] = "all"
    assert project.told(agent, "permission_request_read") is None
    project.policy = "reads"
    plain = {"tool_input": {"command": "ls"}}
    said = project.told(agent, "permission_request_read", **plain)["hookSpecificOutput"]
    assert said == {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
    assert project.told(agent, "permission_request_high") is None
    rows = [(row["actor"], row["answer"], row["tool"]) for row in project.journal("agent.hook")]
    denied = ("deny rules", "deny", "Bash")
    assert rows == [denied, denied, ("policy:reads", "allow", "Bash")]
