"""Answers given without the SDK are the SDK's answers, and what is unusual goes to the SDK."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from cockpit.config.load_settings import load_settings
from cockpit.core.project_paths import locate_project
from cockpit.mcp import stdio_transport
from cockpit.mcp.answer_call import ToolServer
from cockpit.mcp.call_dispatcher import Dispatcher
from cockpit.mcp.plain_messages import ENVELOPE_VERSION, HANDSHAKE_VERSIONS, read_plain
from cockpit.mcp.plain_protocol import PlainProtocol
from cockpit.mcp.server import create_server
from cockpit.mcp.stdio_lines import Wire
from cockpit.store.db.database import Store

pytestmark = pytest.mark.slow

Script = Sequence[tuple[str, bool]]
"""Lines of a client, and whether each is answered."""

PREFIX = "io.modelcontextprotocol/"
ABOUT = {"name": "scripted", "version": "1"}
META = {
    f"{PREFIX}protocolVersion": ENVELOPE_VERSION,
    f"{PREFIX}clientInfo": ABOUT,
    f"{PREFIX}clientCapabilities": {"sampling": {}, "roots": {"listChanged": True}},
}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": ABOUT}


class ScriptedWire:
    """A client that sends its next line when the last was answered."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._answered = asyncio.Event()
        self.answers: list[Any] = []

    async def lines(self) -> AsyncIterator[str]:
        for line, is_answered in self._script:
            self._answered.clear()
            yield line + "\n"
            if is_answered:
                await self._answered.wait()

    async def write(self, text: str) -> None:
        assert text.endswith("\n")
        self.answers.append(json.loads(text))
        self._answered.set()

    def stop(self) -> None:
        raise AssertionError("the client still reads")


async def answer_both(script: Script, tools: ToolServer) -> tuple[list[Any], list[Any]]:
    plain, sdk = ScriptedWire(script), ScriptedWire(script)
    await PlainProtocol(tools, "", cast(Wire, plain)).serve()
    await stdio_transport.serve(create_server(tools), sdk.lines(), cast(Wire, sdk), "none")
    return plain.answers, sdk.answers


def request(method: str, params: object = None, request_id: object = 7) -> tuple[str, bool]:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return json.dumps(message if params is None else {**message, "params": params}), True


def notify(method: str, params: object = None) -> tuple[str, bool]:
    message = {"jsonrpc": "2.0", "method": method}
    return json.dumps(message if params is None else {**message, "params": params}), False


def call(name: object, arguments: object = None, **more: object) -> tuple[str, bool]:
    return request("tools/call", {"name": name, "arguments": arguments, **more})


OPENED = [request("initialize", HELLO, "a"), notify("notifications/initialized")]
EVERYDAY = [
    request("ping"),
    request("tools/list"),
    request("tools/list", {}),
    call("get_tasks"),
    call("get_tasks", {"limit": 3}, _meta={"progressToken": 4}),
    call("get_tasks", {"unknown": "\u2028 \U0001f600 \x00"}),
    call("get_task", {"task_id": "T-404"}),
    call("no_such_tool", {}),
    notify("notifications/roots/list_changed"),
    notify("notifications/cancelled", {"requestId": 99, "reason": "not there"}),
    notify("notifications/unheard_of", {"x": 1}),
]
ENVELOPED = [
    request("server/discover", {"_meta": META}, 1),
    request("tools/list", {"_meta": META}, "two"),
    call("get_tasks", {}, _meta=META),
    call("get_tasks", {"wrong": 1}, _meta={**META, "progressToken": "t"}),
]
UNUSUAL = {
    "no such method": request("foo/bar"),
    "a second handshake": request("initialize", HELLO),
    "a call without a name": request("tools/call", {"arguments": {}}),
    "a name that is not a text": call(7),
    "arguments that are not an object": call("get_tasks", [1]),
    "a cursor": request("tools/list", {"cursor": "next"}),
    "a task": call("get_tasks", {}, task={"ttl": 1}),
    "an envelope": request("tools/list", {"_meta": META}),
    "an odd token": call("get_tasks", {}, _meta={"progressToken": 1.5}),
    "metadata that is not an object": call("get_tasks", {}, _meta=1),
    "an envelope of no version": request("tools/list", {"_meta": {**META, f"{PREFIX}protocolVersion": "1"}}),
    "an envelope of odd capabilities": request(
        "tools/list", {"_meta": {**META, f"{PREFIX}clientCapabilities": {"roots": 1}}}
    ),
    "an envelope of an odd client": request(
        "tools/list", {"_meta": {**META, f"{PREFIX}clientInfo": {"name": 1}}}
    ),
    "a discovery": request("server/discover", {}),
    "no JSON": ("{", False),
    "a list": ("[]", False),
    "not the protocol": ('{"jsonrpc":"1.0","id":1,"method":"ping"}', False),
    "not a number": ('{"jsonrpc":"2.0","id":NaN,"method":"ping"}', False),
    "a deep one": ("[" * 100_000, False),
    "an answer": ('{"jsonrpc":"2.0","id":1,"result":{}}', False),
}  # fmt: skip
OPENINGS = {
    "a list first": request("tools/list"),
    "a notice first": notify("notifications/initialized"),
    "a handshake of odd capabilities": request("initialize", {**HELLO, "capabilities": 1}),
    "a handshake of odd roots": request("initialize", {**HELLO, "capabilities": {"roots": {"x": "x"}}}),
    "a handshake of many capabilities": request(
        "initialize",
        {**HELLO, "capabilities": {"sampling": {"tools": {}}, "elicitation": {"form": {"a": 1}}}},
    ),
    "a handshake without a client": request("initialize", {"protocolVersion": "1", "capabilities": {}}),
    "an enveloped handshake": request("initialize", {**HELLO, "_meta": META}),
    "a handshake of an unknown version": request("initialize", {**HELLO, "protocolVersion": "1999-01-01"}),
    **{f"version {version}": request("initialize", {**HELLO, "protocolVersion": version})
       for version in HANDSHAKE_PROTOCOL_VERSIONS},
}  # fmt: skip


