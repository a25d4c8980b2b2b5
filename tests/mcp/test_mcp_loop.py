"""The loop over MCP: an agent from outside asks and proposes; a person, in another process, decides."""

from __future__ import annotations

import json

import pytest
from mcp_world import Project, Wire
from state_for_tests import state_of

from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow

QUESTION = {"purpose": "see", "question": "what is area?", "scope": ["file:shapes.py"]}
NOTES = {"action": "write_file", "arguments": {"path": "notes.md", "content": "# Notes\n"}}


def test_a_request_waits_for_a_person_and_brings_what_was_granted(project: Project) -> None:
    with Wire(project).greet() as wire:
        asked = wire.call("request_context", **QUESTION, wait_s=0)
        assert asked["status"] == "pending"
        assert project.waiting() == [asked["proposal_id"]]
        assert "area" not in json.dumps(asked)
        project.run("proposals", "approve", asked["proposal_id"])
        told = wire.call("request_context", proposal_id=asked["proposal_id"], wait_s=60)
    assert told["status"] == "approved"
    assert told["facts"] == [
        {"source": "file:shapes.py", "text": "def area(a, b):\n    return a * b\n"}
    ]


def test_what_was_granted_once_is_told_again_without_a_person(project: Project) -> None:
    with Wire(project).greet() as wire:
        asked = wire.call("request_context", **QUESTION, wait_s=0)
        project.decide(asked["proposal_id"])
        first = wire.call("request_context", proposal_id=asked["proposal_id"], wait_s=60)
        again = wire.call("request_context", **QUESTION, wait_s=60)
        assert again["status"] == "refused"
        assert again["facts"] == first["facts"]
        other = {**QUESTION, "scope": ["file:missing.py"]}
        assert "facts" not in wire.call("request_context", **other, wait_s=0)
    assert project.waiting() == []


def test_a_narrowed_request_brings_what_is_left_of_it(project: Project) -> None:
    (project.root / "secret.py").write_text("CODE = 1\n", encoding="utf-8")
    wide = {**QUESTION, "scope": ["file:shapes.py", "file:secret.py"]}
    with Wire(project).greet() as wire:
        asked = wire.call("request_context", **wide, wait_s=0)
        project.run("proposals", "approve", asked["proposal_id"], "--item", "file:shapes.py")
        told = wire.call("request_context", proposal_id=asked["proposal_id"], wait_s=60)
    assert told["status"] == "narrowed"
    assert [fact["source"] for fact in told["facts"]] == ["file:shapes.py"]


def test_a_call_that_waits_is_answered_when_the_person_decides(project: Project) -> None:
    with Wire(project).greet() as wire:
        first = wire.call("request_context", **QUESTION, wait_s=0)
        wait = {"proposal_id": first["proposal_id"], "wait_s": 60}
        wire.send(
            {
                "jsonrpc": "2.0",
                "id": "waiting",
                "method": "tools/call",
                "params": {"name": "request_context", "arguments": wait},
            }
        )
        project.decide(first["proposal_id"], "rejected", "not that file")
        told = json.loads(wire.line())
    assert told["id"] == "waiting"
    answer = json.loads(told["result"]["content"][0]["text"])
    assert answer["status"] == "rejected"
    assert "not that file" in answer["result"]
    assert "facts" not in answer


def test_an_approved_action_is_done_by_cockpit_once(project: Project) -> None:
    with Wire(project, "--tier", "standard").greet() as wire:
        asked = wire.call("propose_action", **NOTES, wait_s=0)
        assert asked["status"] == "pending"
        assert not (project.root / "notes.md").exists()
        project.decide(asked["proposal_id"])
        told = wire.call("propose_action", proposal_id=asked["proposal_id"], wait_s=60)
    assert told["status"] == "confirmed"
    assert (project.root / "notes.md").read_text(encoding="utf-8") == "# Notes\n"


def test_one_thing_is_proposed_at_a_time(project: Project) -> None:
    with Wire(project, "--tier", "standard").greet() as wire:
        asked = wire.call("request_context", **QUESTION, wait_s=0)
        words = wire.refused("propose_action", **NOTES)
        assert asked["proposal_id"] in words
        assert project.waiting() == [asked["proposal_id"]]


def test_what_was_proposed_survives_the_server(project: Project) -> None:
    with Wire(project).greet("claude-code") as wire:
        asked = wire.call("request_context", **QUESTION, wait_s=0)
        wire.process.kill()
        wire.process.wait()
    project.decide(asked["proposal_id"])
    with Wire(project).greet("claude-code") as wire:
        told = wire.call("request_context", proposal_id=asked["proposal_id"], wait_s=60)
    assert told["status"] == "approved"
    assert len(told["facts"]) == 1


