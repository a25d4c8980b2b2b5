"""A chain of very many tasks over machines, to its end: what a task costs after 1,000 others and 100,000.

Usage: ``python bench/many_tasks.py [--tasks N] [--workers N] [--events N] [--keep FOLDER]``.

Everything is the real thing but the workers, which are simulated: the store, a NATS server with JetStream,
the supervisor of ``cockpit work`` and its worker process, the journal and its check at the end. The tasks are
of a type that may end without a change, and the workers change nothing, so that git is left out: it has its
own rows in ``remote_workers``. Workers forget one run in fifty. At moments that are spread over the run the
worker process of the chain, the server, or all simulated workers are killed, and the coordinator's connection
is cut for seconds, during which nothing passes and neither side hears of it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from measure import Row, row
from msgspec.structs import replace

from cockpit.core.project_paths import ProjectPaths
from cockpit.store.backlog import tasks, work_queue
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

TASKS = int(os.environ.get("COCKPIT_BENCH_CHAIN_TASKS", "2000"))
WORKERS = 100
EVENTS = 8
DEATHS = 0.02
LEASE_S = 5.0
PARTS = 10
"""Parts of the run whose costs are compared."""
_HERE = Path(__file__).resolve().parent
_COCKPIT = (sys.executable, "-m", "cockpit")
_QUEUE = "many"
_LOOK_S = 0.5
_TICKS = os.sysconf("SC_CLK_TCK")

Say = Callable[[str], None]


def rows() -> list[Row]:
    """The table of this bench, at a size that takes minutes."""
    with tempfile.TemporaryDirectory() as folder:
        return play(Path(folder), TASKS, WORKERS, EVENTS, say=lambda _: None)


def play(folder: Path, count: int, workers: int, events: int, say: Say) -> list[Row]:
    """Play the chain to its end and check what it left; ``folder`` is empty."""
    place, shared = _make_project(folder)
    began = time.monotonic()
    with Store.open(place.database) as store:
        for first in range(0, count, 1_000):
            store.write_now(lambda tx, first=first: _add(tx, min(1_000, count - first)))  # type: ignore[misc]
    say(f"{count:,} tasks were added in {time.monotonic() - began:,.0f} s.")
    world = World(folder, place, shared, workers)
    try:
        samples = _run(world, count, events, say)
    finally:
        world.close()
    checked = _check(place, count)
    parts = _costs_of_parts(samples, count)
    say("ms CPU of a task by part: " + ", ".join(f"{1000 * part:.1f}" for part in parts))
    last = samples[-1]
    return [
        row("tasks, all of them done", count, ""),
        row("deaths and partitions of the run", sum(world.events.values()), ""),
        row("waited for, to the end", last.wall_s, "s"),
        row("coordinator's CPU of a task", 1000 * last.cpu_s / count, "ms CPU"),
        row(
            "… in the last tenth of the run, over that in the first",
            parts[-1] / parts[0],
            "×",
            most=1.2,
        ),
        row("… in the dearest tenth, over the median", max(parts) / sorted(parts)[PARTS // 2], "×"),
        row("journal rows", checked.journal_rows, ""),
        row("times that a run was claimed, of each task", checked.claims / count, ""),
        row("results that came too late and were void", checked.void, ""),
        row("tasks that ended twice, or are open", checked.wrong, "", most=0),
        row("the journal holds (0: yes)", checked.verify_code, "", most=0),
    ]


class Sample:
    """How far a run was: tasks done, CPU of the coordinator's processes, seconds since its beginning."""

    def __init__(self, done: int, cpu_s: float, wall_s: float) -> None:
        self.done = done
        self.cpu_s = cpu_s
        self.wall_s = wall_s


class Checked:
    """What the store says at the end."""

    def __init__(self, wrong: int, claims: int, void: int, journal_rows: int, code: int) -> None:
        self.wrong = wrong
        self.claims = claims
        self.void = void
        self.journal_rows = journal_rows
        self.verify_code = code


