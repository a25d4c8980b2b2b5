"""The inner end of the gate: runs in an agent's sandbox, by Python's standard library alone.

``serve PORTS -- COMMAND`` listens on the sandbox's own loopback, as a proxy and for servers of this
machine that the user named, and becomes the agent. ``call WHAT`` connects our MCP server or a hook,
which run outside. Whatever it asks for, the outer end decides (:mod:`cockpit.agents.confine.agent_gate`).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading

PROXY_PORT = 3128
GATE = "/run/cockpit/gate"
_CHUNK = 65_536
_LONGEST_HEAD = 16_384


def main(words: list[str]) -> int:
    """Play the part that ``words`` name; returns the exit code."""
    if words[0] == "call":
        return call(words[1])
    ports, command = words[1], words[words.index("--") + 1 :]
    listeners = [(_listen(PROXY_PORT), "")]
    listeners += [(_listen(int(port)), f"127.0.0.1:{port}") for port in ports.split(",") if port]
    if os.fork() == 0:
        _serve(listeners)
    for listener, _ in listeners:
        listener.close()
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is meant
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127


def _listen(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


def _serve(listeners: list[tuple[socket.socket, str]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)  # the agent's output ends with the agent
    threads = [
        threading.Thread(target=_accept, args=(listener, place)) for listener, place in listeners
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(0)


def _accept(listener: socket.socket, place: str) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_answer, args=(client, place), daemon=True).start()


def _answer(client: socket.socket, place: str) -> None:
    with client:
        try:
            wanted = place or _wanted(client)
            if not wanted:
                client.sendall(b"HTTP/1.1 405 Only CONNECT\r\nContent-Length: 0\r\n\r\n")
                return
            gate, refusal = _ask({"to": wanted})
            with gate:
                if refusal:
                    head = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n"
                    body = f"cockpit's sandbox: {refusal}\n"
                    client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
                    return
                if not place:
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=_pump, args=(gate, client), daemon=True)
                back.start()
                _pump(client, gate)
                back.join()
        except OSError:
            return  # one of the two is gone


def _wanted(client: socket.socket) -> str:
    """Return where a CONNECT leads; '' for any other request."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _LONGEST_HEAD:
        chunk = client.recv(1)
        if not chunk:
            return ""
        head += chunk
    method, _, rest = head.decode("latin-1").partition(" ")
    return rest.partition(" ")[0] if method == "CONNECT" else ""


def _ask(request: dict[str, str]) -> tuple[socket.socket, str]:
    """Ask the gate; returns its socket, and why it refuses ('' when it does not)."""
    gate = socket.socket(socket.AF_UNIX)
    gate.connect(GATE)
    gate.sendall(json.dumps(request).encode() + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        byte = gate.recv(1)
        if not byte:
            return gate, "the gate is closed"
        answer += byte
    return gate, "" if answer == b"ok\n" else answer.decode("utf-8", "replace").strip()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the other end is gone


def call(what: str) -> int:
    """Connect the standard streams with one of our programs outside; returns its exit code."""
    gate, refusal = _ask({"call": what})
    if refusal:
        sys.stderr.write(f"{refusal}\n")
        return 1
    threading.Thread(target=_send_input, args=(gate,), daemon=True).start()
    while head := _receive(gate, 5):
        kind, size = head[0], int.from_bytes(head[1:], "big")
        if kind == 0:
            return size
        os.write(kind, _receive(gate, size))
    return 1


def _send_input(gate: socket.socket) -> None:
    try:
        while chunk := os.read(0, _CHUNK):
            gate.sendall(chunk)
        gate.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the program outside is gone


def _receive(gate: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = gate.recv(size - len(data))
        if not chunk:
            return b""
        data += chunk
    return data


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
