"""The line to a server: its address, its token, and what a refusal says."""

from __future__ import annotations

import json

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from cockpit.api.remote_screen.connect_to_server import RefusedByServer, open_line
from cockpit.api.remote_screen.server_address import Server, WrongServer, read_address
from cockpit.api.web.screen_messages import PROTOCOL


def test_plain_http_is_for_this_machine_alone() -> None:
    assert read_address("https://build.example:9000") == Server("build.example", 9000, True)
    assert read_address("unix:/run/cockpit.sock") == Server(path="/run/cockpit.sock")
    for text in ("http://build.example", "http://127.0.0.1.evil.example"):
        with pytest.raises(WrongServer, match="not encrypted"):
            read_address(text)


async def test_the_token_goes_in_its_header_and_a_refusal_gives_its_reason() -> None:
    asked: list[Request] = []
    body = json.dumps({"code": "token_revoked", "detail": "The token cap-1 is revoked."}).encode()

    def process(_: ServerConnection, request: Request) -> Response | None:
        asked.append(request)
        return None if len(asked) == 1 else Response(401, "Unauthorized", Headers(), body)

    async def wait(line: ServerConnection) -> None:
        await line.wait_closed()

    options = {"process_request": process, "subprotocols": [PROTOCOL]}
    async with serve(wait, "127.0.0.1", 0, **options) as running:
        server = Server("127.0.0.1", next(iter(running.sockets)).getsockname()[1])
        line = await open_line(server, "ckp_secret", None)
        line.transport.abort()
        with pytest.raises(RefusedByServer, match=r"refuses: The token cap-1 is revoked\."):
            await open_line(server, "ckp_secret", None)
    assert asked[0].path == "/connect"
    assert asked[0].headers["Authorization"] == "Bearer ckp_secret"
