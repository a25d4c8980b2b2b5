"""The report of the demo's chain: its results, checked in the store and in git."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from functools import partial
from pathlib import Path

from msgspec import Struct

from cockpit.access.run_program import run_git, run_program
from cockpit.core.project.safe_git import git_environment
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.backlog import handoffs, tasks
from cockpit.store.backlog.tasks import Task
from cockpit.store.chains import chains, workers, worktrees
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.tasks.git import is_ancestor

BLOCKED = ("T-5",)
"""The task of the demo that the fixer cannot fix."""
LEAST_SESSIONS = 3

_OURS = (".git", ".cockpit/.gitignore", ".cockpit/reports")
"""What cockpit itself writes in a project."""


class Checkout(Struct, frozen=True):
    """The state of the user's checkout: HEAD, the index and a digest of all files."""

    head: str
    staged: str
    files: int
    digest: str

    @classmethod
    async def of(cls, root: Path) -> Checkout:
        """Read the state of the checkout, without the folders that cockpit writes to."""
        head = await run_git("rev-parse", "--symbolic-full-name", "HEAD", "main", cwd=root)
        commit = await run_git("rev-parse", "HEAD", cwd=root)
        staged = await run_git("ls-files", "--stage", cwd=root)
        files, digest = await asyncio.to_thread(_digest, root)
        return cls(head.text + commit.text, staged.text, files, digest)


def _digest(root: Path) -> tuple[int, str]:
    seen, count = hashlib.sha256(), 0
    for path in sorted(root.rglob("*")):
        named = path.relative_to(root)
        if path.is_file() and not any(named.is_relative_to(ours) for ours in _OURS):
            count += 1
            seen.update(f"{named}\0{path.stat().st_mode}\0".encode())
            seen.update(hashlib.sha256(path.read_bytes()).digest())
    return count, seen.hexdigest()


async def chain_report(
    store: Store, place: ProjectPaths, before: Checkout
) -> tuple[str, list[str]]:
    """Check the newest chain and return its report and a list of problems.

    The report has its workers, tasks, branch and tests. The list is empty where all checks pass.
    """
    chain, sessions, worked, verdict = await store.read(_stored)
    broken = _check_workers(chain, sessions) + await _check_tasks(store, place, chain, worked)
    after = await Checkout.of(place.root)
    if after != before:
        broken.append("the user's checkout was changed")
    if not verdict.ok:
        broken.append("the journal's chain is broken")
    report = place.root / (chain.report_path or "nowhere")
    if not await asyncio.to_thread(report.is_file):
        broken.append("the report is missing")
    tests = await run_program(
        ("python3", "-B", "-m", "unittest"),
        cwd=place.state / "worktrees" / chain.chain_id,
        timeout_s=60,
        env=git_environment(),
    )
    if not tests.ok:
        broken.append(f"the tests of {chain.branch} do not pass")
    test_output = " ".join(line for line in tests.error_text.splitlines()[-3:] if line)
    lines = [
        f"{chain.chain_id} {chain.status}; {len(sessions)} workers, each a process of its own",
        *(_worker_line(session) for session in sessions),
        "",
        *(await store.read(lambda connection: [_task_line(connection, task) for task in worked])),
        "",
        f"  {chain.branch}: its tests, run again: {test_output}",
        f"  your checkout: {after.files} files, {'unchanged' if after == before else 'CHANGED'}",
        f"  journal: {verdict.rows} rows, "
        f"{'each follows from the one before' if verdict.ok else 'broken'}",
        f"  report: {chain.report_path}",
    ]
    return "\n".join(lines), broken


def _stored(
    connection: sqlite3.Connection,
) -> tuple[Chain, list[Worker], list[Task], verify_chain.Verdict]:
    (chain,) = chains.select(connection, limit=1)
    return (
        chain,
        workers.select_for_chain(connection, chain.chain_id),
        sorted(tasks.select(connection, limit=100), key=lambda task: task.number),
        verify_chain.verify(connection),
    )


def _check_workers(chain: Chain, sessions: list[Worker]) -> list[str]:
    broken = []
    if chain.status != "completed":
        broken.append(f"{chain.chain_id} is {chain.status}")
    if len({session.process for session in sessions}) < LEAST_SESSIONS:
        broken.append(f"there were only {len(sessions)} workers")
    if [session.reason for session in sessions].count("pressure") < LEAST_SESSIONS - 1:
        broken.append("the token limit did not end two workers")
    broken += [
        f"{worker.owner} ended {worker.status}" for worker in sessions if worker.status != "clean"
    ]
    return broken


async def _check_tasks(
    store: Store, place: ProjectPaths, chain: Chain, worked: list[Task]
) -> list[str]:
    broken = []
    for task in worked:
        expected = "blocked" if task.task_id in BLOCKED else "done"
        if task.status != expected:
            broken.append(f"{task.task_id} is {task.status} and not {expected}")
            continue
        worktree = store.read_now(partial(worktrees.load, name=task.task_id))
        tip = f"refs/heads/{worktree.branch}"
        merged = await is_ancestor(place.home, tip, f"refs/heads/{chain.branch}")
        if merged != (expected == "done"):
            broken.append(
                f"{worktree.branch} is {'' if merged else 'not '}merged into {chain.branch}"
            )
        if await asyncio.to_thread(Path(worktree.path).exists) != (expected == "blocked"):
            fate = "be kept" if expected == "blocked" else "be removed"
            broken.append(f"the worktree of {task.task_id} should {fate}")
    return broken


def _worker_line(session: Worker) -> str:
    share = 100 * session.tokens // max(1, session.token_limit)
    return (
        f"  s{session.ordinal}  process {session.pid}  {session.reason}: {session.tokens:,} of "
        f"{session.token_limit:,} tokens ({share} %)"
    )


def _task_line(connection: sqlite3.Connection, task: Task) -> str:
    handoff = handoffs.find(connection, task.task_id)
    summary = handoff.summary.partition("\n")[0] if handoff else "no handoff"
    sign = state_sign("task", task.status).sign
    return f"  {sign} {task.task_id}  {task.title}\n       {task.status}: {summary}"
