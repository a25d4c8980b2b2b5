"""Shells behind tools of any name, and inputs of an agent's own tools that mean more than they show."""

from __future__ import annotations

import json
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from cockpit.agents.runs.agent_hooks import hook_groups
from cockpit.core.find_checkout import Checkout
from cockpit.hook.event_payload import Event
from cockpit.hook.permission_policy import decide_permission


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project."""
    top = tmp_path / "shop"
    (top / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    (top / "src" / "a.py").write_text("x = 1\n", encoding="utf-8")
    return top


def answer(
    root: Path, tool: str, arguments: Any, event: str = "PermissionRequest", policy: str = "all"
) -> str:
    payload = {
        "hook_event_name": event, "session_id": "s", "cwd": str(root), "tool_name": tool,
        "tool_input": arguments,
    }  # fmt: skip
    checkout = Checkout(str(root), str(root), str(root))
    decision = decide_permission(Event("claude", payload), checkout, policy=policy)
    return "" if decision is None else decision.answer


APPROVE = "cockpit proposals approve p-1"
DENIED: list[dict[str, Any]] = [
    {"cmd": f"cd /tmp && {APPROVE}"},
    {"script": f"#!/bin/sh\n{APPROVE}\n"},
    {"argv": ["bash", "-lc", APPROVE]},
    {"args": ["proposals", "approve", "p-1"], "command": "cockpit"},
    {"executable": "env", "params": ["-i", "sudo", "ls"]},
    {"commandLine": "sudo ls"},
    {"shell-command": "sudo ls"},
    {"commands": [{"run": "ls"}, {"run": APPROVE}]},
    {"code": f"import subprocess\nsubprocess.run({json.dumps(APPROVE.split())})\n"},
    {"code": "require('child_process').execSync('sudo ls')"},
    {"request": json.dumps({"inner": json.dumps({"argv": ["sudo", "ls"]})})},
    {"session": 3, "chars": "sudo ls\n"},
]
PASSED: list[dict[str, Any]] = [
    {"query": "how to use sudo ls"},
    {"command": "create", "file_text": "sudo ls\n"},
    {"code": "x = 'a word about sudo'"},
    {"command": "cockpit tasks"},
    {"deep": [[[[[[[[[[[[[[[[["x"]]]]]]]]]]]]]]]]]},
    {},
]


def test_the_deny_rules_hold_for_a_command_in_any_tool(root: Path, attacks) -> None:
    ways = list(product(("mcp__box__execute", "Terminal"), ("PreToolUse", "PermissionRequest")))
    tried = [(tool, arguments, event) for tool, event in ways for arguments in DENIED]
    through = [each for each in tried if answer(root, *each) != "deny"]
    attacks("what is never run, behind a tool of any name", len(tried), through)
    for (tool, event), arguments in product(ways, PASSED):
        assert answer(root, tool, arguments, event) == "", arguments
    deep: Any = {"argv": ["sudo", "ls"]}
    for _ in range(20):
        deep = {"x": deep}
    for arguments in (deep, {"many": [{"x": 1}] * 5_000, "cmd": {"run": ["sudo", "ls"]}}):
        assert answer(root, "mcp__box__execute", arguments, "PreToolUse") in ("ask", "deny")


@pytest.mark.parametrize("policy", ["reads", "all"])
def test_no_policy_allows_a_command_in_a_tool_that_is_not_known(root, policy):
    """Even a command that reads: nobody here knows what the tool does with it, and where."""
    assert answer(root, "Bash", {"command": "ls"}, policy=policy) == "allow"
    for tool in ("mcp__shell__bash", "mcp__Bash", "bash", "Run"):
        assert answer(root, tool, {"command": "ls"}, policy=policy) == "", tool


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_agents_ask_before_a_tool_of_any_server_runs(agent: str) -> None:
    (group,) = hook_groups(agent, "cockpit")["PreToolUse"]
    assert "mcp__.*" in group["matcher"].split("|")


SHELL_INPUTS: list[dict[str, Any]] = [
    {"command": "ls", "shell": "./evil"},
    {"command": "ls", "env": {"LD_PRELOAD": "./x.so"}},
    {"command": "ls", "cmd": "touch out"},
    {"command": "ls", "stdin": "touch out"},
    {"command": "ls", "dangerouslyDisableSandbox": True},
    {"command": "ls", "workdir": ["/"]},
    {"command": "ls", "workdir": ".", "cwd": "/"},
    {"command": ["./bash", "-c", "ls"]},
    {"command": ["ls", 1]},
    {"command": {"a": "ls"}},
    {"command": ""},
]


def test_a_read_with_an_argument_that_changes_what_runs_is_none(root, attacks):
    tried = list(product(("Bash", "shell", "exec_command"), SHELL_INPUTS))
    through = [each for each in tried if answer(root, *each, policy="reads") != ""]
    attacks("an argument beside a reading command changes it", len(tried), through)
    plain = {"description": "Look", "timeout": 5, "workdir": "src", "run_in_background": False}
    assert answer(root, "Bash", {"command": "ls", **plain}, policy="reads") == "allow"
    assert answer(root, "shell", {"command": ["bash", "-lc", "ls"]}, policy="reads") == "allow"
    assert answer(root, "shell", {"command": ["ls", "src"]}, policy="reads") == "allow"


def test_a_shell_of_the_project_on_path_is_no_shell(root, monkeypatch):
    (root / "bin").mkdir()
    (root / "bin" / "bash").write_text("#!/bin/sh\ntouch out\n", encoding="utf-8")
    (root / "bin" / "bash").chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}/bin:/usr/bin:/bin")
    assert answer(root, "shell", {"command": ["bash", "-lc", "ls"]}, policy="reads") == ""
    assert answer(root, "shell", {"command": ["ls"]}, policy="reads") == "allow"


PATHS: list[tuple[str, dict[str, Any]]] = [
    ("Read", {"file_path": "~root/notes.txt"}),
    ("Read", {"file_path": " /etc/passwd"}),
    ("LS", {"path": "~"}),
    ("Glob", {"pattern": "/etc/*"}),
    ("Glob", {"pattern": "src/../../*"}),
    ("Glob", {}),
    ("Grep", {"pattern": "KEY", "path": ".."}),
    ("Write", {"file_path": " /tmp/x", "content": "x"}),
    ("Edit", {"file_path": "~/.bashrc"}),
    ("Read", {"file_path": "src/e\u0301.py"}),
]


def test_paths_that_agents_read_in_another_way_are_asked_about(root: Path, attacks) -> None:
    through = [each for each in PATHS if answer(root, *each) != ""]
    attacks("a path that the agent reads in another way", len(PATHS), through)
    assert answer(root, "Read", {"file_path": "src/a.py"}) == "allow"
    assert answer(root, "Glob", {"pattern": "src/**/*.py"}) == "allow"
    assert answer(root, "Grep", {"pattern": "x"}) == "allow"


@pytest.mark.parametrize("glob", ["", ".env", "**/.e*", ".e[n]v", "{.env,x}", "!x"])
def test_a_search_over_files_of_secrets_is_asked_about(root: Path, glob: str) -> None:
    (root / "src" / ".env").write_text("KEY=x\n", encoding="utf-8")
    arguments = {"pattern": "KEY", **({"glob": glob} if glob else {})}
    assert answer(root, "Grep", arguments) == ""
    assert answer(root, "Grep", {"pattern": "KEY", "glob": "*.py"}) == "allow"
