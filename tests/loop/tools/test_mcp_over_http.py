"""An MCP server at an address: outside the sandbox, headers from variables, no other origin."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tool_world import calling, read_proposals, read_results, run_session

from cockpit.act.mcp_servers.server_connection import ServerFailed
from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.loop.tools.approve_tools import approve_server_tools

pytestmark = pytest.mark.slow

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
        "web",
        url=f"{address}/moved",
        headers={"Authorization": "WEB_TOKEN"},
        start_timeout_s=5,
    )
    async with opened(mcp={"web": server}) as runtime:
        with pytest.raises(ServerFailed, match="web"):
            await runtime.engine.added.servers.list_tools("web")
    assert [method for method, _ in Answers.seen] == ["initialize"]
