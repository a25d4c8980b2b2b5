"""Whatever goes wrong, a hook ends with 0, says so in its log, and loses nothing."""

from __future__ import annotations

import contextlib
import json
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hook_world import Project

from cockpit.core.clock import SystemClock
from cockpit.hook import hook_log, spool
from cockpit.store.db.connection import connect
from cockpit.store.db.migrate import load_migrations, migrate
from cockpit.store.hooks import pending_events
from cockpit.store.hooks.pending_events import ATTEMPTS, LEASE_MS, HookEvent

pytestmark = pytest.mark.slow


def written(project: Project, name: str) -> bytes:
    """A write of that file, told by its agent."""
    path = {"file_path": str(project.root / name), "content": "x"}
    return project.payload("claude", "post_tool_use_write", tool_input=path)


@contextlib.contextmanager
def held(project: Project) -> Iterator[None]:
    """Another process holds the store meanwhile."""
    other = sqlite3.connect(project.place.database, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
    finally:
        other.close()


MALFORMED = {
    "nothing": b"",
    "no JSON": b"{'session_id': 1}",
    "half of it": b'{"session_id": "s", "hook_event_name": "PostToolUse", "tool_input": {"comm',
    "a list": b"[1, 2]",
    "no session": b'{"hook_event_name": "Stop"}',
    "no event": b'{"session_id": "s"}',
    "other types": b'{"session_id": 7, "hook_event_name": ["Stop"]}',
    "no text": b"\xff\xfe\x00\x01",
    "too deep": b'{"a":' * 100_000,
}


@pytest.mark.parametrize("payload", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_payload_is_one_line_in_the_log(project: Project, payload: bytes) -> None:
    assert project.call(payload, "--agent", "claude") is None
    (line,) = project.log()
    assert "claude: ignored a payload" in line
    assert project.rows("SELECT * FROM hook_pending") == []


STRANGE: dict[str, dict[str, Any]] = {
    "an unknown tool": {"tool_name": "Teleport", "tool_input": {"where": "home"}},
    "no tool": {"tool_name": None},
    "arguments that are none": {"tool_input": "x"},
    "a file that is none": {"tool_input": {"file_path": 7}},
    "a response that is none": {"tool_name": "Bash", "tool_response": 9},
    "half a letter": {"tool_input": {"file_path": "\ud800.py"}, "session_id": "s\ud800"},
    "a NUL": {"cwd": "\0", "tool_input": {"file_path": "a\0b"}},
    "no folder": {"cwd": "/there/is/none"},
    "a long session": {"session_id": "s" * 5_000},
    "a command in words": {"tool_name": "Bash", "tool_input": {"command": ["ls", "a b"]}},
}


@pytest.mark.parametrize("changes", STRANGE.values(), ids=STRANGE.keys())
def test_a_strange_payload_stops_nobody(project: Project, changes: dict[str, Any]) -> None:
    body = json.loads(project.payload("claude", "post_tool_use_write"))
    assert project.call(json.dumps({**body, **changes}).encode(), "--agent", "claude") is None
    project.call(written(project, "after.py"))
    assert "after.py" in project.wip()["files_modified"]
    assert project.rows("SELECT * FROM hook_pending") == []
    assert project.log() == []


def test_an_event_nobody_knows_is_one_line_in_the_log(project: Project) -> None:
    payload = project.payload("claude", "stop", hook_event_name="BrainTransfer\x1b[31m")
    assert project.call(payload) is None
    (line,) = project.log()
    assert "'BrainTransfer\\x1b[31m' is not a known event" in line


def test_where_no_project_is_nothing_is_made(bare: Project) -> None:
    before = sorted(bare.root.rglob("*"))
    for name in ("session_start_startup", "post_tool_use_write", "stop"):
        assert bare.told("claude", name) is None
    assert bare.call(b"no JSON") is None
    (bare.root / ".cockpit").mkdir()
    assert bare.told("claude", "post_tool_use_write") is None
    assert list((bare.root / ".cockpit").iterdir()) == []
    (bare.root / ".cockpit").rmdir()
    assert sorted(bare.root.rglob("*")) == before


def test_a_state_that_leads_elsewhere_is_no_project(project: Project) -> None:
    moved = project.root.parent / "moved"
    project.place.state.rename(moved)
    project.place.state.symlink_to(moved)
    before = sorted(moved.rglob("*"))
    assert project.told("claude", "post_tool_use_write") is None
    assert sorted(moved.rglob("*")) == before


def test_while_the_store_is_held_events_wait_in_files(project: Project) -> None:
    with held(project):
        for name in ("one.py", "two.py"):
            assert project.call(written(project, name)) is None
        assert project.told("claude", "post_tool_use_commit") is None
        assert len(project.spooled()) == 3
    lines = project.log()
    assert len(lines) == 3
    assert all("locked; written to a file" in line for line in lines)
    # The next one comes through; all four are absorbed in the order in which they happened.
    assert project.call(written(project, "three.py")) is None
    wip = project.wip()
    assert wip["files_modified"] == ["one.py", "three.py", "two.py"]
    assert (wip["last_commit"], wip["uncommitted_changes"]) == ("a1b2c3d", True)
    assert project.spooled() == []


def test_a_session_starts_while_the_store_is_held(project: Project) -> None:
    project.told("claude", "post_tool_use_write")
    project.absorb()
    with held(project):
        answer = project.told("claude", "session_start_resume")
    assert "Resuming T-1" in answer["hookSpecificOutput"]["additionalContext"]
    assert "agent.session_started" in {row["action"] for row in project.journal("agent.")}


def test_a_file_taken_over_twice_is_one_event(project: Project) -> None:
    with held(project):
        project.call(written(project, "one.py"))
    (name,) = project.spooled()
    path = project.place.state / "hook-spool" / name
    kept = path.read_bytes()
    # Another process dies after its commit and before it removes the file.
    (told,) = spool.read_events([str(path)])
    connection = pending_events.connect(str(project.place.database), 1_000)
    pending_events.insert(connection, told, None)
    connection.close()
    project.absorb()
    assert path.exists() is False
    path.write_bytes(kept)
    assert project.wip()["files_modified"] == ["one.py"]


def test_twenty_calls_at_once_lose_nothing(project: Project) -> None:
    names = [f"f{number:02}.py" for number in range(20)]
    calls = [(project.start("--agent", "claude"), written(project, name)) for name in names]
    for process, payload in calls:
        assert process.stdin is not None
        process.stdin.write(payload)
        process.stdin.close()
        process.stdin = None
    for process, _ in calls:
        out, err = process.communicate(timeout=90)
        assert (process.returncode, out, err) == (0, b"", b"")
    assert project.wip()["files_modified"] == names
    hooks = [row for row in project.journal("agent.hook") if row["tool"] == "Write"]
    assert len(hooks) == 20


def test_a_store_from_before_the_hooks_is_brought_up(bare: Project) -> None:
    bare.place.prepare()
    connection = connect(bare.place.database)
    old = tuple(one for one in load_migrations() if one.name < "0006")
    migrate(connection, bare.place.database, SystemClock(), old)
    connection.close()
    assert bare.told("claude", "post_tool_use_write") is None
    assert len(bare.spooled()) == 1
    assert bare.absorb() == 1
    assert [row["tool"] for row in bare.journal("agent.hook")] == ["Write"]


def test_a_newer_store_is_left_alone(project: Project) -> None:
    connection = connect(project.place.database)
    connection.execute("INSERT INTO migrations VALUES ('9999_later', 'x', 'y')")
    connection.close()
    project.told("claude", "post_tool_use_write")
    project.told("claude", "session_start_startup")
    assert any("newer cockpit" in line for line in project.log())
    events = project.rows("SELECT event FROM hook_pending ORDER BY event_key")
    assert events == [("PostToolUse",), ("SessionStart",)]


def test_one_bad_event_holds_up_no_other(project: Project) -> None:
    connection = pending_events.connect(str(project.place.database), 1_000)
    for number, body in enumerate(("no JSON", '{"arguments": 1, "tool": 2}')):
        told = HookEvent(f"{number:020}-1", "2026-01-01", "claude", "s", "PostToolUse", body)
        pending_events.insert(connection, told, "T-1")
    connection.close()
    project.call(written(project, "good.py"))
    assert project.wip()["files_modified"] == ["good.py"]
    left = project.rows("SELECT event_key, attempts FROM hook_pending ORDER BY event_key")
    assert [attempts for _, attempts in left] == [ATTEMPTS, ATTEMPTS]
    assert "2 failed" in project.cockpit("hook", "status").stderr


def test_the_log_stays_within_bounds(tmp_path: Path) -> None:
    for _ in range(hook_log.LARGEST // 500 * 3):
        hook_log.append_line(str(tmp_path), "x" * 2_000)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"hook.log", "hook.log.old"}
    assert max(sizes.values()) <= hook_log.LARGEST + 1_000


def test_files_that_wait_stay_within_bounds(tmp_path: Path) -> None:
    folder = tmp_path / "hook-spool"
    folder.mkdir()
    for number in range(spool.MOST):
        (folder / f"{number}.json").touch()
    assert (
        spool.write_event(str(tmp_path), HookEvent("k", "a", "claude", "s", "Stop", "{}")) is False
    )
    assert len(list(folder.iterdir())) == spool.MOST


def test_an_agent_that_is_gone_is_not_waited_for(project: Project) -> None:
    process = project.start("--agent", "claude")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write(project.payload("claude", "session_start_startup"))
    process.stdin.close()
    assert process.wait(timeout=90) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


def test_without_any_input_it_ends_as_well(project: Project) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {shlex.quote(sys.executable)} -m cockpit hook <&-"],
        cwd=project.root,
        env=project.env,
        capture_output=True,
        timeout=90,
    )
    assert done.returncode == 0


def test_the_lease_is_one_process_s_until_it_is_over(project: Project) -> None:
    connection = pending_events.connect(str(project.place.database), 1_000)
    now = 1_800_000_000_000
    assert pending_events.acquire_lease(connection, now)
    assert not pending_events.acquire_lease(connection, now + LEASE_MS)
    assert pending_events.acquire_lease(connection, now + LEASE_MS + 1)
    # A clock that was set back must not keep everybody out for days.
    assert pending_events.acquire_lease(connection, now - 1_000_000)
    told = HookEvent("1", "a", "claude", "s", "Stop", "{}", urgent=True)
    pending_events.insert(connection, told, None)
    assert not pending_events.release_lease(connection)
    pending_events.delete_events(connection, ["1"])
    assert pending_events.release_lease(connection)
    assert pending_events.acquire_lease(connection, now)
    connection.close()
