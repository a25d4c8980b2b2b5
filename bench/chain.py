"""What a chain costs beside its tasks: 200 ready tasks, and a scripted model that answers at once.

Each task is complete: its own worktree, an implementer and two reviewers, a merge. Between the
chain's workers such tasks run without a chain, so that both see the same load of the machine; the
difference is the overhead of the chain.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from measure import Row, row
from msgspec.structs import replace

from cockpit.access import run_program
from cockpit.access.reading_sandbox import use_reading_sandbox
from cockpit.act.sandbox.read_checkout import CheckoutSandbox
from cockpit.backlog import service
from cockpit.chains.batch_loop import run_batches
from cockpit.chains.create_chain import ChainOptions, create_chain
from cockpit.chains.handover import WorkerLimits
from cockpit.core.fenced_text import HEAD_BANDS
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.backlog import tasks
from cockpit.store.chains import chains, worker_metrics, workers
from cockpit.store.chains.end_reasons import TOKEN_LIMIT
from cockpit.store.chains.worker_metrics import WorkerMetrics
from cockpit.store.context import packets
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions
from cockpit.tasks.run_task import run_task
from cockpit.tasks.task_context import TaskContext

TASKS = 200
FEW = 12
AT_ONCE = 4
TOKENS = 100_000
"""Tokens of a worker before it hands over."""

_MAKES = """
[[turn]]
when = {{ contains = ["implementer of T-{number}:"] }}
[[turn.call]]
name = "write_file"
arguments = {{ path = "made/{number}.txt", content = "{number}\\n" }}
"""
_FINISHES = """
[[turn]]
when = {{ contains = ["Your role: {role}"], called = [{called}] }}
[[turn.call]]
name = "finish"
arguments = {{ status = "done", summary = "{summary}" }}
"""
_SHELL = """
set -e
number=$1 root=$2 trees=$3
tree=$trees/T-$number
cd "$root"
git worktree add --quiet --no-track -b "task/$number" "$tree" main
cd "$tree"
mkdir -p made
echo "$number" > "made/$number.txt"
bwrap --ro-bind / / --dev /dev --unshare-all --die-with-parent git status --porcelain -uall > /dev/null
git add --all
git commit --quiet -m "Make $number"
git diff --raw --patch main HEAD > /dev/null
cd "$root"
git merge --quiet --no-ff -m "Merge $number" "task/$number"
git worktree remove --force "$tree"
"""
"""What git and the sandbox do for a task, with nothing around it."""
_ENDS = (
    ("implementer", '"write_file"', "Made."),
    ("spec reviewer", "", "VERDICT: PASS"),
    ("quality reviewer", "", "VERDICT: PASS"),
)


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """A worker of the chain, then half as many tasks without a chain: CPU and wall in seconds, and
    this process's resident memory in MiB after both."""

    ended: WorkerMetrics
    reason: str
    cpu_s: float
    wall_s: float
    alone: int
    alone_cpu_s: float
    alone_wall_s: float
    memory_mib: float

    @property
    def overhead_ms(self) -> float:
        """CPU of a task in the chain minus that of a task without it, in milliseconds."""
        return 1000 * (self.cpu_s / self.ended.tasks_done - self.alone_cpu_s / self.alone)


