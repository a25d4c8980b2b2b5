"""Connections: slow senders, slow readers, many clients, Unix sockets and TLS, on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
import uvicorn
from api_world import API, PATIENCE_S, ask, issue, told
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cockpit.access.http.guarded_protocol import GuardedProtocol
from cockpit.access.http.guarded_server import (
    HANDSHAKE_S,
    GuardedServer,
    Listening,
    load_certificate,
)
from cockpit.access.listen_address import Address, CannotListen, listening, listening_at
from cockpit.access.token_scopes import SCOPES
from cockpit.api.application import application
from cockpit.api.middleware import Gate
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow

HALF = b"GET /health HTTP/1.1\r\nHost: "


class Impatient(GuardedProtocol):
    """Limits that a test can wait for."""

    head_s = 1.0
    read_s = 1.0


class Small(GuardedProtocol):
    """Room for few clients, who may take their time."""

    head_s = 300.0
    most_connections = 4


@contextlib.asynccontextmanager
async def serving(
    store: Store,
    listener: socket.socket,
    address: Address,
    context: ssl.SSLContext | None = None,
    protocol: type[GuardedProtocol] = Impatient,
    handshake_s: float = HANDSHAKE_S,
) -> AsyncIterator[GuardedServer]:
    app = application(store, RuntimeSettings())
    config = uvicorn.Config(
        Gate(app, address), log_level="error", lifespan="off", http=protocol, ws="none"
    )
    server = GuardedServer(
        config, context, before_end=app.state.stream.close, after_end=app.state.project.close
    )
    server.protocol, server.handshake_s = protocol, handshake_s
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup([listener])
    try:
        yield server
    finally:
        await server.shutdown([listener])


async def ask_raw(address: Address, request: bytes) -> tuple[int, dict[str, object]]:
    """The status and problem document that a connection which sends this, and no more, ends with."""
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
    writer.write(request)
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head:
        return 0, {}
    assert b"application/problem+json" in head
    return int(head.split()[1]), json.loads(body)


async def test_slow_clients_are_cut_off(tmp_path: Path) -> None:
    listener, address = listening("127.0.0.1", 0)
    with Store.open(tmp_path / "cockpit.db") as store:
        async with serving(store, listener, address):
            host = f"127.0.0.1:{address.port}".encode()
            # Half a head, nothing at all, and half of a second request.
            half = asyncio.create_task(ask_raw(address, HALF))
            nothing = asyncio.create_task(ask_raw(address, b""))
            whole = HALF + host + b"\r\n\r\n"
            reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
            writer.write(whole)
            await reader.readuntil(b'"ok"')
            writer.write(HALF)
            async with asyncio.timeout(PATIENCE_S):
                assert b"too_slow" in await reader.read()
            writer.close()
            # One byte after the other gets no more time, and others are served meanwhile.
            reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
            writer.write(HALF)
            answer = asyncio.create_task(reader.read())
            async with httpx2.AsyncClient(base_url=address.url, verify=False) as client:
                assert (await client.get("/health")).status_code == 200
            async with asyncio.timeout(PATIENCE_S):
                while not answer.done():
                    writer.write(b"x")
                    await asyncio.wait([answer], timeout=0.02)
            writer.close()
            with contextlib.suppress(ConnectionResetError):  # it wrote on after the answer
                assert b"too_slow" in await answer
            status, body = await half
            assert (status, body["code"], await nothing) == (408, "too_slow", (0, {}))
            status, body = await ask_raw(address, b"not http\r\n\r\n")
            assert (status, body["code"]) == (400, "malformed")


async def test_a_head_is_refused_that_is_too_large_or_names_two_lengths(tmp_path: Path) -> None:
    """Also where it comes whole in one piece, or behind another request."""
    listener, address = listening("127.0.0.1", 0)
    with Store.open(tmp_path / "cockpit.db") as store:
        async with serving(store, listener, address):
            first = HALF + f"127.0.0.1:{address.port}\r\n".encode()
            large = first + b"X: " + b"a" * 33_000 + b"\r\n\r\n"
            two = first + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            for sent in (large, two + first + b"\r\n"):
                status, body = await ask_raw(address, sent)
                assert (status, body["code"]) == (400, "malformed")
            reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
            writer.write(first + b"\r\n" + large)
            async with asyncio.timeout(PATIENCE_S):
                answer = await reader.read()
            writer.close()
            assert answer.count(b"HTTP/1.1 200 OK") == answer.count(b'"malformed"') == 1


async def test_a_length_that_is_absurd_is_refused_and_a_host_is_named_once(tmp_path: Path) -> None:
    listener, address = listening("127.0.0.1", 0)
    with Store.open(tmp_path / "cockpit.db") as store:
        bearer = issue(store, "ci", "orientation.propose")["Authorization"]
        host = f"Host: 127.0.0.1:{address.port}\r\n"
        end = "Connection: close\r\n\r\n"
        absurd = f"{host}Authorization: {bearer}\r\nContent-Type: application/json\r\n"
        requests = (
            (f"POST {API}/proposals HTTP/1.1\r\n{absurd}Content-Length: {10**12}\r\n{end}", 413),
            (f"GET /health HTTP/1.0\r\n{end}", 421),
            (f"GET /health HTTP/1.0\r\n{host}Host: evil.example\r\n{end}", 400),
        )
        async with serving(store, listener, address):
            for request, status in requests:
                assert (await ask_raw(address, request.encode()))[0] == status


_SEND = """
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], sys.argv[2].encode(), {
    "Authorization": sys.argv[3], "Content-Type": "application/json"})
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


