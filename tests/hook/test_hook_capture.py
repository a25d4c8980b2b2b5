"""From what an agent tells its hooks to the task's work in progress, through real processes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hook_world import SESSIONS, Project, git, recorded

from cockpit.backlog import service
from cockpit.backlog.session_context import session_context
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


def test_a_session_of_claude_is_on_its_task(project: Project) -> None:
    assert "Resuming T-1" in context(project.told("claude", "session_start_startup"))
    for name in ("post_tool_use_write", "post_tool_use_edit", "post_tool_use_failure_tests"):
        assert project.told("claude", name) is None
    halfway = project.wip()
    assert halfway["files_modified"] == ["src/auth.py", "src/types.py"]
    assert halfway["uncommitted_changes"] is True
    tests = halfway["test_results"]
    assert (tests["ran"], tests["passed"], tests["failed"]) == (True, 12, 1)
    assert "test_expired_token" in tests["failing_test"]
    for name in ("post_tool_use_failure_command", "post_tool_use_tests", "post_tool_use_commit"):
        assert project.told("claude", name) is None
    assert project.told("claude", "stop") is None
    assert project.told("claude", "session_end") is None
    after = project.wip()
    assert (after["last_commit"], after["uncommitted_changes"]) == ("a1b2c3d", False)
    assert (after["test_results"]["passed"], after["test_results"]["failed"]) == (13, 0)
    assert any("no attribute" in error["message"] for error in after["errors"])
    assert project.log() == []


def test_a_session_of_codex_is_on_its_task(project: Project) -> None:
    assert "Resuming T-1" in context(project.told("codex", "session_start_startup"))
    for name in ("post_tool_use_apply_patch", "post_tool_use_tests"):
        assert project.told("codex", name) is None
    halfway = project.wip()
    assert halfway["files_modified"] == ["src/auth.py", "src/types.py"]
    assert halfway["uncommitted_changes"] is True
    assert (halfway["test_results"]["passed"], halfway["test_results"]["failed"]) == (12, 1)
    for name in ("post_tool_use_command", "post_tool_use_commit", "stop", "session_end"):
        assert project.told("codex", name) is None
    after = project.wip()
    assert (after["last_commit"], after["uncommitted_changes"]) == ("a1b2c3d", False)
    assert any("no attribute" in error["message"] for error in after["errors"])
    assert project.log() == []


@pytest.mark.parametrize(
    ("agent", "name"), [(agent, name) for agent in SESSIONS for name in recorded(agent)]
)
def test_every_recorded_payload_is_understood(project: Project, agent: str, name: str) -> None:
    project.told(agent, name)
    project.absorb()
    assert project.log() == []
    assert project.rows("SELECT * FROM hook_pending") == []


@pytest.mark.parametrize("agent", SESSIONS)
def test_after_a_compaction_nothing_told_is_missing(project: Project, agent: str) -> None:
    edit = "post_tool_use_write" if agent == "claude" else "post_tool_use_apply_patch"
    project.told(agent, edit)
    project.told(agent, "pre_compact")
    # Not absorbed by anybody here: the start of the session does it.
    told = context(project.told(agent, "session_start_compact"))
    assert "Resuming T-1 from: in progress, next: finish and commit" in told
    assert "src/auth.py" in told
    assert len(told) <= 4_000


def test_a_silent_commit_is_the_one_that_is_there(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "Another repository's")
    git(project.root, "commit", "-q", "--allow-empty", "-m", "quietly")
    command = {"command": "git commit -q --allow-empty -m quietly"}
    silence = {"stdout": "", "stderr": ""}
    project.told("claude", "post_tool_use_write")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))  # as a hook of git leaves it behind
    project.told("claude", "post_tool_use_commit", tool_input=command, tool_response=silence)
    monkeypatch.delenv("GIT_DIR")
    wip = project.wip()
    assert wip["last_commit"] == git(project.root, "rev-parse", "--short=10", "HEAD")
    assert wip["uncommitted_changes"] is False


def test_without_work_the_agent_is_told_nothing(bare: Project) -> None:
    bare.begin()
    assert bare.told("claude", "session_start_startup") is None


def test_without_a_task_in_progress_the_agent_is_told_what_is_ready(bare: Project) -> None:
    bare.begin("Expired tokens must fail", started=0)
    told = context(bare.told("claude", "session_start_startup"))
    assert "Ready: T-1 Expired tokens must fail" in told
    assert "cockpit tasks start T-1" in told


def test_what_is_ready_is_what_the_queue_says(bare: Project) -> None:
    bare.begin(*(f"task {number}" for number in range(1, 9)), started=0)
    with Store.open(bare.place.database) as store:
        queued = [one.task_id for one in store.read_now(lambda held: next_batch(held, 5))]
        ready = store.read_now(lambda held: task_rows.select_ready(held, 5))
    assert len(queued) == 5
    assert [task_id for task_id, _ in ready] == queued


@pytest.mark.parametrize("agent", SESSIONS)
def test_the_task_that_an_agent_takes_up_is_the_one_of_its_session(
    bare: Project, agent: str
) -> None:
    bare.begin("one", "two", started=2)
    other = "codex" if agent == "claude" else "claude"
    edit = {"claude": "post_tool_use_write", "codex": "post_tool_use_apply_patch"}
    # Two in progress and none taken up: whose it is, nobody can tell.
    bare.told(agent, edit[agent])
    assert (bare.wip("T-1"), bare.wip("T-2")) == ({}, {})
    bare.told(agent, "post_tool_use_mcp_status")
    bare.told(agent, edit[agent])
    bare.told(other, edit[other])
    assert bare.wip("T-1") == {}
    assert "src/auth.py" in bare.wip("T-2")["files_modified"]
    sessions = bare.rows("SELECT agent_session, task_id FROM active_task")
    assert sessions == [(SESSIONS[agent], "T-2")]
    assert "Resuming T-2" in context(bare.told(agent, "session_start_resume"))


def test_a_task_can_be_taken_up_from_the_command_line(bare: Project) -> None:
    bare.begin("one", "two", started=2)
    command = {"command": "cd /x && cockpit tasks start T-2"}
    bare.told("claude", "post_tool_use_commit", tool_input=command)
    bare.told("claude", "post_tool_use_write")
    assert bare.wip("T-1") == {}
    assert bare.wip("T-2")["files_modified"] == ["src/auth.py"]


def test_what_happened_before_a_switch_stays_with_the_task_before(bare: Project) -> None:
    bare.begin("one", "two", started=1)
    bare.told("claude", "post_tool_use_write")
    bare.told("claude", "post_tool_use_mcp_status")
    bare.told("claude", "post_tool_use_edit")
    assert bare.wip("T-1")["files_modified"] == ["src/auth.py"]
    assert bare.wip("T-2")["files_modified"] == ["src/types.py"]


def test_an_agent_in_a_linked_worktree_works_on_the_same_tasks(project: Project) -> None:
    beside = project.root.parent / "beside"
    git(project.root, "worktree", "add", "-q", str(beside))
    written = {"file_path": str(beside / "src" / "new.py"), "content": "x"}
    project.told("claude", "post_tool_use_write", cwd=str(beside / "src"), tool_input=written)
    assert project.wip()["files_modified"] == ["src/new.py"]
    assert not (beside / ".cockpit").exists()


def test_files_outside_the_project_are_not_its_work(project: Project) -> None:
    outside = {"file_path": "/tmp/notes.txt", "content": "x"}
    project.told("claude", "post_tool_use_write", tool_input=outside)
    assert project.wip() == {}


def test_a_burst_is_one_change_of_the_work_in_progress(project: Project) -> None:
    for number in range(3):
        path = {"file_path": str(project.root / f"f{number}.py"), "content": "x"}
        project.told("claude", "post_tool_use_write", tool_input=path)
    assert project.wip()["files_modified"] == ["f0.py", "f1.py", "f2.py"]
    patches = [row["patch"]["files_modified"] for row in project.journal("wip.updated")]
    assert sorted(path for patch in patches for path in patch) == ["f0.py", "f1.py", "f2.py"]


def test_the_journal_tells_what_agents_did(project: Project) -> None:
    for name in ("session_start_startup", "post_tool_use_write", "stop", "session_end"):
        project.told("claude", name)
    rows = project.journal("agent.")
    assert [(row["action"], row.get("event"), row["task_id"]) for row in rows] == [
        ("agent.session_started", None, "T-1"),
        ("agent.hook", "PostToolUse", "T-1"),
        ("agent.hook", "Stop", "T-1"),
        ("agent.session_ended", None, "T-1"),
    ]
    assert [row["reason"] for row in (rows[0], rows[3])] == ["startup", "prompt_input_exit"]
    assert {row["agent_session"] for row in rows} == {SESSIONS["claude"]}
    with Store.open(project.place.database) as store:
        assert store.read_now(verify_chain.verify).ok


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


def test_a_command_reads_nothing_older_than_what_was_told(project: Project) -> None:
    project.told("claude", "post_tool_use_write")
    assert "src/auth.py" in project.cockpit("wip", "show", "T-1", "--json").stdout


def test_the_agent_is_told_the_handoffs_of_the_tasks_before_its_own(bare: Project) -> None:
    """Also one that was archived when its epic ended, and of no other task."""
    bare.begin("Sign tokens", "Rotate keys", "Unrelated", "Expired tokens must fail", started=0)
    with Store.open(bare.place.database) as store:

        def step(tx: Tx) -> None:
            epic = service.create_epic(tx, title="Keys", by="person")
            story = service.create_story(tx, title="Rotate", epic_id=epic.epic_id, by="person")
            service.update_task(tx, "T-2", {"story_id": story.story_id}, by="person")
            for task_id, summary in (
                ("T-1", "Tokens are signed with the new key.\nSee sign()."),
                ("T-2", "Keys rotate."),
                ("T-3", "Nothing to do with it."),
            ):
                handoffs.set_handoff(tx, task_id, "PASS", summary, by="person")
                service.set_status(tx, task_id, "done", by="person")
            handoffs.archive_epic(tx, epic.epic_id)
            for before in ("T-1", "T-2"):
                service.add_dependency(tx, "T-4", before, by="person")
            service.set_status(tx, "T-4", "in_progress", by="person")

        store.write_now(step)
        full = store.read_now(lambda connection: handoffs.select_before(connection, "T-4"))
        told = store.read_now(lambda c: task_rows.select_handoffs_before(c, "T-4", 10))
        assert told == [(each.task_id, each.status, each.summary) for each in full]
        assert full[1].archived_at
        listed = store.read_now(session_context)["handoffs"]
        assert [each["task_id"] for each in listed[:2]] == ["T-1", "T-2"]
    told_text = context(bare.told("claude", "session_start_startup"))
    assert (
        "Handoff of T-1 (PASS), before this task: Tokens are signed with the new key." in told_text
    )
    assert "Handoff of T-2 (PASS), before this task: Keys rotate." in told_text
    assert "Nothing to do with it" not in told_text
