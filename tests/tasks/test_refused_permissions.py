"""Which refusals of an external agent's permissions still stand at the end of its session."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from loop.permissions.permission_world import World, bash, open_world, write

from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.store.journal.details.agents import RunnerEnded, RunnerStarted, RunnerToolEnded
from cockpit.tasks.role_result import select_standing_refusals


@pytest.fixture
def world(tmp_path: Path) -> World:
    root = tmp_path / "calc"
    root.mkdir()
    (root / "a.py").write_text("a\n")
    (tmp_path / "state").mkdir()
    return open_world(root, tmp_path / "state", "all")


async def ask(world: World, request: ToolRequest, decision: str, policy: str = "ask") -> None:
    asking = asyncio.create_task(world.ask(request, policy=policy))
    if decision:
        (proposal,) = await world.pending()
        world.decide(proposal, decision, "no" if decision == "rejected" else "")
    await asking


def standing(world: World) -> list[str]:
    return world.store.read_now(lambda c: select_standing_refusals(c, world.session_id))


async def test_a_refusal_stands_until_the_same_is_allowed(world: World) -> None:
    await ask(world, bash("make install"), "rejected")
    assert standing(world) == ["Bash: make install"]
    await ask(world, bash("make   install"), "approved")
    assert standing(world) == []
    await ask(world, bash("make install"), "rejected")
    assert standing(world) == ["Bash: make install"], "the last answer counts"
    await ask(world, write("a.py", "b\n"), "rejected")
    assert standing(world) == ["Bash: make install", "Write: edit a.py"]
    await ask(world, write("a.py", "c\n"), "", policy="all")
    assert standing(world) == ["Bash: make install"], "the same file is the same thing"


async def test_another_way_counts_when_the_user_approved_it(world: World) -> None:
    await ask(world, bash("make install"), "rejected")
    await ask(world, write("a.py", "b\n"), "", policy="all")
    assert standing(world) == ["Bash: make install"], "a policy approves no other way"
    await ask(world, write("b.py", "b\n"), "approved")
    assert standing(world) == []


async def test_a_read_is_no_other_way_to_change_something(world: World) -> None:
    await ask(world, bash("make install"), "rejected")
    from cockpit.loop.permissions.read_tool_request import read_claude_tool

    await ask(world, read_claude_tool("Read", {"file_path": "a.py"}), "approved")
    assert standing(world) == ["Bash: make install"]


async def test_what_a_deny_rule_refused_stands(world: World) -> None:
    await ask(world, bash("sudo make install"), "")
    assert standing(world) == ["Bash: sudo make install"]
    await ask(world, bash("make"), "approved")
    assert standing(world) == []


async def test_a_late_answer_is_a_refusal_and_a_withdrawn_request_is_none(world: World) -> None:
    asking = asyncio.create_task(world.ask(bash("make a")))
    await world.pending()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert standing(world) == []
    asking = asyncio.create_task(world.ask(bash("make b"), deadline_s=5))
    await world.pending()
    world.store.clock.advance(6)  # type: ignore[attr-defined]
    await asking
    assert standing(world) == ["Bash: make b"]


def test_a_run_without_a_protocol_reports_what_it_was_refused(world: World) -> None:
    def run(tx) -> None:
        rows = (
            RunnerStarted(
                runner="plain", program="p", format="claude", task_id="", number=1, sandbox=""
            ),
            RunnerToolEnded(
                run=1, call_id="c", tool="Bash", title="Bash: make", failed=False, exit_code=0, summary=""
            ),
            RunnerEnded(
                runner="plain", status="finished", message="", exit_code=0, agent_session="", odd_lines=0,
                tools=1, refused=("Bash: make", "Bash: curl x"),
            ),
        )  # fmt: skip
        for row in rows:
            tx.journal(row, session_id=world.session_id)

    world.store.write_now(run)
    assert standing(world) == ["Bash: curl x"], "the other was allowed when it asked again"