async def test_the_users_own_token_decides_nothing_from_an_agents_shell(tmp_path: Path) -> None:
    """The root token is a file of the user: who sends it is asked of the kernel as well.

    A system that does not say who sends it is refused, too.
    """
    listener, address = listening("127.0.0.1", 0)
    with Store.open(tmp_path / "cockpit.db") as store:
        shown = store.write_now(lambda tx: ask(tx, "p-one")).shown_digest
        root = issue(store, "main", *SCOPES)
        ways = (
            ("approve", []),
            ("reject", ["env", "-u", "CLAUDECODE"]),
            ("approve", ["setsid", "-w"]),
        )
        async with serving(store, listener, address):
            where = f"{address.url}/api/proposals/p-one/decide"
            for verdict, words in ways:
                carried = json.dumps({"decision": verdict, "shown_digest": shown})
                sends = (sys.executable, "-S", "-c", _SEND, where, carried, root["Authorization"])
                process = await asyncio.create_subprocess_exec(
                    *words, *sends, env={**os.environ, "CLAUDECODE": "1"}, stdout=subprocess.PIPE
                )
                said, _ = await process.communicate()
                assert said.startswith(b"403 ") and b"for you alone" in said, said
        assert store.read_now(lambda c: proposals.load(c, "p-one")).status == "pending"


async def test_one_client_too_many_is_told_so(tmp_path: Path) -> None:
    listener, address = listening("127.0.0.1", 0)
    with Store.open(tmp_path / "cockpit.db") as store:
        async with serving(store, listener, address, protocol=Small) as server:
            # As many as may be, and one more; when they leave, there is room again.
            held = [await asyncio.open_connection("127.0.0.1", address.port) for _ in range(4)]
            async with asyncio.timeout(PATIENCE_S):
                while len(server.server_state.connections) < 4:
                    await asyncio.sleep(0.005)
            status, body = await ask_raw(address, b"")
            assert (status, body["code"]) == (503, "too_many_clients")
            for _, each in held:
                each.close()
            async with asyncio.timeout(PATIENCE_S):
                while server.server_state.connections:
                    await asyncio.sleep(0.005)
            async with httpx2.AsyncClient(base_url=address.url, verify=False) as client:
                assert (await client.get("/health")).status_code == 200


async def test_a_reader_that_takes_nothing_is_cut_off(tmp_path: Path) -> None:
    listener, address = listening("127.0.0.1", 0)
    with Store.open(tmp_path / "cockpit.db") as store:
        async with serving(store, listener, address) as server:
            line = socket.create_connection(("127.0.0.1", address.port))
            with line:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
                line.setblocking(False)
                async with asyncio.timeout(PATIENCE_S):
                    while not server.server_state.connections:
                        await asyncio.sleep(0.005)
                    (connection,) = server.server_state.connections
                    connection.transport.write(b"x" * 20_000_000)
                    while server.server_state.connections:
                        await asyncio.sleep(0.005)