class World:
    """The processes of the run."""

    def __init__(self, folder: Path, place: ProjectPaths, shared: Path, workers: int) -> None:
        self._folder = folder
        self._place = place
        self._count = workers
        self._port = _free_port()
        self._seed = 0
        self.events: Counter[str] = Counter()
        self.server = self._start_server()
        self.wire = Wire(self._port)
        self._configure(shared)
        self.simulated = self._start_simulated()
        self.supervisor: subprocess.Popen[bytes] | None = None
        self._spent_s = 0.0

    def start_chain(self) -> None:
        """Start the chain, or resume it."""
        self.end_supervisor()
        again = ("--continue",) if self._spent_s else ("--all",)
        words = ("work", *again, "--headless", "--approve", "all", "--max-chains", "1000")
        env = {**os.environ, "COCKPIT_CONFIG_DIR": str(self._folder / "config")}
        with (self._folder / "chain.log").open("ab") as log:
            self.supervisor = subprocess.Popen(
                (*_COCKPIT, *words), cwd=self._place.root, env=env, stdout=log, stderr=log
            )

    def end_supervisor(self) -> None:
        """Count what the last one used."""
        if self.supervisor is not None:
            self._spent_s += _tree_cpu_s(self.supervisor.pid)
            self.supervisor.kill()
            self.supervisor.wait()
            self.supervisor = None

    def cpu_s(self) -> float:
        """Return the seconds of a processor that the chain's processes used."""
        running = 0.0 if self.supervisor is None else _tree_cpu_s(self.supervisor.pid)
        return self._spent_s + running

    def disturb(self, dice: random.Random, say: Say) -> None:
        """Kill something, or cut the wire."""
        kind = ("coordinator", "server", "workers", "wire")[sum(self.events.values()) % 4]
        self.events[kind] += 1
        match kind:
            case "coordinator":
                for pid in _children(self.supervisor.pid if self.supervisor else 0):
                    os.kill(pid, signal.SIGKILL)
            case "server":
                self.server.kill()
                self.server.wait()
                time.sleep(dice.uniform(0.1, 2))
                self.server = self._start_server()
            case "workers":
                self.simulated.kill()
                self.simulated.wait()
                self.simulated = self._start_simulated()
            case _:
                self.wire.cut()
                time.sleep(dice.uniform(1, 2 * LEASE_S))
                self.wire.mend()
        say(f"({kind})")

    def close(self) -> None:
        """End every process."""
        self.end_supervisor()
        for process in (self.simulated, self.server):
            process.kill()
            process.wait()
        self.wire.close()

    def _start_server(self) -> subprocess.Popen[bytes]:
        program = Path(sys.executable).with_name("nats-server")
        words = ("-js", "-sd", str(self._folder / "jetstream"), "-a", "127.0.0.1")
        with (self._folder / "server.log").open("ab") as log:
            server = subprocess.Popen(
                (str(program), *words, "-p", str(self._port)), stdout=log, stderr=log
            )
        for _ in range(600):
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self._port), 1),
            ):
                break
            time.sleep(0.05)
        return server

    def _start_simulated(self) -> subprocess.Popen[bytes]:
        self._seed += 1
        words = (f"nats://127.0.0.1:{self._port}", _QUEUE, "none", str(self._count), str(DEATHS))
        with (self._folder / "workers.log").open("ab") as log:
            return subprocess.Popen(
                (sys.executable, str(_HERE / "simulated_workers.py"), *words, str(self._seed)),
                stdout=log,
                stderr=log,
            )

    def _configure(self, shared: Path) -> None:
        config = self._folder / "config"
        config.mkdir()
        (config / "config.toml").write_text(
            f'[scale]\nserver = "{self.wire.url}/{_QUEUE}?lease={LEASE_S}"\ngit = "{shared}"\n',
            encoding="utf-8",
        )


