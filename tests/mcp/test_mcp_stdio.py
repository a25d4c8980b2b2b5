"""The wire: what a client on standard input and output gets, byte by byte, and what outlives the server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import pytest
from mcp_world import VERSION, Near, Project, Wire

from cockpit.mcp.tool_registry import tools_in_tier
from cockpit.observe.count_tokens import count_tokens
from cockpit.store.journal import journal

pytestmark = pytest.mark.slow

QUESTION = {"purpose": "see", "question": "what is area?", "scope": ["file:shapes.py"]}


def test_nothing_but_the_protocol_is_on_standard_output(project: Project) -> None:
    """Also what the twelve tools of the core answer, errors, and half of a character: whole and short."""
    with Wire(project).greet() as wire:
        listed = wire.ask("tools/list")
        names = {tool["name"] for tool in json.loads(listed)["result"]["tools"]}
        assert (
            names == {tool.name for tool in tools_in_tier("core")}
            and len(names) <= 12
            and len(listed) <= 8_000
        )
        # Hooks name what these two answer.
        assert {"get_skill", "search_knowledge"} <= names
        assert "--tier" in wire.refused("archive_task", task_id="T-99")
        assert wire.call("create_task", title="cut \ud83d")["title"] == "cut ?"
        assert wire.call("create_task", title="whole \U0001f600")["title"] == "whole \U0001f600"
        for number in range(8):
            wire.call("create_task", title=f"Task {number}", description="What it is about. " * 6)
        answer = wire.ask("tools/call", {"name": "get_tasks", "arguments": {"fields": "minimal"}})
        assert len(answer) <= 1_000
        words = wire.refused("get_tasks", fields="x" * 1_000_000)
        assert len(words) < 2_100 and "It takes: status" in words
        wire.refused("get_task", task_id="T-99")
        wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}})
        assert wire.process.stdin is not None
        wire.process.stdin.write(b"this is not JSON\n")
        wire.process.stdin.flush()
        assert json.loads(wire.line())["error"]["code"] == -32700
        assert wire.call("get_task", task_id="T-1")["title"] == "cut ?"
        code, rest, complaints = wire.leave()
    assert code == 0
    assert [line for line in rest.splitlines() if json.loads(line).get("jsonrpc") != "2.0"] == []
    assert "Traceback" not in complaints


def test_what_is_no_request_is_answered_with_an_error_of_the_protocol(project: Project) -> None:
    """And the connection goes on, whatever came."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    hello = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "odd"}}
    wrong: list[tuple[Any, int, object]] = [
        ("{", -32700, None),
        ('{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700, None),
        ("[" * 100_000, -32700, None),
        ([], -32600, None),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, -32600, None),
        ({"jsonrpc": "2.0", "id": 1, "method": 7}, -32600, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, -32600, 1),
        ({"jsonrpc": "2.0", "id": "d", "method": "server/discover"}, -32601, "d"),
        ({**call, "params": {"arguments": {}}}, -32602, 1),
        ({**call, "params": {"name": 7}}, -32602, 1),
        ({**call, "params": {"name": "get_tasks", "arguments": [1]}}, -32602, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}, -32602, 1),
    ]
    with Near(project) as wire:
        early = [json.loads(wire.ask(method)) for method in ("tools/list", "tools/call")]
        assert [answer["error"]["code"] for answer in early] == [-32600, -32600]
        greeted = json.loads(wire.ask("initialize", hello))["result"]
        assert greeted["protocolVersion"] == VERSION  # the newest, for a version that is none
        for message, code, request_id in wrong:
            wire.send_line(message if isinstance(message, str) else json.dumps(message))
            answer = json.loads(wire.line())
            assert (answer["error"]["code"], answer["id"]) == (code, request_id), message
        for unheard in ({"id": 1, "result": {}}, {"method": "notifications/unheard_of"}):
            wire.send({"jsonrpc": "2.0", **unheard})
        assert json.loads(wire.ask("ping"))["result"] == {}
        waits = {"name": "request_context", "arguments": {**QUESTION, "wait_s": 600}}
        wire.send({"jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": waits})
        assert json.loads(wire.ask("ping"))["result"] == {}
        cancel = {"requestId": "w", "reason": "enough"}
        wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})
        assert wire.call("get_tasks") is not None


def test_a_client_on_standard_input_loads_no_sdk(project: Project) -> None:
    report = (
        "import sys\nfrom cockpit.cli import main\ncode = main(['mcp'])\n"
        "heavy = {'mcp', 'pydantic', 'textual', 'numpy', 'anthropic', 'openai'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)\nsys.exit(code)"
    )
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    done = subprocess.run(
        [sys.executable, "-c", report],
        input=json.dumps(listing) + "\n",
        cwd=project.root,
        env=project.env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "[]"


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
    with Near(project) as wire:
        wire.greet().call("create_task", title="Before")
        project.revoke(cap_id)
        assert "revoked" in wire.refused("create_task", title="After")
        assert "revoked" in wire.refused("get_tasks")


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


def test_an_answer_never_grows_past_its_cap_and_says_where_it_goes_on(project: Project) -> None:
    """And a signal ends the server."""
    with Wire(project).greet() as wire:
        for number in range(16):
            wire.call("create_task", title=f"Task {number}", description="word " * 600)
        first = wire.call("get_tasks", fields="standard")
        assert count_tokens(json.dumps(first, separators=(",", ":"))) <= 8_000
        assert first["more"] == 16 - len(first["tasks"]) > 0
        rest = wire.call("get_tasks", fields="standard", offset=first["next_offset"])
        wire.process.send_signal(signal.SIGTERM)
        assert wire.process.wait(timeout=30) == 130
    ids = [task["id"] for task in first["tasks"] + rest["tasks"]]
    assert ids == [f"T-{number}" for number in range(1, len(ids) + 1)]


def test_two_clients_at_once_lose_nothing_and_a_kill_neither(project: Project) -> None:
    with Wire(project).greet("one") as one, Wire(project).greet("two") as two:
        one.call("create_task", title="Shared")
        for number in range(20):
            for wire, name in ((one, "one"), (two, "two")):
                data = {"decisions": [f"{name} {number}"], "files_modified": [f"{name}/{number}"]}
                call = {"task_id": "T-1", "wip_data": data}
                params = {"name": "update_task_wip", "arguments": call}
                wire.send(
                    {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
                )
        for wire in (one, two):
            answers = [json.loads(wire.line()) for _ in range(20)]
            assert [answer["result"]["isError"] for answer in answers] == [False] * 20
            wire.process.send_signal(signal.SIGKILL)
            wire.process.wait()
    kept = json.loads(project.run("tasks", "T-1", "--fields", "full", "--json"))["wip"]
    assert len({json.dumps(one) for one in kept["decisions"]}) == 40
    assert len(kept["files_modified"]) == 40
