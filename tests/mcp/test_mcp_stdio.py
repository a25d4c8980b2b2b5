"""The wire: what a client on standard input and output gets, byte by byte, and what outlives the server."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys

import pytest
from mcp_world import Project, Wire

from cockpit.observe.count_tokens import count_tokens
from cockpit.store.journal import journal

pytestmark = pytest.mark.slow

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "scripted", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def test_the_core_tools_cost_little_in_either_version_of_the_protocol(project: Project) -> None:
    with Wire(project).greet() as wire:
        listed = wire.ask("tools/list")
        assert len(json.loads(listed)["result"]["tools"]) <= 12
    with Wire(project) as wire:
        modern = wire.ask("tools/list", {"_meta": MODERN})
        assert json.loads(modern)["result"]["tools"] == json.loads(listed)["result"]["tools"]
    assert len(listed) <= 4_000
    assert len(modern) <= 4_000


def test_a_half_of_a_character_is_answered_like_any_other(project: Project) -> None:
    with Wire(project).greet() as wire:
        made = wire.call("create_task", title="cut \ud83d")
        assert made["title"] == "cut ?"
        assert wire.call("create_task", title="whole \U0001f600")["title"] == "whole \U0001f600"
        assert wire.call("create_task", title="said \\ud83d")["title"] == "said \\ud83d"


def test_an_error_quotes_no_more_than_tells_what_is_wrong(project: Project) -> None:
    with Wire(project).greet() as wire:
        words = wire.refused("get_tasks", fields="x" * 1_000_000)
        assert len(words) < 2_100
        assert "It takes: status" in words


def test_every_tier_holds_the_smaller_one(project: Project) -> None:
    found = []
    for tier in ("core", "standard", "all"):
        with Wire(project, "--tier", tier).greet() as wire:
            found.append(wire.tools())
    assert len(found[0]) < len(found[1]) < len(found[2])
    assert set(found[0]) < set(found[1]) < set(found[2])
    assert len(found[2]) == len(set(found[2]))


def test_ten_tasks_at_three_sizes(project: Project) -> None:
    words = {"description": "What it is about. " * 6, "acceptance_criteria": "It holds. " * 6}
    with Wire(project).greet() as wire:
        for number in range(10):
            made = wire.call("create_task", title=f"Task {number}", **words)
            wire.call("update_task_wip", task_id=made["id"], wip_data={"phase": "testing"})
        sizes = []
        for fields in ("minimal", "standard", "full"):
            ask = {"name": "get_tasks", "arguments": {"fields": fields}}
            answer = wire.ask("tools/call", ask)
            sizes.append(len(answer))
            told = json.loads(json.loads(answer)["result"]["content"][0]["text"])
            assert len(told["tasks"]) == 10
            if fields == "minimal":
                assert all(set(task) == {"id", "title", "status"} for task in told["tasks"])
            elif fields == "standard":
                assert all("wip" not in task for task in told["tasks"])
            else:
                assert told["tasks"][0]["wip"]["phase"] == "testing"
    assert sizes[0] <= 1_000
    assert sizes[0] < sizes[1] < sizes[2]


def test_an_answer_never_grows_past_its_cap_and_says_where_it_goes_on(project: Project) -> None:
    project.extra["COCKPIT_ANSWER_TOKENS"] = "4000"
    with Wire(project).greet() as wire:
        for number in range(30):
            wire.call("create_task", title=f"Task {number}", description="word " * 300)
        seen: list[str] = []
        offset = 0
        while True:
            told = wire.call("get_tasks", fields="standard", offset=offset)
            assert count_tokens(json.dumps(told, separators=(",", ":"))) <= 4_000
            seen += [task["id"] for task in told["tasks"]]
            if "next_offset" not in told:
                break
            assert told["more"] == 30 - len(seen)
            offset = told["next_offset"]
    assert seen == [f"T-{number}" for number in range(1, 31)]
    assert offset > 0


def test_a_write_that_was_answered_outlives_a_kill(project: Project) -> None:
    with Wire(project).greet() as wire:
        wire.call("create_task", title="Kept")
        wire.call("add_task_activity", task_id="T-1", activity_type="note", description="seen")
        wire.call("update_task_wip", task_id="T-1", wip_data={"phase": "testing"})
        wire.process.send_signal(signal.SIGKILL)
        wire.process.wait()
    with sqlite3.connect(project.database) as connection:
        rows = connection.execute("SELECT title, work_in_progress FROM tasks").fetchall()
        noted = connection.execute("SELECT description FROM task_activity").fetchall()
    connection.close()
    assert [title for title, _ in rows] == ["Kept"]
    assert json.loads(rows[0][1])["phase"] == "testing"
    assert ("seen",) in noted


def test_nothing_but_the_protocol_is_on_standard_output(project: Project) -> None:
    with Wire(project).greet() as wire:
        wire.call("create_task", title="One")
        wire.refused("get_task", task_id="T-99")
        wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}})
        assert wire.process.stdin is not None
        wire.process.stdin.write(b"this is not JSON\n")
        wire.process.stdin.flush()
        assert wire.call("get_task", task_id="T-1")["title"] == "One"
        code, rest, complaints = wire.leave()
    assert code == 0
    assert [line for line in rest.splitlines() if json.loads(line).get("jsonrpc") != "2.0"] == []
    assert "Traceback" not in complaints


def test_it_ends_when_it_is_told_to(project: Project) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with Wire(project, command=(sys.executable, "-m", "cockpit")).greet() as wire:
            wire.call("get_session_context")
            wire.process.send_signal(number)
            assert wire.process.wait(timeout=30) == 130


def test_a_client_that_stops_reading_ends_it_quietly(project: Project) -> None:
    with Wire(project).greet() as wire:
        assert wire.process.stdout is not None
        wire.process.stdout.close()
        wire.send({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        assert wire.process.wait(timeout=30) in (0, 141)
        assert wire.process.stderr is not None
        assert b"Traceback" not in wire.process.stderr.read()
        wire.process.stdout = None


def test_a_token_that_opens_nothing_starts_nothing(project: Project) -> None:
    project.extra["COCKPIT_TOKEN"] = "ckp_unknown"
    project.run("mcp", expect=3)


def test_a_token_revoked_while_it_serves_opens_nothing_from_then_on(project: Project) -> None:
    cap_id, secret = project.issued("agent/claude", "work.read", "work.write")
    project.extra["COCKPIT_TOKEN"] = secret
    with Wire(project).greet() as wire:
        wire.call("create_task", title="Before")
        project.revoke(cap_id)
        assert "revoked" in wire.refused("create_task", title="After")
        assert "revoked" in wire.refused("get_tasks")


def test_what_a_token_may_not_do_is_refused_in_words(project: Project) -> None:
    project.extra["COCKPIT_TOKEN"] = project.token("agent/reader", "work.read")
    with Wire(project).greet() as wire:
        assert wire.call("get_tasks") == {"tasks": []}
        assert "work.write" in wire.refused("create_task", title="No")
        assert wire.call("get_tasks") == {"tasks": []}


def test_two_clients_at_once_lose_nothing(project: Project) -> None:
    with Wire(project).greet("one") as one, Wire(project).greet("two") as two:
        one.call("create_task", title="Shared")
        for number in range(25):
            for wire, name in ((one, "one"), (two, "two")):
                data = {"decisions": [f"{name} {number}"], "files_modified": [f"{name}/{number}"]}
                call = {
                    "name": "update_task_wip",
                    "arguments": {"task_id": "T-1", "wip_data": data},
                }
                wire.send(
                    {"jsonrpc": "2.0", "id": f"{number}", "method": "tools/call", "params": call}
                )
        for wire in (one, two):
            answers = [json.loads(wire.line()) for _ in range(25)]
            assert [answer["result"]["isError"] for answer in answers] == [False] * 25
        kept = two.call("get_task", task_id="T-1", fields="full")["wip"]
    assert len({json.dumps(one) for one in kept["decisions"]}) == 50
    assert len(kept["files_modified"]) == 50


SERVED = """
import sys
from cockpit.cli import main
code = main(["mcp"])
heavy = {"textual", "widgets.work.work_pane", "pydantic_ai", "anthropic", "openai", "numpy", "tiktoken"}
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


