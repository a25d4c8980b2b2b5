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
from hook_world import PATIENCE_S, Project

from cockpit.hook import hook_log, spool
from cockpit.store.db.connection import connect
from cockpit.store.hooks import pending_events
from cockpit.store.hooks.pending_events import ATTEMPTS, HookEvent

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
    assert "SessionStart" in {row["event"] for row in project.journal("agent.")}


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
    assert "2 failed" in project.cockpit("debug", "show", "hooks").stderr


def test_the_log_stays_within_bounds(tmp_path: Path) -> None:
    for _ in range(hook_log.LARGEST // 500 * 3):
        hook_log.append_line(str(tmp_path), "x" * 2_000)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"hook.log", "hook.log.old"}
    assert max(sizes.values()) <= hook_log.LARGEST + 1_000


MALFORMED = [
    *(b"", b"{'session_id': 1}", b"[1, 2]", b"\xff\xfe\x00\x01", b'{"a":' * 100_000),
    b'{"session_id": "s", "hook_event_name": "PostToolUse", "tool_input": {"comm',
    *(b'{"hook_event_name": "Stop"}', b'{"session_id": "s"}'),
    b'{"session_id": 7, "hook_event_name": ["Stop"]}',
]


def test_what_is_no_payload_is_one_line_in_the_log(project: Project) -> None:
    for count, payload in enumerate(MALFORMED, 1):
        assert project.call(payload, "--agent", "claude") is None
        lines = project.log()
        assert len(lines) == count and "claude: ignored a payload" in lines[-1], payload[:99]
    unknown = project.payload("claude", "stop", hook_event_name="BrainTransfer\x1b[31m")
    assert project.call(unknown) is None
    assert "'BrainTransfer\\x1b[31m' is not a known event" in project.log()[-1]
    assert project.rows("SELECT * FROM hook_pending") == []


STRANGE: list[dict[str, Any]] = [
    {"tool_name": "Teleport", "tool_input": {"where": "home"}},
    {"tool_name": None},
    {"tool_input": "x"},
    {"tool_input": {"file_path": 7}},
    {"tool_name": "Bash", "tool_response": 9},
    {"tool_input": {"file_path": "\ud800.py"}, "session_id": "s\ud800"},
    {"cwd": "\0", "tool_input": {"file_path": "a\0b"}},
    {"cwd": "/there/is/none"},
    {"session_id": "s" * 5_000},
    {"tool_name": "Bash", "tool_input": {"command": ["ls", "a b"]}},
    {"tool_input": {"file_path": "/tmp/notes.txt", "content": "x"}},
]


def test_a_strange_payload_stops_nobody(project: Project) -> None:
    body = json.loads(project.payload("claude", "post_tool_use_write"))
    for changes in STRANGE:
        assert project.call(json.dumps({**body, **changes}).encode(), "--agent", "claude") is None
    project.call(written(project, "after.py"))
    files = project.wip()["files_modified"]
    assert "after.py" in files and "/tmp/notes.txt" not in files
    assert project.rows("SELECT * FROM hook_pending") == []
    assert project.log() == []


def test_calls_at_once_lose_nothing(project: Project) -> None:
    names = [f"f{number:02}.py" for number in range(6)]
    calls = [(project.start("--agent", "claude"), written(project, name)) for name in names]
    for process, payload in calls:
        assert process.stdin is not None
        process.stdin.write(payload)
        process.stdin.close()
        process.stdin = None
    for process, _ in calls:
        out, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, out, err) == (0, b"", b"")
    assert project.wip()["files_modified"] == names
    assert len([row for row in project.journal("agent.hook") if row["tool"] == "Write"]) == len(
        names
    )


def test_without_input_or_a_reader_it_ends_as_well(project: Project) -> None:
    words = ["sh", "-c", f"exec {shlex.quote(sys.executable)} -m cockpit hook <&-"]
    done = subprocess.run(
        words, cwd=project.root, env=project.env, capture_output=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0
    process = project.start("--agent", "claude")
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdout.close()
    process.stdin.write(project.payload("claude", "session_start_startup"))
    process.stdin.close()
    assert process.wait(timeout=PATIENCE_S) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_call_loads_neither_click_nor_textual(project: Project) -> None:
    """An agent waits for its hooks, so that they stay quick."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "cockpit", "hook"],
        cwd=project.root,
        env=project.env,
        input=project.payload("claude", "post_tool_use_write"),
        capture_output=True,
        timeout=PATIENCE_S,
    )
    names = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "cockpit.hook.hook_call" in names
    assert not names & {"click", "textual"}


def test_where_no_project_is_nothing_is_made(bare: Project) -> None:
    (bare.root / ".cockpit").mkdir()
    before = sorted(bare.root.rglob("*"))
    for name in ("session_start_startup", "post_tool_use_write", "stop"):
        assert bare.told("claude", name) is None
    assert bare.call(b"no JSON") is None
    assert sorted(bare.root.rglob("*")) == before