def rows() -> list[Row]:
    """The table of this bench."""
    calls, commits, cpu_s = asyncio.run(_measure_task())
    floor_s = _measure_floor()
    samples, cached = asyncio.run(_run_chain())
    tokens = [sample.ended.tokens for sample in samples]
    alone = sum(sample.alone for sample in samples)
    # The last worker has few tasks, over which its fixed cost would be spread.
    whole = samples[:-1] or samples
    return [
        row("git processes of a task", calls, "", most=10),
        row("write transactions of a task", commits, ""),
        row("CPU of a task, with git's", 1000 * cpu_s, "ms CPU", most=120),
        row("floor: its git calls and sandbox from a shell", 1000 * floor_s, "ms CPU"),
        row("tasks a minute in a chain", 60 * TASKS / sum(sample.wall_s for sample in samples), ""),
        row(
            "tasks a minute without one",
            60 * alone / sum(sample.alone_wall_s for sample in samples),
            "",
        ),
        row(
            "a task's CPU without a chain",
            1000 * sum(sample.alone_cpu_s for sample in samples) / alone,
            "ms CPU",
        ),
        row(
            "coordinator's overhead of a task",
            median(sample.overhead_ms for sample in whole),
            "ms CPU",
            most=50,
        ),
        row("share of its prompts in the provider's cache, expected", cached, "of 1", least=0.5),
        row("workers of the chain", len(samples), ""),
        row("tasks a worker, median", median(sample.ended.tasks_done for sample in samples), ""),
        row("tokens a worker, median", median(tokens), "tokens"),
        row("tokens a worker, most", max(tokens), "tokens"),
        row(
            "memory at the end over that after the first worker",
            samples[-1].memory_mib / samples[0].memory_mib,
            "×",
            most=1.2,
        ),
        row("memory at the end", samples[-1].memory_mib, "MiB"),
    ]


async def _measure_task() -> tuple[float, float, float]:
    """Git processes of a later task, its transactions, and CPU seconds of this process and of git's."""
    count = 0
    run = run_program.run_program

    async def counted(argv: Sequence[str], **options: Any) -> run_program.Finished:
        nonlocal count
        count += "git" in (Path(word).name for word in argv)
        return await run(argv, **options)

    run_program.run_program = counted  # type: ignore[assignment]
    use_reading_sandbox(CheckoutSandbox())  # as every command of cockpit does
    try:
        async with _project(FEW) as context:
            waiting = context.store.read_now(lambda seen: tasks.select(seen, limit=FEW))
            await run_task(context, waiting[0].task_id)
            count, before, commits = 0, _used(), context.store.commits
            for task in waiting[1:]:
                await run_task(context, task.task_id)
            commits = context.store.commits - commits
            more = FEW - 1
            return count / more, commits / more, (_used() - before) / more
    finally:
        use_reading_sandbox(None)
        run_program.run_program = run


