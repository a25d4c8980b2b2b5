"""Agents in the user's own terminals as sessions: title, state, process, terminal, tokens."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hook_world import SESSIONS, Project

from cockpit.agents.terminals.follow_events import (
    end_dead_sessions,
    follow_event,
    list_dead_sessions,
)
from cockpit.agents.terminals.read_transcript import read_claude_lines, read_codex_lines
from cockpit.agents.terminals.terminal_sessions import TerminalAgent
from cockpit.core.processes import process_name
from cockpit.store.db.database import Store
from cockpit.store.journal.details.sessions import SessionWaiting
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.seen_files import select_seen
from cockpit.store.sessions.sessions import Session


def session_of(project: Project, agent: str = "claude") -> Session:
    project.absorb()
    with Store.open(project.place.database) as store:
        found = store.read_now(lambda c: sessions.find_agent_session(c, agent, SESSIONS[agent]))
    assert found is not None
    return found


def test_a_session_follows_its_hooks(project: Project) -> None:
    project.told("claude", "session_start_startup")
    session = session_of(project)
    assert (session.status, session.transport, session.branch) == ("waiting", "hook", "main")
    project.told("claude", "user_prompt_submit")
    session = session_of(project)
    assert (session.status, session.title) == ("running", "Make expired tokens fail.")
    project.told("claude", "post_tool_use_write")
    project.told("claude", "stop")
    assert session_of(project).status == "waiting"
    # A second prompt is no new title, and its answer runs again.
    project.told("claude", "user_prompt_submit", prompt="And the tests?")
    session = session_of(project)
    assert (session.status, session.title) == ("running", "Make expired tokens fail.")
    project.told("claude", "session_end")
    assert session_of(project).status == "completed"
    touched = [row for row in project.journal("agent.hook") if "path" in row]
    assert [row["path"] for row in touched] == ["src/auth.py"]
    # The agent resumes its session, and so does ours.
    project.told("claude", "session_start_resume")
    assert session_of(project).status == "waiting"
    assert project.rows("SELECT count(*) FROM sessions")[0][0] == 1


def test_what_an_agent_of_cockpits_reports_belongs_to_its_session(project: Project) -> None:
    project.extra["COCKPIT_TASK"] = "T-1"
    project.told("claude", "user_prompt_submit")
    project.absorb()
    assert project.rows("SELECT count(*) FROM sessions")[0][0] == 0, "it has one already"
    del project.extra["COCKPIT_TASK"]
    with Store.open(project.place.database) as store:
        own = TerminalAgent("claude", "a-1", str(project.root))
        mine = store.write_now(lambda tx: follow_event(tx, own, "SessionStart", {})).session_id
    for named, belongs in ((mine, mine), ("s-nowhere", "")):
        project.extra["COCKPIT_SESSION"] = named
        project.told("claude", "session_start_startup")
        project.absorb()
        last = "SELECT session_id FROM journal WHERE action='agent.hook' ORDER BY seq DESC"
        assert project.rows(last)[0][0] == belongs
    assert project.rows("SELECT count(*) FROM sessions")[0][0] == 1


def test_a_waiting_permission_is_not_overwritten(project: Project) -> None:
    agent = TerminalAgent("claude", "a-1", str(project.root))
    with Store.open(project.place.database) as store:
        session = store.write_now(lambda tx: follow_event(tx, agent, "SessionStart", {}))
        detail = SessionWaiting(for_="proposal", why="rm")

        def ask(tx: Any) -> None:
            proposals.create(
                tx, proposal_id="p-1", kind="permission", session_id=session.session_id,
                wave_id="p-1", title="rm", body={}, risk="high",
            )  # fmt: skip
            sessions.set_status(tx, session.session_id, "waiting", detail=detail)

        store.write_now(ask)
        before = store.read_now(lambda c: c.execute("SELECT max(seq) FROM journal").fetchone())
        store.write_now(lambda tx: follow_event(tx, agent, "Notification", {"message": "?"}))
        after = store.read_now(lambda c: c.execute("SELECT max(seq) FROM journal").fetchone())
        assert before == after


def test_a_session_whose_process_is_gone_ends(project: Project) -> None:
    agent = TerminalAgent("claude", "a-1", str(project.root))
    child = subprocess.Popen(["sleep", "100"])
    body = {"place": {"process": process_name(child.pid), "terminal": "tmux", "window": "%3"}}
    with Store.open(project.place.database) as store:
        session = store.write_now(lambda tx: follow_event(tx, agent, "UserPromptSubmit", body))
        assert session.target == {"terminal": "tmux", "window": "%3"}
        assert store.read_now(list_dead_sessions) == []
        child.kill()
        child.wait()
        dead = store.read_now(list_dead_sessions)
        assert dead == [session.session_id]
        store.write_now(lambda tx: end_dead_sessions(tx, dead))
        ended = store.read_now(lambda c: sessions.load(c, session.session_id))
        assert (ended.status, ended.pid) == ("completed", "")


def claude_line(identity: str, **usage: int) -> str:
    message = {"id": identity, "model": "claude-opus-5-5", "usage": usage}
    return json.dumps({"type": "assistant", "message": message})


def test_tokens_come_from_the_transcript_each_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(project.env["HOME"]) / ".claude" / "projects" / "shop"
    folder.mkdir(parents=True)
    transcript = folder / "one.jsonl"
    first = claude_line("m1", input_tokens=10, cache_read_input_tokens=90, output_tokens=5)
    transcript.write_text(first + "\n" + first + "\n" + first[:20], encoding="utf-8")
    agent = TerminalAgent("claude", "a-1", str(project.root))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder.parents[1]))
    body = {"place": {"transcript": str(transcript)}}
    with Store.open(project.place.database) as store:
        session = store.write_now(lambda tx: follow_event(tx, agent, "Stop", body))
        assert (session.input_tokens, session.output_tokens) == (100, 5)
        with transcript.open("a", encoding="utf-8") as file:
            file.write(first[20:] + "\n")
            file.write(claude_line("m2", input_tokens=1, output_tokens=2) + "\nno JSON\n")
        session = store.write_now(lambda tx: follow_event(tx, agent, "Stop", body))
        assert (session.input_tokens, session.output_tokens) == (101, 7)
        assert session.cached_tokens == 90
        assert session.model == "runner:claude claude-opus-5-5"
        # A transcript that is none of the agent's is not read.
        other = project.root / "own.jsonl"
        other.write_text(claude_line("m3", input_tokens=1_000) + "\n", encoding="utf-8")
        body = {"place": {"transcript": str(other)}}
        session = store.write_now(lambda tx: follow_event(tx, agent, "Stop", body))
        assert session.input_tokens == 101


def test_codex_repeats_totals_and_strange_lines_count_nothing() -> None:
    for strange in (
        "",
        "{",
        "[]",
        '{"message": 3}',
        '{"message": {"usage": {"input_tokens": "x"}}}',
        f'{{"message": {{"id": "m", "usage": {{"input_tokens": {2**70}, "output_tokens": -3}}}}}}',
        f'{{"message": {{"id": "m", "usage": {{"cache_read_input_tokens": {10**15}}}}}}}',
    ):
        assert read_claude_lines([strange]).usage.tokens == 0
        assert read_codex_lines([strange], "nonsense").usage.tokens == 0

    def line(**totals: int) -> str:
        info = {"total_token_usage": totals}
        return json.dumps({"type": "event_msg", "payload": {"type": "token_count", "info": info}})

    first = read_codex_lines([line(input_tokens=10, cached_input_tokens=4, output_tokens=2)])
    assert (first.usage.input_tokens, first.usage.cached_tokens) == (10, 4)
    again = read_codex_lines([line(input_tokens=15, output_tokens=2)], first.seen)
    assert (again.usage.input_tokens, again.usage.output_tokens) == (5, 0)


def test_reads_in_a_terminal_are_kept_for_the_task(project: Project) -> None:
    auth = str(project.root / "src" / "auth.py")
    (project.root / ".env").write_text("KEY=1\n", encoding="utf-8")
    for given in (
        {"file_path": auth},
        {"file_path": auth},
        {"file_path": auth, "offset": 2, "limit": 10},
        {"file_path": str(project.root / ".env")},
        {"file_path": "/etc/hostname"},
    ):
        project.told("claude", "post_tool_use_read", tool_input=given)
    command = {"command": "head -n 1 src/auth.py"}
    project.told("claude", "post_tool_use_tests", tool_input=command, tool_response={"stdout": "x"})
    seen = project.journal("runner.file_read")
    assert [(row["path"], row["first"], row["last"]) for row in seen] == [
        ("src/auth.py", 1, 2),
        ("src/auth.py", 2, 2),
        ("src/auth.py", 1, 1),
    ]
    # A read touches nothing.
    assert [row for row in project.journal("agent.hook") if "path" in row] == []
    with Store.open(project.place.database) as store:
        parts = store.read_now(lambda connection: select_seen(connection, "T-1"))
    assert [(part.path, part.first, part.last, part.agent) for part in parts] == [
        ("src/auth.py", 1, 2, "claude")
    ]