def scripts() -> dict[str, Script]:
    opened = {f"later: {name}": [*OPENED, *EVERYDAY[:2], line] for name, line in UNUSUAL.items()}
    enveloped = {f"enveloped: {name}": [*ENVELOPED, line] for name, line in UNUSUAL.items()}
    first = {f"first: {name}": [line, *OPENED, *EVERYDAY[:4]] for name, line in OPENINGS.items()}
    return {
        "everyday": [*OPENED, *EVERYDAY],
        "enveloped": ENVELOPED,
        "enveloped call first": [*ENVELOPED[2:], request("ping", {"_meta": META})],
        "plain again": [*OPENED, UNUSUAL["no such method"], *EVERYDAY],
        **opened,
        **enveloped,
        **first,
    }


async def test_answers_are_those_of_the_sdk(tmp_path: Path) -> None:
    place = locate_project(tmp_path)
    place.prepare()
    settings = load_settings(None, env={}).runtime
    with Store.open(place.database) as store:
        dispatcher = Dispatcher(store, place, settings)
        tools = ToolServer(dispatcher, "core")
        for name, script in scripts().items():
            async with asyncio.timeout(60):
                plain, sdk = await answer_both(script, tools)
            assert plain == sdk, name
            assert len(plain) == sum(is_answered for _, is_answered in script), name
        await dispatcher.close()


async def test_the_sdks_own_client_is_served_without_the_sdk(tmp_path: Path) -> None:
    for line, _ in (*OPENED, *EVERYDAY, *ENVELOPED):
        assert read_plain(line) is not None, line
    assert tuple(HANDSHAKE_PROTOCOL_VERSIONS) == HANDSHAKE_VERSIONS
    assert tuple(MODERN_PROTOCOL_VERSIONS) == (ENVELOPE_VERSION,)
    locate_project(tmp_path).prepare()
    report = (
        "import sys\nfrom cockpit.cli import main\ncode = main(['mcp'])\n"
        "heavy = {'mcp', 'pydantic', 'textual', 'numpy', 'anthropic', 'openai'} & set(sys.modules)\n"
        "open('loaded', 'w').write(str(sorted(heavy)))\nsys.exit(code)"
    )
    server = StdioServerParameters(
        command=sys.executable, args=["-c", report], cwd=tmp_path, env={"HOME": str(tmp_path)}
    )
    async with Client(stdio_client(server), mode="legacy") as client:
        assert len((await client.list_tools()).tools) == 12
        assert not (await client.call_tool("create_task", {"title": "One"})).is_error
        assert (await client.call_tool("get_task", {"task_id": "T-9"})).is_error
    async with asyncio.timeout(60):
        while not (tmp_path / "loaded").exists():
            await asyncio.sleep(0.02)
    assert (tmp_path / "loaded").read_text() == "[]"