def _measure_floor() -> float:
    """CPU seconds of what a shell script starts for such a task, in a project of its own."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        _make_repository(root)
        before = 0.0
        for number in range(1, FEW + 1):
            if number == 2:
                before = _used()
            words = ("sh", "-c", _SHELL, "sh", str(number), str(root), folder)
            subprocess.run(words, check=True, capture_output=True)
        return (_used() - before) / (FEW - 1)


def _used() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))


async def _run_chain() -> tuple[list[WorkerSample], float]:
    """A chain to its end in one project; between its workers the same tasks one by one in another project.

    The share is that of the chain's prompts which the provider's cache has.
    """
    samples: list[WorkerSample] = []
    async with _project(TASKS) as context, _project(TASKS) as bare:
        order = ChainOptions(
            "all", headless=True, approve="all", model=context.model, max_chains=TASKS
        )
        chain = await create_chain(context.store, context.place, order)
        left = bare.store.read_now(lambda seen: tasks.select(seen, limit=TASKS))
        while not samples or samples[-1].reason == TOKEN_LIMIT:
            began = time.process_time(), time.perf_counter()
            ended, reason = await _run_worker(context, chain, len(samples) + 1)
            between = time.process_time(), time.perf_counter()
            count = max(AT_ONCE, ended.tasks_done // 2)
            block, left = left[:count], left[count:]
            for first in range(0, len(block), AT_ONCE):
                async with asyncio.TaskGroup() as group:
                    for task in block[first : first + AT_ONCE]:
                        group.create_task(run_task(bare, task.task_id))
            after = time.process_time(), time.perf_counter()
            gc.collect()  # a worker is a process: its garbage ends with it
            took = between[0] - began[0], between[1] - began[1]
            theirs = after[0] - between[0], after[1] - between[1]
            samples.append(WorkerSample(ended, reason, *took, len(block), *theirs, _memory()))
        _done(context, TASKS)
        share = context.store.read_now(_cached_share)
        _done(bare, sum(sample.alone for sample in samples))
    return samples, share


async def _run_worker(
    context: TaskContext, chain: chains.Chain, ordinal: int
) -> tuple[WorkerMetrics, str]:
    """Run one worker as its process would."""
    await context.store.write(lambda tx: workers.start(tx, chain, ordinal, token_limit=TOKENS))
    at = replace(context, chain_id=chain.chain_id, ordinal=ordinal, chain_branch=chain.branch)
    reason = await run_batches(
        at, chain, ordinal, limits=WorkerLimits(tokens=TOKENS), say=lambda _: None
    )
    await context.store.write(lambda tx: workers.end(tx, chain, ordinal, "clean", reason))
    (ended,) = [
        each
        for each in context.store.read_now(
            lambda c: worker_metrics.select_for_chain(c, chain.chain_id)
        )
        if each.ordinal == ordinal
    ]
    return ended, reason


@asynccontextmanager
async def _project(count: int) -> AsyncIterator[TaskContext]:
    """A repository of one file, and so many tasks that meet nowhere."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        _make_repository(root)
        script = Path(folder) / "scenario.toml"
        script.write_text("".join(_scenario(count)), encoding="utf-8")
        place = locate_project(root)
        place.prepare()
        with Store.open(place.database) as store:
            for number in range(1, count + 1):
                store.write_now(
                    lambda tx, number=number: service.create_task(  # type: ignore[misc]  # a default keeps the loop's value
                        tx, f"Make {number}", files=[f"made/{number}.txt"], by="bench"
                    )
                )
            yield TaskContext(
                store=store,
                place=place,
                settings=RuntimeSettings(
                    policy="all", user_dir=Path(folder), environment=dict(os.environ)
                ),
                chain_id="",
                ordinal=0,
                chain_branch="cockpit/work",
                approve="all",
                model=f"script:{script}",
            )


def _make_repository(root: Path) -> None:
    root.mkdir()
    (root / "README.md").write_text("# Made\n", encoding="utf-8")
    _git(root, "init", "--quiet", "--initial-branch", "main")
    _git(root, "config", "user.name", "bench")
    _git(root, "config", "user.email", "bench@localhost")
    _git(root, "add", ".")
    _git(root, "commit", "--quiet", "-m", "Begin")


def _scenario(count: int) -> Iterable[str]:
    for number in range(1, count + 1):
        yield _MAKES.format(number=number)
    for role, called, summary in _ENDS:
        yield _FINISHES.format(role=role, called=called, summary=summary)


def _cached_share(connection: sqlite3.Connection) -> float:
    """The share of all prompts' tokens that a provider has in its cache.

    In a session that is what each packet says. Its first prompt begins with the tools and the system text of
    the last session of its role, where these are the same.
    """
    heads: set[tuple[object, ...]] = set()
    cached = tokens = 0
    for session in reversed(sessions.select_recent(connection, 4 * TASKS)):
        for stored in packets.select_for_session(connection, session.session_id):
            packet, epoch = stored.packet, stored.packet.epoch
            if epoch is None or packet.rendered_tokens is None:
                continue
            shown = [band for band in packet.bands if band.name in HEAD_BANDS]
            head = (epoch.head, *(entry.fact_id for band in shown for entry in band.entries))
            tokens += packet.rendered_tokens
            if epoch.cached:
                cached += epoch.cached
            elif head in heads:
                cached += sum(band.used for band in shown)
            heads.add(head)
    return cached / tokens


def _done(context: TaskContext, expected: int) -> None:
    done = context.store.read_now(lambda seen: tasks.count(seen, status="done"))
    if done != expected:
        raise RuntimeError(f"only {done} of the bench's {expected} tasks are done")


def _memory() -> float:
    """Resident memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)
