"""MCP servers in sessions, as programs and at addresses: listed, approved, compared before each call."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tool_world import calling, read_proposals, read_results, run_session, wait_for_call

from cockpit.act.mcp_servers.server_connection import ServerFailed
from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.loop.tools.approve_tools import ToolChanged, approve_server_tools
from cockpit.store.journal.event_types import Action

pytestmark = pytest.mark.slow

SEARCH = calling("archive.search", '{ query = "ooda", limit = 3 }')


async def approve(runtime, names=("search",)):
    listing = await runtime.engine.added.servers.list_tools("archive")
    chosen = [tool for tool in listing.tools if tool.function in names]
    await approve_server_tools(runtime.engine.added, "archive", chosen, by="person")
    return chosen


def calls(project: Path) -> list[dict[str, object]]:
    file = project / "calls.txt"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def phases(runtime, session_id):
    return await runtime.store.read(
        lambda c: c.execute(
            "SELECT action_type, outbox_actions.phase FROM outbox_actions JOIN wave_runs USING(wave_id)"
            " WHERE wave_runs.session_id=?",
            (session_id,),
        ).fetchall()
    )


async def events(runtime, action):
    return await runtime.store.read(
        lambda c: [
            json.loads(text)
            for (text,) in c.execute(
                "SELECT detail_json FROM journal WHERE action=? ORDER BY seq", (str(action),)
            )
        ]
    )


async def test_a_call_is_an_action_and_the_server_ends_with_the_runtime(
    opened, script, project, stand_in
):
    async with opened(mcp=stand_in(allow=("search",))) as runtime:
        await approve(runtime)
        await runtime.engine.added.servers.close()
        session = await run_session(runtime, script(SEARCH), "ask")
        (result,) = await read_results(runtime, session.session_id)
        assert "found ooda" in result
        (proposal,) = await read_proposals(runtime, session.session_id)
        assert (proposal.body["type"], proposal.risk) == ("mcp_tool", "medium")
        assert proposal.decided_by == "rule:mcp.archive allow search"
        shown = dict(proposal.body["fields"])
        assert (
            "project writable" in shown["runs"] and shown["server's hints"] == "readOnlyHint: true"
        )
        assert calls(project) == [{"name": "search", "arguments": {"query": "ooda", "limit": 3}}]
        assert await phases(runtime, session.session_id) == [("mcp_tool", "confirmed")]
        process = runtime.engine.added.servers._open["archive"]._process.process
    assert process.returncode is not None


async def test_a_hint_lowers_nothing_and_without_a_rule_the_user_is_asked(
    opened, script, stand_in, project
):
    async with opened(mcp=stand_in(network=True)) as runtime:
        await approve(runtime)
        _session_id, running, shown = await wait_for_call(runtime, script(SEARCH), "all")
        assert (shown.risk, shown.status) == ("high", "pending")
        await runtime.reject(shown.proposal_id, reason="no")
        await asyncio.wait_for(running, 60)
        assert calls(project) == []


async def test_a_server_that_changes_its_words_is_not_called(opened, script, project, stand_in):
    async with opened(mcp=stand_in("rug", allow=("search",))) as runtime:
        (tool,) = await approve(runtime)
        (project / "calls.txt.changed").touch()
        session = await run_session(runtime, script(SEARCH), "all")
        (result,) = await read_results(runtime, session.session_id)
        assert "describes it otherwise by now" in result
        assert calls(project) == []
        *_, forgotten = await events(runtime, Action.APPROVAL_CHANGED)
        assert (forgotten["id"], forgotten["status"]) == ("mcp:archive.search", "forgotten")
        with pytest.raises(ToolChanged):
            await approve_server_tools(runtime.engine.added, "archive", [tool], by="person")
        # The next session does not have it any more.
        session = await run_session(runtime, script(SEARCH), "all")
        (result,) = await read_results(runtime, session.session_id)
        assert "is not a tool of this task" in result


@pytest.mark.parametrize(
    ("mode", "timeout_s", "words"),
    [
        ("hang", 1, "did not call search within 1 s"),
        ("exit", 60, "exit 3"),
        ("line", 60, "a message of more than 4 MiB"),
    ],
)
async def test_a_call_without_an_answer_is_uncertain_and_made_once(
    opened, script, project, stand_in, mode, timeout_s, words
):
    async with opened(mcp=stand_in(mode, allow=("search",), timeout_s=timeout_s)) as runtime:
        await approve(runtime)
        session = await run_session(runtime, script(SEARCH), "all")
        (result,) = await read_results(runtime, session.session_id)
        assert words in str(await events(runtime, Action.ACTION_UNCERTAIN))
        assert len(calls(project)) == 1
        # A policy leaves it: nothing is repeated.
        assert await phases(runtime, session.session_id) == [("mcp_tool", "failed_terminal")]
        assert len(await events(runtime, Action.ACTION_UNCERTAIN)) == 1
        assert "may have run, wholly or in part. Look first" in result


async def test_a_server_that_talks_too_much_is_answered_and_bounded(
    opened, script, project, stand_in
):
    """Lines without a message, requests of its own, forged answers; three megabytes; pages without end."""
    for number, (mode, most) in enumerate((("noisy", 200), ("huge", 30_000), ("pages", 200))):
        async with opened(mcp=stand_in(mode, allow=("search",))) as runtime:
            await approve(runtime)
            session = await run_session(runtime, script(SEARCH), "ask")
            (result,) = await read_results(runtime, session.session_id)
            assert "found ooda" in result and "forged" not in result
            assert len(result) < most + 1_000
            assert await phases(runtime, session.session_id) == [("mcp_tool", "confirmed")]
            assert len(calls(project)) == number + 1
            assert len(await read_proposals(runtime, session.session_id)) == 1


@pytest.mark.parametrize(
    ("mode", "patience_s", "words"),
    [("silent", 1, "did not answer within 1 s"), ("gone", 60, "no such database")],
)
async def test_a_server_that_does_not_start_is_named(opened, stand_in, mode, patience_s, words):
    async with opened(mcp=stand_in(mode, start_timeout_s=patience_s)) as runtime:
        with pytest.raises(ServerFailed, match=words):
            await runtime.engine.added.servers.list_tools("archive")


async def test_values_of_variables_never_come_back(opened, script, stand_in, monkeypatch):
    monkeypatch.setenv("STAND_IN_TOKEN", "correct-horse-battery")
    monkeypatch.setenv("OTHER_TOKEN", "hidden-from-it")
    servers = stand_in("secret", allow=("search",), env=("STAND_IN_TOKEN",))
    async with opened(mcp=servers) as runtime:
        await approve(runtime)
        session = await run_session(runtime, script(SEARCH), "ask")
        (result,) = await read_results(runtime, session.session_id)
        assert "[masked:STAND_IN_TOKEN]" in result and "correct-horse" not in result
        assert "OTHER_TOKEN" not in result


TOOL = {"name": "echo", "description": "Echo.", "inputSchema": {"type": "object", "properties": {}}}


class Answers(BaseHTTPRequestHandler):
    """A server of one tool; ``/moved`` leads elsewhere."""

    seen: list[tuple[str, str]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((body["method"], self.headers.get("Authorization", "")))
        if self.path == "/moved":
            self.send_response(307)
            port = self.server.server_address[1]
            self.send_header("Location", f"http://localhost:{port}/mcp")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if "id" not in body:
            self._send(202, None)
            return
        token = self.headers.get("Authorization", "")
        results = {
            "initialize": {
                "protocolVersion": body.get("params", {}).get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"},
            },
            "tools/list": {"tools": [TOOL]},
            "tools/call": {"content": [{"type": "text", "text": f"you sent {token}"}]},
        }
        result = results[body["method"]]
        self._send(200, {"jsonrpc": "2.0", "id": body["id"], "result": result})

    def do_GET(self) -> None:
        self._send(405, None)

    def do_DELETE(self) -> None:
        self._send(405, None)

    def _send(self, status: int, body: object) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    Answers.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def test_a_server_at_an_address_is_called_by_a_proposal_of_high_risk(
    opened, script, address, monkeypatch
):
    monkeypatch.setenv("WEB_TOKEN", "Bearer of-this-test")
    server = McpServer(
        "web", url=f"{address}/mcp", headers={"Authorization": "WEB_TOKEN"}, allow=("echo",)
    )
    async with opened(mcp={"web": server}) as runtime:
        listing = await runtime.engine.added.servers.list_tools("web")
        await approve_server_tools(runtime.engine.added, "web", listing.tools, by="person")
        session = await run_session(runtime, script(calling("web.echo", "{ }")), "all")
        (result,) = await read_results(runtime, session.session_id)
        assert "you sent [masked:WEB_TOKEN]" in result
        (proposal,) = await read_proposals(runtime, session.session_id)
        assert (proposal.risk, proposal.decided_by) == ("high", "rule:mcp.web allow echo")
        assert "outside this machine's sandbox" in dict(proposal.body["fields"])["runs"]
    assert ("tools/call", "Bearer of-this-test") in Answers.seen


async def test_a_server_that_leads_elsewhere_gets_no_header_there(opened, address, monkeypatch):
    monkeypatch.setenv("WEB_TOKEN", "Bearer of-this-test")
    server = McpServer(
        "web", url=f"{address}/moved", headers={"Authorization": "WEB_TOKEN"}, start_timeout_s=5
    )
    async with opened(mcp={"web": server}) as runtime:
        with pytest.raises(ServerFailed, match="web"):
            await runtime.engine.added.servers.list_tools("web")
    assert [method for method, _ in Answers.seen] == ["initialize"]
