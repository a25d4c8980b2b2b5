"""Servers that show no screen here are explained in words: older, other, untrusted, not there."""

from __future__ import annotations

import asyncio
import http
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from api.test_api_connections import certificate
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from cockpit.api.remote_screen.connect_to_server import CannotConnect, RefusedByServer, open_line
from cockpit.api.remote_screen.server_address import Server
from cockpit.api.web.screen_messages import PROTOCOL


@asynccontextmanager
async def server(answer: Any = None, **options: Any) -> AsyncIterator[tuple[Server, list[Request]]]:
    """A server that answers each request by ``answer``; with None it opens a line."""
    asked: list[Request] = []

    def process(line: ServerConnection, request: Request) -> Response | None:
        asked.append(request)
        return None if answer is None else answer

    async def wait(line: ServerConnection) -> None:
        await line.wait_closed()

    async with serve(wait, "127.0.0.1", 0, process_request=process, **options) as running:
        port = next(iter(running.sockets)).getsockname()[1]
        yield Server("127.0.0.1", port), asked


def response(status: int, body: bytes = b"", **headers: str) -> Response:
    return Response(status, http.HTTPStatus(status).phrase, Headers(headers), body)


async def test_a_line_opens_with_the_token_in_its_header_alone() -> None:
    async with server(subprotocols=[PROTOCOL]) as (address, asked):
        line = await open_line(address, "ckp_secret", None)
        line.transport.abort()
    assert asked[0].path == "/connect"
    assert asked[0].headers["Authorization"] == "Bearer ckp_secret"
    assert "Origin" not in asked[0].headers


@pytest.mark.parametrize("status", [403, 404, 200])
async def test_an_older_server_is_named_as_such(status: int) -> None:
    async with server(response(status)) as (address, _):
        with pytest.raises(RefusedByServer, match="older version"):
            await open_line(address, "ckp_secret", None)


async def test_a_server_without_the_protocol_is_older() -> None:
    async with server() as (address, _):
        with pytest.raises(RefusedByServer, match="older version"):
            await open_line(address, "ckp_secret", None)


async def test_a_problem_document_is_the_reason() -> None:
    body = json.dumps({"code": "token_revoked", "detail": "The token cap-1 is revoked."}).encode()
    async with server(response(401, body)) as (address, _):
        with pytest.raises(RefusedByServer, match=r"refuses: The token cap-1 is revoked\.") as why:
            await open_line(address, "ckp_secret", None)
    assert why.value.code == "token_revoked"


async def test_a_redirect_gets_no_token() -> None:
    async with server(subprotocols=[PROTOCOL]) as (other, asked):
        to = f"ws://127.0.0.1:{other.port}/connect"
        async with server(response(307, Location=to)) as (address, _):
            with pytest.raises(RefusedByServer):
                await open_line(address, "ckp_secret", None)
    assert asked == []


async def test_what_is_busy_or_not_there_may_be_tried_again() -> None:
    async with server(response(503)) as (address, _):
        with pytest.raises(CannotConnect, match="503"):
            await open_line(address, "ckp_secret", None)
    with pytest.raises(CannotConnect, match="cannot be reached"):
        await open_line(address, "ckp_secret", None)
    closing = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with closing:
        port = closing.sockets[0].getsockname()[1]
        with pytest.raises(CannotConnect):
            await open_line(Server("127.0.0.1", port), "ckp_secret", None)


TRUST = """
import asyncio, sys
from pathlib import Path
from cockpit.api.remote_screen.connect_to_server import open_line
from cockpit.api.remote_screen.server_address import load_trust, read_address
from cockpit.core.errors import CockpitError

async def main() -> None:
    address = read_address(sys.argv[1])
    trust = load_trust(address, Path(sys.argv[2]) if sys.argv[2] else None)
    try:
        line = await open_line(address, "ckp_secret", trust)
    except CockpitError as error:
        print(error.code, error)
    else:
        print("open")
        line.transport.abort()

asyncio.run(main())
"""


async def test_certificates_are_checked_against_the_authority_that_is_named(
    tmp_path: Path,
) -> None:
    """In processes of their own: those of tests read no authorities."""
    file, key = certificate(tmp_path, "127.0.0.1")
    (tmp_path / "other").mkdir()
    other, _ = certificate(tmp_path / "other", "127.0.0.1")
    wrong, wrong_key = certificate(tmp_path / "other", "build.example")

    async def ask(address: Server, authority: Path | None) -> str:
        done = await asyncio.to_thread(
            subprocess.run,
            [
                sys.executable,
                "-c",
                TRUST,
                f"https://127.0.0.1:{address.port}",
                str(authority or ""),
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    other_bytes = other.read_bytes()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    async with server(subprotocols=[PROTOCOL], ssl=context) as (address, asked):
        assert await ask(address, file) == "open\n"
        count = len(asked)
        (tmp_path / "stranger.pem").write_bytes(other_bytes)
        assert "is not trusted" in await ask(address, tmp_path / "stranger.pem")
        assert "is not trusted" in await ask(address, None)
        assert len(asked) == count  # the token was not sent
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(wrong, wrong_key)
    async with server(subprotocols=[PROTOCOL], ssl=context) as (address, asked):
        assert "is not trusted" in await ask(address, wrong)
        assert asked == []