async def test_a_unix_socket_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "s"
    listener, address = listening_at(path)
    assert (path.stat().st_mode & 0o777, address.url) == (0o600, f"unix:{path}")
    with Store.open(tmp_path / "cockpit.db") as store:
        async with serving(store, listener, address):
            transport = httpx2.AsyncHTTPTransport(uds=str(path), verify=False)
            async with httpx2.AsyncClient(
                base_url="http://localhost", transport=transport
            ) as client:
                with pytest.raises(CannotListen, match="Another server"):
                    await asyncio.to_thread(listening_at, path)
                assert (await client.get("/health")).status_code == 200
                wrong = await client.get("/health", headers={"Host": "evil.example"})
                told(wrong, 421, "host_refused")
                page = await client.get("/health", headers={"Origin": "http://localhost"})
                told(page, 403, "origin_refused")
    listener.close()
    # What a dead server left is replaced; what is not a socket is not.
    again, _ = listening_at(path)
    again.close()
    path.unlink()
    path.write_text("mine")
    with pytest.raises(CannotListen, match="not a socket"):
        listening_at(path)
    with pytest.raises(CannotListen, match="too long"):
        listening_at(tmp_path / ("x" * 200))


def test_a_server_listens_at_one_address_that_is_named() -> None:
    for host in ("", "0.0.0.0", "::", "203.0.113.7"):
        with pytest.raises(CannotListen):
            listening(host, 0)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )
    built = builder.sign(private, hashes.SHA256())
    file, key = folder / "cert.pem", folder / "key.pem"
    file.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return file, key


async def test_tls_is_served_and_nothing_else_on_that_port(tmp_path: Path) -> None:
    file, key = certificate(tmp_path)
    context = load_certificate(Listening(certificate=file, key=key))
    with pytest.raises(CannotListen, match="--tls-key"):
        load_certificate(Listening(certificate=file))
    listener, address = listening("127.0.0.1", 0, tls=True)
    assert address.url.startswith("https://")
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with Store.open(tmp_path / "cockpit.db") as store:
        async with serving(store, listener, address, context):
            shown = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", address.port))
            assert shown.split() == file.read_text().split()
            async with httpx2.AsyncClient(base_url=address.url, verify=trusting) as client:
                own = {"Origin": address.url}
                assert (await client.get("/health", headers=own)).status_code == 200
                plain = {"Origin": address.url.replace("https", "http")}
                told(await client.get("/health", headers=plain), 403, "origin_refused")
            reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
            writer.write(b"GET /health HTTP/1.1\r\n\r\n")
            async with asyncio.timeout(PATIENCE_S):
                assert b"HTTP/1.1 200" not in await reader.read()
            writer.close()


async def test_a_handshake_that_is_not_finished_is_cut_off(tmp_path: Path) -> None:
    """Nothing at all, and half of a client's hello; others are served meanwhile."""
    file, key = certificate(tmp_path)
    context = load_certificate(Listening(certificate=file, key=key))
    listener, address = listening("127.0.0.1", 0, tls=True)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        trusting.wrap_bio(incoming, outgoing).do_handshake()
    hello = outgoing.read()

    async def begin(data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        writer.write(data)
        async with asyncio.timeout(PATIENCE_S):
            rest = await reader.read()
        writer.close()
        return rest

    with Store.open(tmp_path / "cockpit.db") as store:
        # Long enough for a handshake on a busy machine.
        async with serving(store, listener, address, context, handshake_s=2.0) as server:
            unfinished = [
                asyncio.create_task(begin(data)) for data in (b"", hello[:40]) for _ in range(5)
            ]
            async with httpx2.AsyncClient(
                base_url=address.url, verify=trusting, timeout=PATIENCE_S
            ) as client:
                assert (await client.get("/health")).status_code == 200
            assert set(await asyncio.gather(*unfinished)) == {b""}
            async with asyncio.timeout(PATIENCE_S):
                while server.server_state.connections:
                    await asyncio.sleep(0.005)
