"""What both agents write, reduced to the same few things."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cockpit.hook.event_payload import read_payload
from cockpit.hook.task_attribution import read_task_change


def body(agent: str, **payload: Any) -> dict[str, Any]:
    """What is kept of a finished command."""
    base = {"session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "Bash"}
    given = {"tool_input": {"command": "x"}, **payload}
    kept = read_payload(json.dumps({**base, **given}).encode(), agent).body()
    assert kept is not None
    return kept


STATUSES: list[tuple[str, Any, int | None]] = [
    ("claude", {"stdout": "fine", "stderr": ""}, 0),
    ("claude", {"stdout": "fine", "stderr": "", "interrupted": True}, None),
    ("claude", {"stdout": "", "stderr": "", "backgroundTaskId": "b1"}, None),
    ("claude", {"stdout": "", "exitCode": 3}, 3),
    ("codex", "fine", None),
    ("codex", "Exit code: 2\nWall time: 1 seconds\nOutput:\nbad", 2),
    ("codex", "Chunk ID: 1\nWall time: 1.2 s\nProcess exited with code 0\nOutput:\nok", 0),
    ("codex", '{"output": "bad", "metadata": {"exit_code": 4}}', 4),
    ("codex", {"output": "bad", "metadata": {"exit_code": 4}}, 4),
    ("codex", {"exit_code": True}, None),
    ("codex", None, None),
]


def test_a_failure_has_the_status_that_it_tells() -> None:
    for error, code in (
        ("Exit code 127\n/bin/sh: x: not found", 127),
        ("Command exited with non-zero status code 2", 2),
        ("It went wrong", 1),
    ):
        kept = body("claude", hook_event_name="PostToolUseFailure", error=error)
        assert (kept["exit_code"], kept["failed"], kept["output"]) == (code, True, error)


def test_a_long_output_keeps_both_ends() -> None:
    said = "first\n" + "x" * 1_000_000 + "\nlast"
    kept = body("claude", tool_response={"stdout": said})["output"]
    assert kept.startswith("first\n")
    assert kept.endswith("\nlast")
    assert len(kept) < 40_000


def test_of_a_patch_only_the_names_are_kept() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+SECRET\n*** Move to: b.py\n*** End Patch"
    )
    expected = {"input": "*** Update File: a.py\n*** Move to: b.py"}
    for given in ({"command": patch}, {"input": patch}, {"command": ["apply_patch", patch]}):
        assert body("codex", tool_name="apply_patch", tool_input=given)["arguments"] == expected


def test_a_refused_call_takes_up_nothing() -> None:
    told = {
        "session_id": "s",
        "hook_event_name": "PostToolUse",
        "tool_name": "mcp__cockpit__update_task_status",
        "tool_input": {"task_id": "T-1", "status": "in_progress"},
        "tool_response": {"isError": True, "content": []},
    }
    assert read_payload(json.dumps(told).encode(), "codex").body() is None
    told["tool_response"] = {"content": []}
    kept = read_payload(json.dumps(told).encode(), "codex").body()
    assert kept is not None
    assert kept["arguments"] == {"task_id": "T-1", "status": "in_progress"}


TAKEN = [
    ({"arguments": {"task_id": "T-2", "status": "in_progress"}}, ("T-2", None)),
    ({"arguments": {"task_id": "T-2", "status": "done"}}, (None, "T-2")),
    ({"arguments": {"task_id": "T-2", "status": "review"}}, (None, None)),
    (
        {"arguments": {"command": "cockpit tasks move T-2 in_progress"}, "exit_code": 0},
        ("T-2", None),
    ),
    (
        {"arguments": {"command": "cockpit tasks move T-2 in_progress"}, "exit_code": 1},
        (None, None),
    ),
    ({"arguments": {"command": "cd x && (.venv/bin/cockpit tasks move T-2 done)"}}, (None, "T-2")),
    ({"arguments": {"command": "echo cockpit tasks"}}, (None, None)),
    ({"arguments": {"command": "cockpit tasks move"}}, (None, None)),
    ({"reason": "startup"}, (None, None)),
]


@pytest.mark.parametrize(("agent", "response", "code"), STATUSES)
def test_the_exit_status_is_the_one_that_is_told(agent: str, response: Any, code: int) -> None:
    assert body(agent, tool_response=response)["exit_code"] == code


def test_an_agent_is_told_by_its_payload() -> None:
    for payload, agent in (
        ({"turn_id": "t"}, "codex"),
        ({"transcript_path": "/home/x/.codex/sessions/r.jsonl"}, "codex"),
        ({"transcript_path": "/home/x/.claude/projects/x/y.jsonl"}, "claude"),
        ({}, "claude"),
    ):
        told = json.dumps({"session_id": "s", "hook_event_name": "Stop", **payload}).encode()
        assert read_payload(told, "").agent == agent
        assert read_payload(told, "codex").agent == "codex"


def test_a_task_is_taken_up_by_what_is_done() -> None:
    for kept, expected in TAKEN:
        assert read_task_change("PostToolUse", kept) == expected
        assert read_task_change("PreToolUse", kept) == (None, None)


def test_a_session_is_named_by_a_digest_where_its_id_is_a_secret() -> None:
    secret = "ghp_" + "aB3dE5gH7jK9mN2pQ4rS" * 2

    def session(identity: str) -> str:
        return read_payload(
            json.dumps({"session_id": identity, "hook_event_name": "Stop"}).encode(), "claude"
        ).session

    assert session("550e8400-e29b-41d4-a716-446655440000").startswith("550e8400")
    assert secret[:12] not in session(secret) and session(secret) == session(secret)
    assert session(secret) != session(f"{secret}x")
