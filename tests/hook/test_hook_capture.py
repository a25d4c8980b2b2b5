"""From what an agent tells its hooks to the task's work in progress, through real processes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hook_world import SESSIONS, Project, git, recorded

from cockpit.backlog import service
from cockpit.backlog.tools.memory_tools import session_context
from cockpit.store.backlog import handoffs, task_rows
from cockpit.store.backlog.work_queue import next_batch
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import verify_chain

pytestmark = pytest.mark.slow


def context(answer: Any) -> str:
    """What the agent is told, which must be in the shape that it reads."""
    assert set(answer) == {"hookSpecificOutput"}
    said = answer["hookSpecificOutput"]
    assert said["hookEventName"] == "SessionStart"
    text: str = said["additionalContext"]
    return text


def test_an_agent_in_a_linked_worktree_works_on_the_same_tasks(project: Project) -> None:
    beside = project.root.parent / "beside"
    git(project.root, "worktree", "add", "-q", str(beside))
    written = {"file_path": str(beside / "src" / "new.py"), "content": "x"}
    project.told("claude", "post_tool_use_write", cwd=str(beside / "src"), tool_input=written)
    assert project.wip()["files_modified"] == ["src/new.py"]
    assert not (beside / ".cockpit").exists()


SECRET = "ghp_" + "aB3dE5gH7jK9mN2pQ4rS" * 2


def test_no_secret_and_no_text_of_a_file_is_kept(project: Project) -> None:
    text = {"file_path": str(project.root / "src/key.py"), "content": "THE-TEXT-OF-THE-FILE"}
    project.told("claude", "post_tool_use_write", tool_input=text)
    said = f"fatal: could not read from https://dev:{SECRET}@example.org/x: token={SECRET}"
    project.told("claude", "post_tool_use_failure_command", error=f"Exit code 128\n{said}")
    assert "masked" in project.wip()["errors"][-1]["message"]
    state: Path = project.place.state
    for path in state.rglob("*"):
        held = path.read_bytes() if path.is_file() else b""
        assert SECRET.encode() not in held, path
        assert b"THE-TEXT-OF-THE-FILE" not in held, path


def test_the_process_behind_the_hooks_absorbs_by_itself(project: Project) -> None:
    project.let_go()
    project.told("claude", "post_tool_use_write")
    project.told("claude", "stop")
    with Store.open(project.place.database) as store:
        deadline = store.clock.monotonic() + 60
        while store.read_now(
            lambda held: held.execute(
                "SELECT (SELECT count(*) FROM hook_pending) + (SELECT leased_until FROM hook_absorber)"
            ).fetchone()[0]
        ):
            assert store.clock.monotonic() < deadline
            time.sleep(0.05)
    held = project.rows("SELECT work_in_progress FROM tasks WHERE task_id='T-1'")
    assert "src/auth.py" in held[0][0]


STORY = {
    "claude": (
        ("post_tool_use_write", "post_tool_use_edit", "post_tool_use_failure_tests"),
        ("post_tool_use_failure_command", "post_tool_use_tests", "post_tool_use_commit"),
    ),
    "codex": (
        ("post_tool_use_apply_patch", "post_tool_use_tests"),
        ("post_tool_use_command", "post_tool_use_commit"),
    ),
}


@pytest.mark.parametrize("agent", STORY)
def test_a_session_is_on_its_task_and_every_payload_is_understood(
    project: Project, agent: str
) -> None:
    assert "Resuming T-1" in context(project.told(agent, "session_start_startup"))
    first, second = STORY[agent]
    for name in first:
        assert project.told(agent, name) is None
    # Nothing may have absorbed it yet: the start after a compaction does.
    project.told(agent, "pre_compact")
    told = context(project.told(agent, "session_start_compact"))
    assert "Resuming T-1 from: " in told and "src/auth.py" in told and len(told) <= 4_000
    halfway = project.wip()
    assert halfway["files_modified"] == ["src/auth.py", "src/types.py"]
    assert halfway["uncommitted_changes"] is True
    assert (halfway["test_results"]["passed"], halfway["test_results"]["failed"]) == (12, 1)
    for name in (*second, "stop", "session_end"):
        assert project.told(agent, name) is None
    after = project.wip()
    assert (after["last_commit"], after["uncommitted_changes"]) == ("a1b2c3d", False)
    assert any("no attribute" in error["message"] for error in after["errors"])
    for name in recorded(agent):
        project.told(agent, name)
    project.absorb()
    assert project.log() == []
    assert project.rows("SELECT * FROM hook_pending") == []


def test_without_a_task_in_progress_the_agent_is_told_what_is_ready(bare: Project) -> None:
    bare.begin()
    assert bare.told("claude", "session_start_startup") is None, "there is no work"
    bare.begin(*(f"task {number}" for number in range(1, 9)), started=0)
    told = context(bare.told("claude", "session_start_startup"))
    assert "Ready: T-1 task 1" in told and "cockpit tasks move T-1 in_progress" in told
    with Store.open(bare.place.database) as store:
        queued = [one.task_id for one in store.read_now(lambda c: next_batch(c, 5))]
        ready = store.read_now(lambda c: task_rows.select_ready(c, 5))
    assert [task_id for task_id, _ in ready] == queued and len(queued) == 5


def test_the_task_that_an_agent_takes_up_is_the_one_of_its_session(bare: Project) -> None:
    bare.begin("one", "two", "three", started=2)
    # Two in progress and none taken up: nothing says whose it is.
    bare.told("claude", "post_tool_use_write")
    assert (bare.wip("T-1"), bare.wip("T-2")) == ({}, {})
    bare.told("claude", "post_tool_use_mcp_status")
    bare.told("claude", "post_tool_use_write")
    bare.told("codex", "post_tool_use_apply_patch")
    assert bare.wip("T-1") == {}
    assert bare.wip("T-2")["files_modified"] == ["src/auth.py"]
    sessions = bare.rows("SELECT agent_session, task_id FROM active_task")
    assert sessions == [(SESSIONS["claude"], "T-2")]
    assert "Resuming T-2" in context(bare.told("claude", "session_start_resume"))
    # Another is taken up from the command line; what was told before stays with the one before.
    command = {"command": "cd /x && cockpit tasks move T-3 in_progress"}
    bare.told("claude", "post_tool_use_commit", tool_input=command)
    bare.told("claude", "post_tool_use_edit")
    assert bare.wip("T-2")["files_modified"] == ["src/auth.py"]
    assert "src/types.py" in bare.cockpit("tasks", "wip", "T-3", "--json").stdout


def test_the_agent_is_told_the_handoffs_of_the_tasks_before_its_own(bare: Project) -> None:
    """Also one that was archived when its epic ended, and of no other task."""
    bare.begin("Sign tokens", "Rotate keys", "Unrelated", "Expired tokens must fail", started=0)

    def step(tx: Tx) -> None:
        epic = service.create_epic(tx, title="Keys", by="person")
        story = service.create_story(tx, title="Rotate", epic_id=epic.epic_id, by="person")
        service.update_task(tx, "T-2", {"story_id": story.story_id}, by="person")
        for number in (1, 2, 3):
            handoffs.set_handoff(tx, f"T-{number}", "PASS", f"Key {number}.\nMore.", by="person")
            service.set_status(tx, f"T-{number}", "done", by="person")
        handoffs.archive_epic(tx, epic.epic_id)
        for before in ("T-1", "T-2"):
            service.add_dependency(tx, "T-4", before, by="person")
        service.set_status(tx, "T-4", "in_progress", by="person")

    with Store.open(bare.place.database) as store:
        store.write_now(step)
        listed = store.read_now(session_context)["handoffs"]
        assert [each["task_id"] for each in listed[:2]] == ["T-1", "T-2"]
    told = context(bare.told("claude", "session_start_startup"))
    for number in (1, 2):
        assert f"Handoff of T-{number} (PASS), before this task: Key {number}." in told
    assert "Key 3" not in told


def test_a_silent_commit_is_the_one_that_is_there(project: Project) -> None:
    git(project.root, "commit", "-q", "--allow-empty", "-m", "quietly")
    command = {"command": "git commit -q --allow-empty -m quietly"}
    project.told("claude", "post_tool_use_write")
    project.extra["GIT_DIR"] = "/nowhere"  # as a hook of git leaves it behind
    project.told("claude", "post_tool_use_commit", tool_input=command, tool_response={"stdout": ""})
    project.told("claude", "session_end")
    wip = project.wip()
    assert wip["last_commit"] == git(project.root, "rev-parse", "--short=10", "HEAD")
    assert wip["uncommitted_changes"] is False
    rows = project.journal("agent.")
    assert [row["event"] for row in rows] == [*["PostToolUse"] * 2, "SessionEnd"]
    assert {(row["agent_session"], row["task_id"]) for row in rows} == {(SESSIONS["claude"], "T-1")}
    with Store.open(project.place.database) as store:
        assert store.read_now(verify_chain.verify).ok
