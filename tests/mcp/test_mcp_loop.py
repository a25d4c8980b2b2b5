"""The loop over MCP: an agent from outside asks and proposes; a person, in another process, decides."""

from __future__ import annotations

import json

import pytest
from mcp_world import Near, Project
from state_for_tests import state_of

from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow

QUESTION = {"purpose": "see", "question": "what is area?", "scope": ["file:shapes.py"]}
NOTES = {"action": "write_file", "arguments": {"path": "notes.md", "content": "# Notes\n"}}


def test_what_was_approved_after_the_client_left_is_carried_out_by_whoever_continues(
    project: Project,
) -> None:
    with Near(project, "standard") as wire:
        asked = wire.greet().call("propose_action", **NOTES, wait_s=0)
    project.decide(asked["proposal_id"])
    assert not project.run("run", "--continue", "last", expect=2)
    (listed,) = json.loads(project.run("sessions", "--json"))
    project.run("run", "--continue", listed["session_id"])
    assert (project.root / "notes.md").exists()


def test_what_is_asked_waits_for_the_user_and_is_answered_and_done_once(project: Project) -> None:
    """A guard's refusal proposes nothing, and one thing is proposed at a time."""
    escape = {"action": "write_file", "arguments": {"path": "../out.txt", "content": "x"}}
    with Near(project, "standard") as wire:
        assert wire.greet().call("propose_action", **escape)["status"] == "refused"
        words = wire.refused("propose_action", action="write_file", arguments={"path": "a"})
        assert "content" in words and project.waiting() == []
        asked = wire.call("propose_action", **NOTES, wait_s=0)
        assert asked["status"] == "pending"
        assert asked["proposal_id"] in wire.refused("request_context", **QUESTION)
        assert project.waiting() == [asked["proposal_id"]]
        assert not (project.root / "notes.md").exists()
        project.decide(asked["proposal_id"])
        told = wire.call("propose_action", proposal_id=asked["proposal_id"], wait_s=60)
        assert told["status"] == "confirmed"
        assert (project.root / "notes.md").read_text(encoding="utf-8") == "# Notes\n"
        asked = wire.call("request_context", **QUESTION, wait_s=0)
        wait = {"proposal_id": asked["proposal_id"], "wait_s": 60}
        params = {"name": "request_context", "arguments": wait}
        wire.send({"jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": params})
        project.decide(asked["proposal_id"], "rejected", "not that file")
        waited = json.loads(wire.line())
        answer = json.loads(waited["result"]["content"][0]["text"])
        assert (waited["id"], answer["status"]) == ("w", "rejected")
        assert "not that file" in answer["result"] and "facts" not in answer


def test_nothing_approves_for_the_agent_and_packets_have_three_sizes(project: Project) -> None:
    """No tool of any tier, no token, no variable and no setting."""
    config = project.root.parent / "config"
    config.mkdir()
    (config / "config.toml").write_text('[approval]\npolicy = "all"\n', encoding="utf-8")
    project.run("tokens", "issue", "--namespace", "ci", "--scope", "audit.read")
    root = (state_of(project.root) / "root.token").read_text(encoding="utf-8").strip()
    project.extra |= {"COCKPIT_APPROVE": "all", "COCKPIT_PROFILE_AUTO": "weights"}
    project.extra["COCKPIT_TOKEN"] = root
    with Near(project, "all") as wire:
        tools = wire.greet().tools()
        assert [name for name in tools if "approv" in name or "decide" in name] == []
        assert "No wave has a packet" in wire.refused("get_orientation_packet")
        asked = wire.call("request_context", **QUESTION, wait_s=0)
        for name in ("approve", "approve_proposal", "proposals_approve"):
            assert "There is no tool" in wire.refused(name, proposal_id=asked["proposal_id"])
        again = {"proposal_id": asked["proposal_id"], "wait_s": 1}
        assert wire.call("request_context", **again)["status"] == "pending"
        assert project.waiting() == [asked["proposal_id"]]
        project.decide(asked["proposal_id"])
        wire.call("request_context", proposal_id=asked["proposal_id"], wait_s=60)
        sizes = [
            wire.answer("get_orientation_packet", fields=fields)[0]
            for fields in ("minimal", "standard", "full")
        ]
        assert "nothing" not in wire.refused("get_orientation_packet", wave=99)
    assert [len(size) for size in sizes] == sorted({len(size) for size in sizes})
    assert "return a * b" in sizes[2] and "return a * b" not in sizes[1]


def test_a_request_waits_for_the_user_and_brings_what_was_granted(project: Project) -> None:
    """Once: it survives the server, is told again without the user, and is its agent's alone."""
    with Near(project) as wire:
        asked = wire.greet("claude-code").call("request_context", **QUESTION, wait_s=0)
        assert asked["status"] == "pending"
        assert project.waiting() == [asked["proposal_id"]]
        assert "area" not in json.dumps(asked)
    with project.store() as store:
        (known,) = store.read_now(sessions.select_recent)
    assert (known.title, known.status) == ("claude-code, external agent", "stopped")
    assert project.waiting() == [asked["proposal_id"]]
    assert project.actors("session.created") == ["agent/mcp"]
    project.run("proposals", "approve", asked["proposal_id"])
    with Near(project) as wire:
        told = wire.greet("claude-code").call(
            "request_context", proposal_id=asked["proposal_id"], wait_s=60
        )
        assert told["status"] == "approved"
        text = "def area(a, b):\n    return a * b\n"
        assert told["facts"] == [{"source": "file:shapes.py", "text": text}]
        again = wire.call("request_context", **QUESTION, wait_s=60)
        assert (again["status"], again["facts"]) == ("refused", told["facts"])
        other = {**QUESTION, "scope": ["file:missing.py"]}
        assert "facts" not in wire.call("request_context", **other, wait_s=0)
    project.extra["COCKPIT_TOKEN"] = project.token("agent/other", "orientation.propose")
    with Near(project) as wire:
        words = wire.greet().refused("request_context", proposal_id=asked["proposal_id"], wait_s=0)
        assert "not a proposal of agent/other" in words
