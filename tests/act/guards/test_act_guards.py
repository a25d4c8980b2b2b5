"""Guards: what is turned back, in words that say what to do instead."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from cockpit.act.guards.action_guard import (
    GuardState,
    PacketLines,
    Refusal,
    argv_digest,
    first_refusal,
)
from cockpit.act.guards.guard_registry import standard_guards
from cockpit.act.model_tools import parse_call
from cockpit.act.workspace import Workspace


def asked(ground: Workspace, state: GuardState, name: str, **arguments: Any) -> Refusal | None:
    call = parse_call(name, json.dumps(arguments))
    return first_refusal(standard_guards(ground.confined), call, state)


def standing(
    ground: Workspace, path: str, *ranges: tuple[int, int]
) -> dict[str, tuple[PacketLines, ...]]:
    sha = hashlib.sha256((ground.root / path).read_bytes()).hexdigest()
    return {path: tuple(PacketLines(a, b, sha, f"situational, f-{a}") for a, b in ranges)}


def want(ground: Workspace, state: GuardState, *scope: str) -> Refusal | None:
    return asked(ground, state, "request_context", purpose="p", question="q", scope=list(scope))


def test_a_read_is_redundant_only_when_all_its_lines_stand_there(ground: Workspace) -> None:
    (ground.root / "f.py").write_text("".join(f"{n}\n" for n in range(1, 31)))
    state = GuardState(packet_files=standing(ground, "f.py", (1, 10), (8, 20)))
    refusal = want(ground, state, "file:f.py:5-20")
    assert refusal is not None and refusal.guard == "redundant_read"
    assert (
        "file:f.py:5-20 is in your context already (lines 5-20, situational, f-1, situational, f-8)"
        in (refusal.message)
    )
    assert want(ground, state, "file:f.py:5-20 @full") is not None
    assert want(ground, state, "file:./f.py:1-1") is not None
    for scope in (
        ["file:f.py:5-21"],
        ["file:f.py:20-22"],
        ["file:f.py"],
        ["file:f.py:5-20", "file:app.py"],
        ["file:f.py:5-20 @outline"],
        ["search:f.py"],
        ["file:../f.py"],
        ["file:gone.py"],
        ["symbol:area"],
    ):
        assert want(ground, state, *scope) is None, scope
    whole = GuardState(packet_files=standing(ground, "f.py", (1, 10), (11, 30)))
    assert want(ground, whole, "file:f.py") is not None
    apart = GuardState(packet_files=standing(ground, "f.py", (1, 3), (8, 20), (25, 30)))
    assert want(ground, apart, "file:f.py:9-12") is not None
    assert want(ground, apart, "file:f.py:20-25") is None
    gap = GuardState(packet_files=standing(ground, "f.py", (1, 10), (12, 30)))
    assert want(ground, gap, "file:f.py") is None


def test_a_file_that_changed_or_left_the_packet_is_read_again(ground: Workspace) -> None:
    state = GuardState(packet_files=standing(ground, "app.py", (1, 2)))
    assert want(ground, state, "file:app.py") is not None
    (ground.root / "app.py").write_text("other\n")
    assert want(ground, state, "file:app.py") is None
    assert want(ground, GuardState(), "file:app.py") is None


def test_versions_are_not_mixed(ground: Workspace) -> None:
    (now,) = standing(ground, "app.py", (1, 1))["app.py"]
    mixed = GuardState(packet_files={"app.py": (now, PacketLines(2, 2, "0" * 64))})
    assert want(ground, mixed, "file:app.py:1-2") is None
    part = GuardState(packet_files={"app.py": (PacketLines(1, 9, "0" * 64),)}, pinned_rev=True)
    assert want(ground, part, "file:app.py") is None
    whole = PacketLines(1, 9, "0" * 64, total_lines=9)
    pinned = GuardState(packet_files={"app.py": (whole, PacketLines(0, 0, ""))}, pinned_rev=True)
    assert want(ground, pinned, "file:app.py:2-9") is not None
    assert want(ground, pinned, "file:app.py") is not None


def test_the_same_failing_command_needs_a_change_first(ground: Workspace) -> None:
    command = argv_digest(["pytest", "-q"])
    state = GuardState(failed_commands={command: 3}, shown_failures={command: "2.1"}, changes=3)
    again = asked(ground, state, "run", command="pytest -q", reason="r")
    assert again is not None and again.guard == "unchanged_failure"
    assert asked(ground, state, "run", command="pytest -q tests", reason="r") is None
    out_of_view = GuardState(failed_commands=state.failed_commands, changes=3)
    assert asked(ground, out_of_view, "run", command="pytest -q", reason="r") is None
    after = GuardState(
        failed_commands=state.failed_commands, shown_failures=state.shown_failures, changes=4
    )
    assert asked(ground, after, "run", command="pytest -q", reason="r") is None


@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
def test_no_file_is_written_blind(ground: Workspace, tool: str) -> None:
    rest = {"content": "x"} if tool == "write_file" else {"old": "x", "new": "y"}
    blind = asked(ground, GuardState(), tool, path="app.py", **rest)
    assert blind is not None and "request_context with file:app.py" in blind.message
    seen = GuardState(packet_files=standing(ground, "app.py", (1, 1)))
    assert asked(ground, seen, tool, path="./app.py", **rest) is None
    assert asked(ground, GuardState(), tool, path="new.py", **rest) is None
    there = (ground.root / "app.py").read_text()
    assert asked(ground, GuardState(), "write_file", path="app.py", content=there) is None


@pytest.mark.parametrize(
    ("tool", "arguments", "guard", "words"),
    [
        ("write_file", {"path": "../x", "content": "x"}, "path", "climbs"),
        ("edit_file", {"path": ".git/config", "old": "x", "new": "y"}, "path", "git's own files"),
        ("git_commit", {"message": "m", "paths": ["app.py", "/etc/x"]}, "path", "absolute"),
        ("github", {"command": "gh pr view 24"}, "github", "request_context with pr:24"),
        ("github", {"command": "gh auth status"}, "github", "never run"),
        ("run", {"command": "sudo ls", "reason": "r"}, "command", "rights of another user"),
        ("run", {"argv": ["sh", "-c", "a; gh pr merge 1"], "reason": "r"}, "command", "github tool"),
        ("run", {"command": "python -m cockpit approve p-1", "reason": "r"}, "command", "cannot approve"),
        ("write_file", {"path": "n.py", "content": "k = 'ghp_" + "a1B2" * 9 + "'"}, "secret", "a token"),
        ("run", {"argv": ["x", "[masked:jwt]"], "reason": "r"}, "secret", "environment variable"),
    ],
)  # fmt: skip
def test_each_guard_says_why(ground, tool, arguments, guard, words):
    refusal = asked(ground, GuardState(project_repo="acme/api"), tool, **arguments)
    assert refusal is not None and refusal.guard == guard
    assert words in refusal.message


def test_what_is_right_passes_every_guard(ground: Workspace) -> None:
    state = GuardState(project_repo="acme/api")
    assert asked(ground, state, "github", command="gh pr comment 24 --body hello") is None
    assert asked(ground, state, "run", command="pytest -q", reason="r") is None
    assert asked(ground, state, "git_commit", message="m", paths=["app.py"]) is None
    assert asked(ground, state, "finish", status="done", summary="s") is None
