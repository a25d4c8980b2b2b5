"""Every tool of every tier, called by the SDK's own client: an answer, and errors that say what to do."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_world import COMMAND, Project

from cockpit.backlog import service
from cockpit.cli import root
from cockpit.mcp.tool_registry import tools_in_tier
from cockpit.store.db.transaction import Tx

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

WAITS = "the one that waits"
CALLS: dict[str, dict[str, Any]] = {
    "create_epic": {"title": "Epic", "priority": "P1"},
    "create_story": {"title": "Story", "epic_id": "E-1"},
    "create_task": {"title": "Task", "story_id": "S-1", "task_type": "bug"},
    "get_project_status": {},
    "get_session_context": {},
    "get_tasks": {"status": "todo", "priority": "P1", "limit": 5, "fields": "standard"},
    "get_task": {"task_id": "T-1", "fields": "full"},
    "get_next_task": {},
    "get_next_batch": {"limit": 3},
    "get_blocked_tasks": {},
    "get_kanban_board": {"include_done": True},
    "update_task": {"task_id": "T-1", "title": "Renamed", "estimate_hours": 1.5},
    "update_task_status": {"task_id": "T-1", "status": "in_progress", "notes": "begun"},
    "update_task_progress": {"task_id": "T-1", "progress_percent": 40, "context_summary": "half"},
    "add_task_activity": {"task_id": "T-1", "activity_type": "decision", "description": "so"},
    "summarize_task_activity": {"task_id": "T-1"},
    "update_task_wip": {"task_id": "T-1", "wip_data": {"phase": "testing", "next_step": "fix"}},
    "set_handoff_notes": {"task_id": "T-1", "notes": "look into it"},
    "set_blocker": {"task_id": "T-1", "reason": "no key"},
    "resolve_blocker": {"task_id": "T-1"},
    "set_needs_rework": {"task_id": "T-1", "value": True},
    "record_task_failure": {"task_id": "T-1", "failure_type": "spec", "reason": "missed"},
    "set_task_handoff": {"task_id": "T-1", "status": "PASS", "summary": "done"},
    "get_task_handoff": {"task_id": "T-1", "include_details": True},
    "add_dependency": {"task_id": "T-2", "depends_on_task_id": "T-1"},
    "get_task_dependencies": {"task_id": "T-2"},
    "remove_dependency": {"task_id": "T-2", "depends_on_task_id": "T-1"},
    "archive_task": {"task_id": "T-2", "reason": "not needed"},
    "reopen_task": {"task_id": "T-3", "notes": "needed"},
    "get_story": {"story_id": "S-1"},
    "list_stories": {"epic_id": "E-1", "limit": 5, "offset": 0},
    "update_story": {"story_id": "S-1", "title": "Renamed story"},
    "get_epic": {"epic_id": "E-1"},
    "get_epics": {"priority": "P1", "limit": 5},
    "update_epic": {"epic_id": "E-1", "priority": "P0"},
    "compact_story_handoffs": {"story_id": "S-1"},
    "delete_epic_handoffs": {"epic_id": "E-1"},
    "list_skills": {"task": "squash the commits"},
    "list_collection": {"collection": "guards"},
    "show_collection": {"collection": "guards", "name": "redundant_read"},
    "get_skill": {"name": "git", "section": "commits"},
    # To be refused: there is no version 99.
    "propose_profile_change": {"base_profile_version": 99, "effective_waves": 2, "reason": "x"},
    "request_context": {"purpose": "p", "question": "q", "scope": ["file:shapes.py"], "wait_s": 0},
    "propose_action": {"proposal_id": WAITS, "wait_s": 0},
    "get_orientation_packet": {"fields": "full"},
    "search_knowledge": {"query": "areas"},
    "estimate_work": {"words": "investigate how areas are computed"},
}
"""A call that every tool answers, in an order in which they can be made."""

WRONG: dict[str, dict[str, Any]] = {
    "get_task": {"task_id": "T-77"},
    "update_task_status": {"task_id": "T-1", "status": "finished"},
    "update_task_wip": {"task_id": "T-1", "wip_data": {"mood": "fine"}},
    "set_task_handoff": {"task_id": "T-1", "status": "MAYBE", "summary": "?"},
    "get_tasks": {"limit": 0},
    "list_stories": {"offset": 10**30},
    "record_task_failure": {
        "task_id": "T-1",
        "failure_type": "spec",
        "reason": "x",
        "attempt": 2**40,
    },
    "create_task": {"title": "Task", "story_id": "S-77"},
    "add_dependency": {"task_id": "T-1", "depends_on_task_id": "T-1"},
    "update_task_progress": {"task_id": "T-1", "progress_percent": 140},
    "request_context": {"purpose": "p", "question": "q", "scope": ["nonsense"], "wait_s": 0},
    "propose_action": {"action": "write_file", "arguments": {"nonsense": 1}},
    "get_orientation_packet": {"session_id": "s-none"},
    "search_knowledge": {"query": " "},
    "estimate_work": {"words": "x", "task_ids": ["T-1"]},
    "get_story": {"story_id": "S-77"},
    "update_epic": {"epic_id": "E-1"},
}
"""Calls that no tool may answer."""


def filled(tx: Tx) -> None:
    service.create_epic(tx, "Epic", priority="P1", by="agent")
    service.create_story(tx, "Story", epic_id="E-1", by="agent")
    for _ in range(3):
        service.create_task(tx, "Task", story_id="S-1", task_type="bug", by="agent")
    service.archive(tx, "T-3", by="agent")


def test_the_configurations_on_the_pages_are_what_they_claim_to_be() -> None:
    pages = [ROOT / "docs" / "how-to" / name for name in ("claude-code.md", "codex.md")]
    page = "".join(page.read_text(encoding="utf-8") for page in pages)
    blocks = re.findall(r"```(json|toml)\n(.*?)```", page, re.DOTALL)
    read = [json.loads(text) if kind == "json" else tomllib.loads(text) for kind, text in blocks]
    # Those of agents that cockpit runs are its own settings.
    agents = [one for one in read if "runner" not in one]
    servers = [one.get("mcpServers") or one["mcp_servers"] for one in agents]
    assert len(servers) == 3
    assert all(set(one) == {"ohno"} for one in servers)
    for one in servers:
        if "command" in one["ohno"]:
            words = one["ohno"]["args"]
            command = root.get_command(click.Context(root), words[0])
            assert command is not None
            command.make_context(words[0], list(words[1:]))


async def test_every_tool_is_listed_answers_and_refuses(project: Project) -> None:
    with project.store() as store:
        store.write_now(filled)
    server = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], "mcp", "--tier", "all"],
        cwd=project.root,
        env=project.env,
    )
    async with Client(server) as client:

        async def call(name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
            answer = await client.call_tool(name, arguments)
            return answer.content[0].text, bool(answer.is_error)  # type: ignore[union-attr]

        listed = (await client.list_tools()).tools
        names = [tool.name for tool in listed]
        assert set(names) == {tool.name for tool in tools_in_tier("all")} == set(CALLS)
        waiting = ""
        for name in CALLS:
            given = CALLS[name].items()
            text, wrong = await call(name, {k: waiting if v == WAITS else v for k, v in given})
            assert not wrong, (name, text)
            told = json.loads(text)
            assert isinstance(told, dict), name
            if name == "request_context":
                waiting = told["proposal_id"]
        for tool in listed:
            words, wrong = await call(tool.name, {"nonsense": 1})
            assert wrong and "'nonsense'" in words, tool.name
            named = tool.input_schema.get("properties", {})
            assert [name for name in named if name not in words] == []
            for name in tool.input_schema.get("required", []):
                without = {k: v for k, v in CALLS[tool.name].items() if k != name}
                words, wrong = await call(tool.name, without)
                assert wrong and f"'{name}'" in words
        for name in WRONG:
            words, wrong = await call(name, WRONG[name])
            assert wrong, (name, words)
            assert "Traceback" not in words and "unexpectedly" not in words, (name, words)
        assert (await call("approve", {}))[1]
        words, wrong = await call("archive_task", {"task_id": "T-99"})
        assert wrong and "--tier" not in words