def test_keeping_tasks_loads_neither_screen_nor_model_nor_compiler(project: Project) -> None:
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    }
    call = {"name": "create_task", "arguments": {"title": "One"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    done = subprocess.run(
        [sys.executable, "-c", SERVED],
        cwd=project.root,
        env=project.env,
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_without_standard_input_it_says_so(project: Project) -> None:
    words = f'exec "{sys.executable}" -m cockpit mcp <&-'
    done = subprocess.run(
        ["sh", "-c", words], cwd=project.root, env=project.env, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Standard input is closed" in done.stderr


def test_calls_are_logged_and_refusals_are_journalled_once_a_minute(project: Project) -> None:
    """Also those of a client that only uses the backlog, for which no engine opens."""
    log = project.root.parent / "steps.jsonl"
    project.extra = {
        "COCKPIT_LOG_JSON": str(log),
        "COCKPIT_TOKEN": project.token("reader", "work.read"),
    }
    with Wire(project).greet() as wire:
        for _ in range(50):
            assert "may not" in wire.refused("create_task", title="Not mine to make")
        assert wire.leave()[0] == 0
    with project.store() as store:
        rows = [row for row in store.read_now(journal.rows) if row.action == "access.refused"]
    details = [row.raw_detail() for row in rows]
    assert [(row.result, row.error_code) for row in rows] == [("refused", "not_allowed")] * 2
    assert [detail["count"] for detail in details] == [1, 49]
    assert {(detail["face"], detail["request"]) for detail in details} == {("mcp", "create_task")}
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [line["action"] for line in lines] == ["access.refused"] * 2
