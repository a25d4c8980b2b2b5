"""A chain whose coordinator and workers run in this process, over a real NATS server."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chains.batch_loop.coordinator_world import ChainWorld
from chains.chain_world import slowly
from chains.remote.remote_world import PATIENCE_S, Server
from tasks.taskrun_world import PASSES, World, finish, git, turn

from cockpit.backlog.work_settings import WorkSettings
from cockpit.chains.create_chain import ChainOptions, create_chain
from cockpit.chains.remote.jetstream_queue import open_queue
from cockpit.chains.remote.remote_run import WorkerSetup
from cockpit.chains.remote.remote_worker import RemoteWorker
from cockpit.chains.remote.scale_settings import ScaleSettings
from cockpit.chains.worker import run_worker
from cockpit.core.clock import SystemClock
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.chains import remote_runs
from cockpit.store.chains.remote_runs import RemoteRun
from cockpit.store.chains.workers import Worker

WORK = WorkSettings(test_command="true")


@dataclass
class Near(ChainWorld):
    """A project, its server, and the tasks of asyncio that work."""

    lease_s: float = 60.0
    """Longer than a busy machine keeps a worker from saying that it is there."""
    server: Server = field(init=False)
    shared: Path = field(init=False)
    working: list[asyncio.Task[Any]] = field(default_factory=list)
    ordinal: int = 0

    @property
    def settings(self) -> RuntimeSettings:
        return RuntimeSettings(user_dir=self.world.folder / "config", environment=dict(os.environ))

    def scale(self, url: str = "") -> ScaleSettings:
        return ScaleSettings("nats", url or self.server.url, "shop", lease_s=self.lease_s)

    async def begin(self, count: int, *, pace: float = 0.0) -> None:
        """Create a chain over ``count`` new tasks, each of which writes a file; one more may be added."""
        scenario = ""
        for number in range(1, count + 1):
            self.add_task(number)
        for number in range(1, count + 2):
            named, wrote = f"Write part{number}", f'path = "part{number}.py", content = "x = 1\\n"'
            scenario += turn("implementer", "write_file", wrote, said=named)
            done = 'called = ["write_file"]'
            scenario += finish("implementer", "It is there.", when=done, said=named)
        model = self.world.folder / "scenario.toml"
        text = scenario + PASSES
        model.write_text(slowly(text, pace) if pace else text, encoding="utf-8")
        options = ChainOptions("all", headless=True, approve="all", model=f"script:{model}")
        await create_chain(self.store, self.world.place, options)

    def add_task(self, number: int) -> None:
        self.world.task(f"Write part{number}", files=[f"part{number}.py"])

    def coordinate(self) -> asyncio.Task[Worker]:
        """Run the chain's next worker, which coordinates."""
        self.ordinal += 1
        running = asyncio.create_task(
            run_worker(
                *(self.store, self.world.place, self.settings, WORK, "ch-1", self.ordinal),
                say=self.said.append,
                scale=self.scale(),
            )
        )
        self.working.append(running)
        return running

    def start_worker(self, name: str, url: str = "") -> asyncio.Task[None]:
        """Run a worker of another machine."""

        async def work() -> None:
            folder = self.world.folder / name
            folder.mkdir(exist_ok=True)
            async with open_queue(self.scale(url), name=name) as queue:
                await queue.prepare()
                setup = WorkerSetup(
                    *(name, str(self.shared), folder, 1, "all"),
                    lambda clone, run: (self.settings, WORK),
                    SystemClock(),
                )
                say = self.said.append
                await RemoteWorker(queue, setup, lambda text: say(f"{name}: {text}")).work()

        running = asyncio.create_task(work())
        self.working.append(running)
        return running

    async def until(self, ready: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not (seen := ready()):
            assert time.monotonic() < deadline, self.said[-20:]
            for task in self.working:
                if task.done() and not task.cancelled():
                    task.result()
            await asyncio.sleep(0.05)
        return seen

    async def end(self, running: asyncio.Task[Worker]) -> Worker:
        """Wait until a coordinator has ended."""
        await self.until(running.done)
        return running.result()

    def details(self, action: str) -> list[dict[str, Any]]:
        return [row.raw_detail() for row in self.rows(action)]

    def runs(self, status: str) -> list[dict[str, Any]]:
        """The changes of runs on other machines to a status."""
        return [row for row in self.details("remote.run.changed") if row["status"] == status]

    def run(self) -> RemoteRun:
        found: RemoteRun = self.store.read_now(lambda c: remote_runs.load(c, "T-1", 1))
        return found

    def merged(self) -> list[str]:
        """The tasks whose work is merged, once for each merge."""
        log = git(self.world.root, "log", "--format=%s", "--merges", "--all").splitlines()
        return sorted(line.split()[1].rstrip(":") for line in log if line.startswith("Merge T-"))


@asynccontextmanager
async def near(folder: Path, **fields: Any) -> AsyncIterator[Near]:
    """Open the project; the end of the context ends its workers and its server."""
    opened = Near(World.made(folder), **fields)
    opened.green()
    opened.shared = folder / "shared.git"
    git(folder, "clone", "--quiet", "--bare", str(opened.world.root), str(opened.shared))
    git(opened.world.root, "remote", "add", "origin", str(opened.shared))
    opened.server = Server(folder / "jetstream")
    opened.server.start()
    try:
        yield opened
    finally:
        for task in opened.working:
            task.cancel()
        await asyncio.gather(*opened.working, return_exceptions=True)
        opened.server.kill()
        opened.store.close()
