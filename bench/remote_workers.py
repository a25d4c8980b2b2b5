"""The coordinator of a chain over machines: its cost of a task with 1 to 1,000 workers, on a store of 100,000
done tasks and a real NATS server; and what four real workers bring.

The workers of the first part are simulated: they answer at once, and one in twenty runs is forgotten as by
a worker that was killed. CPU is that of the coordinator and the git that it starts. In the second part each
task sleeps, so that processors are not what is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measure import Row, row

from cockpit.backlog import service
from cockpit.chains.batch_loop import run_batches
from cockpit.chains.create_chain import ChainOptions, create_chain
from cockpit.chains.dispatcher import open_dispatcher
from cockpit.chains.handover import WorkerLimits
from cockpit.chains.remote.scale_settings import ScaleSettings
from cockpit.core.project_paths import ProjectPaths, locate_project
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.backlog import tasks
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES
from cockpit.store.chains import chains, worker_metrics, workers
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.tasks.task_context import TaskContext

WORKERS = (1, 10, 100, 1_000)
PAST = int(os.environ.get("COCKPIT_BENCH_TASKS", "100000"))
SAMPLE = 48
DEATHS = 0.05
LEASE_S = 2.0
SLEEPS_S = 6.0
SLEEPING = 16
_HERE = Path(__file__).resolve().parent


def rows() -> Iterator[Row]:
    """Yield the cost of a task by the number of workers, and the speed of four real ones."""
    server_program = Path(sys.executable).with_name("nats-server")
    with tempfile.TemporaryDirectory() as name, _serving(server_program, Path(name)) as server:
        folder = Path(name)
        place, shared = make_project(folder)
        with Store.open(place.database) as store:
            _fill(store)
            costs = {}
            for count in WORKERS:
                costs[count] = asyncio.run(_cost(store, place, server, shared, count))
                label = "simulated: coordinator's CPU of a task"
                yield row(f"{label}, {count:,} workers", costs[count], "ms CPU")
        yield row(
            "simulated: a task with 1,000 workers against one",
            costs[WORKERS[-1]] / costs[1],
            "×",
            most=1.3,
        )
        alone = _seconds(folder / "one", server, 1)
        together = _seconds(folder / "four", server, 4)
        yield row(
            f"tasks of {SLEEPS_S:.0f} s: 4 workers against one", alone / together, "×", least=3.5
        )


@contextlib.contextmanager
def _serving(program: Path, folder: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = (
        str(program),
        "-js",
        "-sd",
        str(folder / "jetstream"),
        "-a",
        "127.0.0.1",
        "-p",
        str(port),
    )
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield f"nats://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def make_project(folder: Path) -> tuple[ProjectPaths, Path]:
    """Make a repository, and the one that machines share."""
    root, shared = folder / "project", folder / "shared.git"
    root.mkdir(parents=True)
    _git(root, "init", "--quiet", "--initial-branch=main")
    (root / "calc.py").write_text("def add(a, b):\n    return a + b\n", encoding="utf-8")
    _git(root, "add", ".")
    _git(root, "commit", "--quiet", "-m", "Begin")
    _git(folder, "clone", "--quiet", "--bare", str(root), str(shared))
    _git(root, "remote", "add", "origin", str(shared))
    place = locate_project(root)
    place.prepare()
    return place, shared


def _fill(store: Store) -> None:
    """Fill the backlog with tasks that are done."""
    draft = tasks.new_draft("Past")

    def insert(tx: Tx, count: int) -> None:
        from msgspec.structs import replace

        for _ in range(count):
            done = replace(draft, status="done", done_at=tx.now())
            tasks.insert(tx, done, by="bench")

    for _ in range(PAST // 2_000):
        asyncio.run(store.write(lambda tx: insert(tx, 2_000)))


async def _cost(store: Store, place: ProjectPaths, server: str, shared: Path, count: int) -> float:
    """Return the milliseconds of a processor that a task takes of the coordinator."""
    scale = ScaleSettings("nats", server, f"w{count}", lease_s=LEASE_S, at_once=SAMPLE)

    def add(tx: Tx) -> str:
        epic = EPICS.insert(tx, f"Sample {count}", by="bench")
        story = STORIES.insert(tx, f"Sample {count}", by="bench")
        STORIES.change(tx, story, {"epic_id": epic.epic_id}, by="bench")
        for number in range(SAMPLE):
            service.create_task(tx, f"Make {number}", by="bench", story_id=story.story_id)
        return epic.epic_id

    epic_id = await store.write(add)
    chain = await create_chain(store, place, ChainOptions("epic", epic_id, approve="all"))
    await store.write(lambda tx: workers.start(tx, chain, 1, token_limit=10**9))
    context = TaskContext(
        store=store, place=place, settings=RuntimeSettings(), chain_id=chain.chain_id, ordinal=1,
        chain_branch=chain.branch, approve="all",
    )  # fmt: skip
    words = (server, scale.queue, str(shared), str(count), str(DEATHS), "1")
    simulated = await asyncio.create_subprocess_exec(
        sys.executable, str(_HERE / "simulated_workers.py"), *words
    )
    try:
        async with open_dispatcher(scale, context, chain, _ignore) as dispatcher:
            before = _cpu_s()
            reason = await run_batches(
                context, chain, 1, limits=WorkerLimits(), say=_ignore, dispatcher=dispatcher
            )
            spent = _cpu_s() - before
    finally:
        simulated.kill()
        await simulated.wait()
    done = store.read_now(lambda c: worker_metrics.select_for_chain(c, chain.chain_id))
    assert done[0].tasks_done == SAMPLE, (reason, done)
    await store.write(lambda tx: workers.end(tx, chain, 1, "clean", reason))
    await store.write(lambda tx: chains.end(tx, chain.chain_id, "completed", ""))
    return 1_000 * spent / SAMPLE


def _cpu_s() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    usages = [resource.getrusage(kind) for kind in kinds]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _ignore(line: str) -> None:
    del line


def _seconds(folder: Path, server: str, count: int) -> float:
    """Return the seconds of a chain of tasks that sleep, with ``count`` real workers."""
    place, shared = make_project(folder)
    script = folder / "script.toml"
    script.write_text(_script(), encoding="utf-8")
    config = folder / "config"
    config.mkdir()
    (config / "config.toml").write_text(
        f'[scale]\nserver = "{server}/q{count}"\n', encoding="utf-8"
    )
    env = {
        **os.environ,
        "COCKPIT_CONFIG_DIR": str(config),
        "COCKPIT_TEST_COMMAND": "true",
        "COCKPIT_MODEL": f"script:{script}",
    }
    cockpit = (sys.executable, "-m", "cockpit")
    for number in range(SLEEPING):
        words = (*cockpit, "tasks", "add", f"Make {number}", "--file", f"made/{number}.txt")
        subprocess.run(words, cwd=place.root, env=env, check=True, capture_output=True)
    started_workers = []
    for number in range(count):
        home = folder / f"worker-{number}"
        home.mkdir()
        started_workers.append(
            subprocess.Popen(
                (
                    *cockpit,
                    "worker",
                    "--connect",
                    f"{server}/q{count}",
                    "--git",
                    str(shared),
                ),
                cwd=home,
                env={**env, "COCKPIT_STATE_DIR": str(home / "state")},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
    time.sleep(3)  # starting workers is not what is measured
    try:
        started = time.monotonic()
        words = (*cockpit, "work", "--headless", "--approve", "all", "--all")
        subprocess.run(words, cwd=place.root, env=env, check=True, capture_output=True)
        return time.monotonic() - started
    finally:
        for each in started_workers:
            each.kill()
            each.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _script() -> str:
    """Return a model whose implementers take :data:`SLEEPS_S` from their first word to the fourth."""
    text = ""
    for number in range(SLEEPING):
        text += (
            f'[[turn]]\nwhen = {{ contains = ["implementer of T-{number + 1}:"] }}\n'
            f'text = "one two three four"\npace = {SLEEPS_S / 3}\n[[turn.call]]\nname = "write_file"\n'
            f'arguments = {{ path = "made/{number}.txt", content = "{number}\\n" }}\n'
        )
    for role, called, summary in (
        ("implementer", '"write_file"', "Made."),
        ("spec reviewer", "", "VERDICT: PASS"),
        ("quality reviewer", "", "VERDICT: PASS"),
    ):
        text += (
            f'[[turn]]\nwhen = {{ contains = ["Your role: {role}"], called = [{called}] }}\n[[turn.call]]\n'
            f'name = "finish"\narguments = {{ status = "done", summary = "{summary}" }}\n'
        )
    return text
