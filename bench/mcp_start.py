"""What ``cockpit mcp`` costs each client: its start, and the memory of fifty of them at once.

Memory is the proportional set size: a page that processes share is divided among them.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from cold_start import measured
from measure import Row, row

STARTS = 9
CLIENTS = 50
MOST_START_S = 0.4
MOST_MIB = 25

_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
_LINES = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "get_tasks"}},
)


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        environment = measured(top)
        project = top / "project"
        project.mkdir()
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        end(open_clients(1, project, environment))  # makes the store
        empty, started = [], []
        for _ in range(STARTS):
            empty.append(measure_empty_python())
            started.append(measure_start(project, environment))
        before = time.perf_counter()
        clients = open_clients(CLIENTS, project, environment)
        wall = time.perf_counter() - before
        sizes = [read_size(client.pid) for client in clients]
        end(clients)
    return [
        row("start, first answer and end, CPU", median(started), "s", most=MOST_START_S),
        row("… over an empty Python process", median(started) / median(empty), "×"),
        row(f"memory of each of {CLIENTS} clients", median(sizes), "MiB", most=MOST_MIB),
        row(f"{CLIENTS} clients started at once, wall", wall, "s"),
    ]


def measure_empty_python() -> float:
    """CPU seconds of a Python process that does nothing."""
    before = used()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return used() - before


def measure_start(project: Path, environment: dict[str, str]) -> float:
    """CPU seconds of a server from its start to its end, with one answer between."""
    before = used()
    client = start(project, environment)
    ask(client, _LINES[:1])
    end([client])
    return used() - before


def open_clients(number: int, project: Path, environment: dict[str, str]) -> list[Any]:
    """Start that many servers at once and call a tool of each."""
    clients = [start(project, environment) for _ in range(number)]
    for client in clients:
        ask(client, _LINES)
    return clients


def start(project: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a server."""
    command = str(Path(sys.executable).with_name("cockpit"))
    return subprocess.Popen(
        [command, "mcp"],
        cwd=project,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def ask(client: subprocess.Popen[bytes], messages: Any) -> None:
    """Send messages and wait for the answers to those that are requests."""
    assert client.stdin is not None and client.stdout is not None
    for message in messages:
        client.stdin.write(json.dumps(message).encode() + b"\n")
    client.stdin.flush()
    for message in messages:
        if "id" in message:
            answer = json.loads(client.stdout.readline())
            assert "result" in answer, answer


def end(clients: list[subprocess.Popen[bytes]]) -> None:
    """Close the servers' input and wait for their ends."""
    for client in clients:
        assert client.stdin is not None
        client.stdin.close()
    for client in clients:
        assert client.wait() == 0
        assert client.stdout is not None
        client.stdout.close()


def read_size(pid: int) -> float:
    """Proportional set size of a process in MiB; 0 where the system does not tell."""
    path = Path(f"/proc/{pid}/smaps_rollup")
    if not path.exists():
        return 0.0
    return int(path.read_text().split("\nPss:")[1].split()[0]) / 1024


def used() -> float:
    """CPU seconds of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
