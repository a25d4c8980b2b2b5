"""How the journal reaches 50 readers over HTTP: delivery, loss and memory at 1,000 rows a second.

The writer notes the monotonic clock (one for all processes of a machine) in each row before it writes it.
The readers share one process, and read what the server sends without a library in between.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Row, row

from cockpit.access import capability_tokens
from cockpit.access.principals import PERSON
from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.journal.details.store import AccessRefused

READERS = 50
TOGETHER = 10
"""Rows of one transaction."""
RATE = 1_000
SECONDS = 10
READING = r"""
import asyncio, json, re, sys, time

async def read(port, secret, after, last, ready, times):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write((
        f"GET /api/journal?after={after} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {secret}\r\n\r\n"
    ).encode())
    seen, missed, rest = after, 0, b""
    await reader.readuntil(b"retry: 500")
    ready()
    while seen < last:
        data = await reader.read(1 << 20)
        if not data:
            break
        now = time.monotonic_ns()
        # Whole events only: what follows the last one belongs to the next reading.
        rest += data
        whole, mark, after_mark = rest.rpartition(b"\n\n")
        if not mark:
            continue
        rest = after_mark
        seqs = [int(seq) for seq in re.findall(rb"id: (\d+)\n", whole)]
        stamps = re.findall(rb'"message":"(\d+)"', whole)
        times += [(now - int(stamp)) / 1e6 for stamp in stamps]
        for seq in seqs:
            missed += seq != seen + 1
            seen = seq
    writer.close()
    return missed + (seen != last)

async def main(port, secret, after, last, count):
    waiting, times = count, []

    def ready():
        nonlocal waiting
        waiting -= 1
        if waiting == 0:
            print("ready", flush=True)

    tasks = [read(port, secret, after, last, ready, times) for _ in range(count)]
    missed = sum(await asyncio.gather(*tasks))
    times.sort()
    at = lambda share: times[int(len(times) * share)]
    print(json.dumps({"missed": missed, "rows": len(times), "p50": at(0.5), "p95": at(0.95)}))

asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])))
"""


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        place = locate_project(Path(folder))
        place.prepare()
        with Store.open(place.database) as store:
            _, secret = store.write_now(
                lambda tx: capability_tokens.issue(
                    tx, namespace="bench", scopes=frozenset({"audit.read"}), by=PERSON
                )
            )
            return _measure(store, Path(folder), secret)


def _measure(store: Store, folder: Path, secret: str) -> list[Row]:
    server = subprocess.Popen(
        [sys.executable, "-m", "cockpit", "serve", "--port", "0"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "Listening" in line)
        port = line.split()[2].rstrip(".").rpartition(":")[2]
        start = store.read_now(journal.last_seq)
        count = RATE * SECONDS
        readers = subprocess.Popen(
            [
                sys.executable,
                "-c",
                READING,
                port,
                secret,
                str(start),
                str(start + count),
                str(READERS),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert readers.stdout is not None
        readers.stdout.readline()
        cpu, begun = _cpu_s(server.pid), time.monotonic()
        early = _write(store, server.pid, begun)
        wrote_s = time.monotonic() - begun
        result = json.loads(readers.stdout.read())
        readers.wait()
        used, late = _cpu_s(server.pid) - cpu, _memory_mib(server.pid)
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate()
    return [
        row("rows written a second", count / wrote_s, "rows/s"),
        row(f"row → each of {READERS} readers, p50", result["p50"], "ms"),
        row(f"row → each of {READERS} readers, p95", result["p95"], "ms", most=250),
        row("rows that a reader missed", result["missed"], "rows", most=0),
        row("memory of the server after a tenth", early, "MiB"),
        row("memory that it grew since", late - early, "MiB", most=25),
        row("processor of the server a second", used / wrote_s, "s"),
    ]


def _write(store: Store, server: int, begun: float) -> float:
    """Write the rows at their rate; returns the server's memory after the first tenth, in MiB."""
    early = 0.0
    steps = RATE * SECONDS // TOGETHER
    for step in range(steps):
        due = begun + step * TOGETHER / RATE
        time.sleep(max(0.0, due - time.monotonic()))
        store.write_now(_write_some)
        if step == steps // 10:
            early = _memory_mib(server)
    return early


def _write_some(tx: Tx) -> None:
    stamp = str(time.monotonic_ns())
    for number in range(TOGETHER):
        tx.journal(AccessRefused(face="bench", count=number, since="", request="", message=stamp))


def _memory_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
