"""Hooks of an agent that cockpit runs: they know its task from the environment."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import run_cockpit
from tasks.taskrun_world import World

from cockpit.backlog import service
from cockpit.hook.ingest import ingest_all
from cockpit.store.backlog import tasks

pytestmark = pytest.mark.slow


def told(world: World, event: str, *, env: dict[str, str], **fields: Any) -> Any:
    """What the hook answers to an event of a session ``agent-1``."""
    body = {"session_id": "agent-1", "hook_event_name": event, "cwd": str(world.root), **fields}
    done = run_cockpit.run(
        ("hook", "--agent", "claude"),
        cwd=world.root, env={**os.environ, **env}, stdin=json.dumps(body), patience_s=90,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout) if done.stdout else None


def begun(world: World, count: int) -> list[str]:
    """So many tasks, all in progress: without being told, no hook could know which one is meant."""
    tasks = [world.task(f"Task {number}", files=[]) for number in range(count)]
    for task_id in tasks:
        world.store.write_now(
            lambda tx, task_id=task_id: service.set_status(tx, task_id, "in_progress", by="person")  # type: ignore[misc]  # a default keeps the loop's value
        )
    return tasks


def files_of(world: World, task_id: str) -> list[str]:
    ingest_all(world.store, world.place.state)
    kept = world.store.read_now(lambda seen: tasks.load(seen, task_id).wip) or {}
    return list(kept.get("files_modified", []))


EDIT: dict[str, Any] = {
    "tool_name": "Write",
    "tool_input": {"file_path": "calc.py", "content": "x"},
    "tool_response": {"success": True},
}


def test_the_agent_works_on_the_task_that_it_was_given(world: World) -> None:
    one, two, three = begun(world, 3)
    given = {"COCKPIT_TASK": two}
    answer = told(world, "SessionStart", env=given, source="startup")
    assert f"{two} (in_progress): Task 1" in answer["hookSpecificOutput"]["additionalContext"]
    told(world, "PostToolUse", env=given, **EDIT)
    # Not even by taking up another one.
    call = {"tool_name": "mcp__ohno__update_task_status", "tool_response": {}}
    asked = {"task_id": three, "status": "in_progress"}
    told(world, "PostToolUse", env=given, tool_input=asked, **call)
    more = {**EDIT, "tool_input": {"file_path": "new.py", "content": "x"}}
    told(world, "PostToolUse", env=given, **more)
    assert files_of(world, two) == ["calc.py", "new.py"]
    assert files_of(world, one) == files_of(world, three) == []


def test_one_that_only_looks_adds_nothing_to_the_work(world: World) -> None:
    (task_id,) = begun(world, 1)
    told(world, "PostToolUse", env={"COCKPIT_TASK": task_id, "COCKPIT_WIP": "off"}, **EDIT)
    assert files_of(world, task_id) == []
    (row,) = world.rows("agent.hook")
    assert (row.raw_detail()["task_id"], row.raw_detail()["tool"]) == (task_id, "Write")


def test_a_variable_that_names_no_task_is_as_none(world: World) -> None:
    (task_id,) = begun(world, 1)
    for name in ("T-999", "T-1'; --"):
        told(world, "PostToolUse", env={"COCKPIT_TASK": name}, **EDIT)
    assert files_of(world, task_id) == ["calc.py"]
