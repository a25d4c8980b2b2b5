"""Streamable HTTP: many clients, each with its own token; nobody without one, and no page in a browser."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_world import COMMAND, PATIENCE_S, VERSION, Project

pytestmark = pytest.mark.slow

SCOPES = ("work.read", "work.write", "orientation.read", "orientation.propose")
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def address(project: Project) -> Iterator[str]:
    """A server on a free port."""
    process = subprocess.Popen(
        [*COMMAND, "mcp", "--http", "127.0.0.1:0", "--tier", "all"],
        cwd=project.root,
        env=project.env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    told = ""
    for told in process.stderr:
        if "Listening" in told:
            break
    yield told.split()[2].rstrip(";.")
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in rest


async def post(address: str, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(verify=False) as client:  # certificates take 30 ms to load
        return await client.post(address, json=HELLO, headers={**ACCEPT, **headers})


async def a_client_with_a_token_works_as_on_standard_input(project: Project, address: str) -> None:
    bearer = {"Authorization": f"Bearer {project.token('agent/one', *SCOPES)}"}
    async with (
        httpx2.AsyncClient(headers=bearer, timeout=PATIENCE_S, verify=False) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        assert len((await client.list_tools()).tools) > 30
        await client.call_tool("create_task", {"title": "Over HTTP"})
        asked = await client.call_tool(
            "request_context",
            {"purpose": "p", "question": "q", "scope": ["file:shapes.py"], "wait_s": 0},
        )
        told = json.loads(asked.content[0].text)  # type: ignore[union-attr]  # every answer is text
        project.decide(told["proposal_id"])
        again = await client.call_tool(
            "request_context", {"proposal_id": told["proposal_id"], "wait_s": 60}
        )
        facts = json.loads(again.content[0].text)["facts"]  # type: ignore[union-attr]  # text
    assert "return a * b" in facts[0]["text"]
    assert project.actors("task.changed") == ["agent/one"]


async def connections_have_the_limits_of_cockpit_serve(_: Project, address: str) -> None:
    """Text that is not HTTP is answered by the protocol that also cuts off slow heads."""
    port = int(address.rpartition(":")[2].partition("/")[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"no http\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        assert b'"code": "malformed"' in await reader.read()
    writer.close()


async def without_a_token_and_with_a_wrong_one_nothing_is_served(
    project: Project, address: str
) -> None:
    assert (await post(address)).status_code == 401
    assert (await post(address, Authorization="Bearer ckp_wrong")).status_code == 401
    assert (await post(address, Authorization="Basic Zm9vOmJhcg==")).status_code == 401
    cap_id, secret = project.issued("agent/late", *SCOPES)
    assert (await post(address, Authorization=f"Bearer {secret}")).status_code == 200
    project.revoke(cap_id)
    assert (await post(address, Authorization=f"Bearer {secret}")).status_code == 401


async def another_host_or_origin_is_refused_even_with_a_token(
    project: Project, address: str
) -> None:
    bearer = f"Bearer {project.token('agent/one', *SCOPES)}"
    port = address.split(":")[2].split("/")[0]
    wrong: list[dict[str, str]] = [
        {"Host": "evil.example"},
        {"Host": f"evil.example:{port}"},
        {"Host": "127.0.0.1:1"},
        {"Host": f"127.0.0.1.evil.example:{port}"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ]
    codes = [(await post(address, Authorization=bearer, **one)).status_code for one in wrong]
    assert codes == [421, 421, 421, 421, 403, 403, 403]
    own = f"http://127.0.0.1:{port}"
    assert (await post(address, Authorization=bearer, Origin=own)).status_code == 200


async def a_body_that_is_too_long_or_no_json_is_refused(project: Project, address: str) -> None:
    bearer = {"Authorization": f"Bearer {project.token('agent/one', *SCOPES)}", **ACCEPT}
    async with httpx2.AsyncClient(verify=False) as client:
        long = await client.post(
            address,
            content=b"[" + b" " * 1_000_001,
            headers={**bearer, "Content-Type": "application/json"},
        )
        text = await client.post(
            address, content=b"{}", headers={**bearer, "Content-Type": "text/plain"}
        )
    assert long.status_code == 413
    assert text.status_code == 400


async def a_session_belongs_to_the_token_that_began_it(project: Project, address: str) -> None:
    first, second = (project.token(name, *SCOPES) for name in ("agent/one", "agent/two"))
    begun = await post(address, Authorization=f"Bearer {first}")
    session = begun.headers["mcp-session-id"]
    listing: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    codes = []
    async with httpx2.AsyncClient(verify=False) as client:
        for secret in (first, second):
            answer = await client.post(
                address,
                json=listing,
                headers={
                    **ACCEPT,
                    "Authorization": f"Bearer {secret}",
                    "Mcp-Session-Id": session,
                    "MCP-Protocol-Version": VERSION,
                },
            )
            codes.append(answer.status_code)
    assert codes == [200, 404]


async def test_many_clients_each_with_its_token(project: Project, address: str) -> None:
    """One after the other at one server."""
    for check in (
        a_client_with_a_token_works_as_on_standard_input,
        connections_have_the_limits_of_cockpit_serve,
        without_a_token_and_with_a_wrong_one_nothing_is_served,
        another_host_or_origin_is_refused_even_with_a_token,
        a_body_that_is_too_long_or_no_json_is_refused,
        a_session_belongs_to_the_token_that_began_it,
    ):
        await check(project, address)


def test_options_that_mean_nothing_are_refused(project: Project) -> None:
    for words in (
        ("--http", "0.0.0.0:0"),
        ("--http", "8765"),
    ):
        project.run("mcp", *words, expect=2)