class Wire:
    """A proxy before the server; cut, it keeps what it gets."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._passes = threading.Event()
        self._passes.set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._listening.getsockname()[1]}"

    def cut(self) -> None:
        self._passes.clear()

    def mend(self) -> None:
        self._passes.set()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._port))
                except OSError:
                    client.close()
                    continue
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                self._passes.wait()
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _run(world: World, count: int, events: int, say: Say) -> list[Sample]:
    """Run the chain to its end, and note how far it is now and then."""
    dice = random.Random(1)
    due = [count * (number + 1) // (events + 1) for number in range(events)]
    samples = [Sample(0, 0.0, 0.0)]
    began = said = time.monotonic()
    world.start_chain()
    with sqlite3.connect(world._place.database) as connection:
        while True:
            time.sleep(_LOOK_S)
            done = int(
                connection.execute("SELECT count(*) FROM tasks WHERE status='done'").fetchone()[0]
            )
            samples.append(Sample(done, world.cpu_s(), time.monotonic() - began))
            if time.monotonic() - said > 30:
                said = time.monotonic()
                say(f"{done:,} done after {said - began:,.0f} s, {samples[-1].cpu_s:,.1f} s CPU")
            if due and done >= due[0]:
                due.pop(0)
                world.disturb(dice, say)
            if world.supervisor is not None and world.supervisor.poll() is not None:
                if done == count:
                    return samples
                say("The chain ended before its tasks; it is resumed.")
                world.start_chain()


def _costs_of_parts(samples: list[Sample], count: int) -> list[float]:
    """Return the seconds of a processor of a task, in each part of the run."""
    ends = []
    for part in range(PARTS + 1):
        at = next(sample for sample in samples if sample.done >= count * part // PARTS)
        ends.append(at)
    return [
        (after.cpu_s - before.cpu_s) / max(1, after.done - before.done)
        for before, after in pairwise(ends)
    ]


def _check(place: ProjectPaths, count: int) -> Checked:
    with contextlib.closing(sqlite3.connect(place.database)) as connection:
        journal = Counter(
            dict(connection.execute("SELECT action, count(*) FROM journal GROUP BY action"))
        )
        runs = Counter(
            dict(
                connection.execute(
                    "SELECT json_extract(detail_json,'$.status'), count(*) FROM journal"
                    " WHERE action='remote.run.changed' GROUP BY 1"
                )
            )
        )
        once = connection.execute(
            "SELECT count(*) FROM (SELECT task_id FROM task_runs WHERE step='done' GROUP BY task_id"
            " HAVING count(*)=1)"
        ).fetchone()[0]
    words = (*_COCKPIT, "debug", "journal")
    code = subprocess.run(words, cwd=place.root, capture_output=True).returncode
    return Checked(
        count - int(once),
        runs["claimed"],
        runs["void"],
        journal.total(),
        code,
    )


def _tree_cpu_s(pid: int) -> float:
    """Return the processor time of a process, of its children, and of those that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    own = sum(int(ticks) for ticks in fields[11:15]) / _TICKS
    return own + sum(_tree_cpu_s(child) for child in _children(pid))


def _children(pid: int) -> list[int]:
    listed: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            listed += map(int, (thread / "children").read_text().split())
    return listed


def _add(tx: Tx, count: int) -> None:
    draft = replace(tasks.new_draft("Look at it"), task_type="investigate")
    added = [tasks.insert(tx, draft, by="bench").task_id for _ in range(count)]
    work_queue.refresh(tx, added)


def _make_project(folder: Path) -> tuple[ProjectPaths, Path]:
    from remote_workers import make_project

    return make_project(folder)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _folder(keep: str) -> Iterator[Path]:
    if keep:
        Path(keep).mkdir(parents=True)
        yield Path(keep)
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def _main() -> None:
    parser = argparse.ArgumentParser(prog="bench/many_tasks.py")
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--keep", default="", help="Keep what the run leaves in this new folder.")
    options = parser.parse_args()

    def say(line: str) -> None:
        print(line, flush=True)

    with _folder(options.keep) as folder:
        numbers = (options.tasks, options.workers, options.events)
        for each in play(folder, *numbers, say):
            print(f"{each['name']:<60} {each['value']:>12,.4g} {each['unit']}", flush=True)


if __name__ == "__main__":
    _main()