def test_what_was_approved_after_the_client_left_is_carried_out_by_whoever_continues(
    project: Project,
) -> None:
    with Wire(project, "--tier", "standard").greet() as wire:
        asked = wire.call("propose_action", **NOTES, wait_s=0)
        assert wire.leave()[0] == 0
    project.decide(asked["proposal_id"])
    assert not project.run("run", "--continue", "last", expect=2)
    (listed,) = json.loads(project.run("sessions", "list", "--json"))
    project.run("run", "--continue", listed["session_id"])
    assert (project.root / "notes.md").exists()


def test_a_proposal_belongs_to_who_made_it(project: Project) -> None:
    with Wire(project).greet() as wire:
        asked = wire.call("request_context", **QUESTION, wait_s=0)
    project.extra["COCKPIT_TOKEN"] = project.token("agent/other", "orientation.propose")
    with Wire(project).greet() as wire:
        words = wire.refused("request_context", proposal_id=asked["proposal_id"], wait_s=0)
    assert "not a proposal of agent/other" in words


def test_the_client_has_a_session_in_its_own_name(project: Project) -> None:
    with Wire(project).greet("claude-code") as wire:
        wire.call("request_context", **QUESTION, wait_s=0)
        with project.store() as store:
            known = store.read_now(sessions.select_recent)
    assert [one.title for one in known] == ["claude-code, external agent"]
    assert known[0].status == "waiting"
    assert project.actors("session.created") == ["agent/mcp"]


def test_a_refusal_by_a_guard_is_told_and_proposes_nothing(project: Project) -> None:
    escape = {"action": "write_file", "arguments": {"path": "../out.txt", "content": "x"}}
    with Wire(project, "--tier", "standard").greet() as wire:
        told = wire.call("propose_action", **escape)
        assert told["status"] == "refused"
        words = wire.refused("propose_action", action="write_file", arguments={"path": "a"})
    assert "content" in words
    assert project.waiting() == []


def test_a_change_of_attention_is_proposed_like_anything_else(project: Project) -> None:
    change = {
        "base_profile_version": 1,
        "effective_waves": 3,
        "reason": "more room for files",
        "bands": {
            "situational": {"target_tokens": 76_000},
            "objectives": {"target_tokens": 24_000},
        },
    }
    with Wire(project, "--tier", "all").greet() as wire:
        asked = wire.call("propose_profile_change", **change, wait_s=0)
        assert asked["status"] == "pending", asked
        project.decide(asked["proposal_id"])
        told = wire.call("propose_profile_change", proposal_id=asked["proposal_id"], wait_s=60)
        assert told["status"] == "approved"


def test_a_packet_at_three_sizes(project: Project) -> None:
    with Wire(project, "--tier", "standard").greet() as wire:
        assert "No wave has a packet" in wire.refused("get_orientation_packet")
        asked = wire.call("request_context", **QUESTION, wait_s=0)
        project.decide(asked["proposal_id"])
        wire.call("request_context", proposal_id=asked["proposal_id"], wait_s=60)
        sizes = [
            wire.answer("get_orientation_packet", fields=fields)[0]
            for fields in ("minimal", "standard", "full")
        ]
        assert "nothing" not in wire.refused("get_orientation_packet", wave=99)
    assert [len(size) for size in sizes] == sorted({len(size) for size in sizes})
    assert "return a * b" in sizes[2]
    assert "return a * b" not in sizes[1]


def test_no_tier_has_a_tool_that_approves(project: Project) -> None:
    root = state_of(project.root) / "root.token"
    project.run("tokens", "issue", "--namespace", "ci", "--scope", "audit.read")
    project.extra["COCKPIT_TOKEN"] = root.read_text(encoding="utf-8").strip()
    with Wire(project, "--tier", "all").greet() as wire:
        tools = wire.tools()
        assert [name for name in tools if "approv" in name or "decide" in name] == []
        asked = wire.call("request_context", **QUESTION, wait_s=0)
        for name in ("approve", "approve_proposal", "proposals_approve"):
            assert "There is no tool" in wire.refused(name, proposal_id=asked["proposal_id"])
        assert (
            wire.call("request_context", proposal_id=asked["proposal_id"], wait_s=0)["status"]
            == "pending"
        )
    assert project.waiting() == [asked["proposal_id"]]


def test_a_token_without_the_scope_proposes_nothing(project: Project) -> None:
    project.extra["COCKPIT_TOKEN"] = project.token("agent/reader", "orientation.read")
    with Wire(project).greet() as wire:
        words = wire.refused("request_context", **QUESTION)
    assert "orientation.propose" in words
    assert project.waiting() == []


def test_no_environment_and_no_configuration_approves_for_the_agent(project: Project) -> None:
    config = project.root.parent / "config"
    config.mkdir()
    (config / "config.toml").write_text('[approval]\npolicy = "all"\n', encoding="utf-8")
    project.extra |= {"COCKPIT_APPROVE": "all", "COCKPIT_ADAPTATION_AUTO": "weights"}
    with Wire(project, "--tier", "standard").greet() as wire:
        asked = wire.call("propose_action", **NOTES, wait_s=1)
        assert asked["status"] == "pending"
    assert project.waiting() == [asked["proposal_id"]]
    assert not (project.root / "notes.md").exists()
