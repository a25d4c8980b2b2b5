"""What the demo's chain left, out of the store and of Git: nothing in it is taken from what was printed."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from cockpit.access.run_program import git_environment, run_git, run_program
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.backlog import handoffs, tasks
from cockpit.store.backlog.tasks import Task
from cockpit.store.chains import chains, workers, worktrees
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.tasks.git import is_ancestor

BLOCKED = ("T-5",)
"""The one task of the demo that no fixer can mend."""
LEAST_SESSIONS = 3

_OURS = (".git", ".cockpit/state", ".cockpit/reports")
"""Where cockpit itself writes in a project."""
_SIGNS = {"done": "✔", "blocked": "✘"}


@dataclass(frozen=True, slots=True)
class Checkout:
    """A person's checkout at one moment: what is checked out, what is staged, every file's bytes."""

    head: str
    staged: str
    files: int
    digest: str

    @classmethod
    async def of(cls, root: Path) -> Checkout:
        """The checkout as it stands; what cockpit keeps for itself is left out."""
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
    """The newest chain's sessions and tasks, its branch and its tests, all checked anew.

    The second value names, in words, whatever does not hold; it is empty when the demo did what it
    is for.
    """
    chain, sessions, worked, verdict = await store.read(_stored)
    broken = _wrong_sessions(chain, sessions) + await _wrong_tasks(store, place, chain, worked)
    after = await Checkout.of(place.root)
    if after != before:
        broken.append("something was written in the person's checkout")
    if not verdict.ok:
        broken.append("the journal's chain is broken")
    report = place.root / (chain.report_path or "nowhere")
    if not await asyncio.to_thread(report.is_file):
        broken.append("there is no report")
    tests = await run_program(
        ("python3", "-B", "-m", "unittest"),
        cwd=place.state / "worktrees" / chain.chain_id,
        timeout_s=60,
        env=git_environment(),
    )
    if not tests.ok:
        broken.append(f"the tests of {chain.branch} do not pass")
    said = " ".join(line for line in tests.error_text.splitlines()[-3:] if line)
    lines = [
        f"{chain.chain_id} {chain.status}; {len(sessions)} sessions, each in a process of its own",
        *(_session_line(session) for session in sessions),
        "",
        *(await store.read(lambda found: [_task_line(found, task) for task in worked])),
        "",
        f"  {chain.branch}: its tests, run once more: {said}",
        f"  your checkout: {after.files} files, {'the same' if after == before else 'NOT the same'} "
        "byte for byte as before",
        f"  journal: {verdict.rows} rows, {'each follows from the one before' if verdict.ok else 'broken'}",
        f"  report: {chain.report_path}",
    ]
    return "\n".join(lines), broken


def _stored(
    connection: sqlite3.Connection,
) -> tuple[Chain, list[Worker], list[Task], journal.Verdict]:
    (chain,) = chains.select(connection, limit=1)
    return (
        chain,
        workers.select_for_chain(connection, chain.chain_id),
        sorted(tasks.select(connection, limit=100), key=lambda task: task.number),
        journal.verify(connection),
    )


def _wrong_sessions(chain: Chain, sessions: list[Worker]) -> list[str]:
    broken = []
    if chain.status != "completed":
        broken.append(f"{chain.chain_id} is {chain.status}")
    if len({session.process for session in sessions}) < LEAST_SESSIONS:
        broken.append(f"there were only {len(sessions)} sessions")
    if [session.reason for session in sessions].count("pressure") < LEAST_SESSIONS - 1:
        broken.append("context pressure did not end two sessions")
    broken += [f"{one.owner} ended {one.status}" for one in sessions if one.status != "clean"]
    return broken


async def _wrong_tasks(
    store: Store, place: ProjectPaths, chain: Chain, worked: list[Task]
) -> list[str]:
    broken = []
    for task in worked:
        wanted = "blocked" if task.task_id in BLOCKED else "done"
        if task.status != wanted:
            broken.append(f"{task.task_id} is {task.status} and not {wanted}")
            continue
        tree = store.read_now(lambda found, name=task.task_id: worktrees.load(found, name))  # type: ignore[misc]  # a default keeps the loop's value
        tip = f"refs/heads/{tree.branch}"
        merged = await is_ancestor(place.home, tip, f"refs/heads/{chain.branch}")
        if merged != (wanted == "done"):
            broken.append(f"{tree.branch} is {'' if merged else 'not '}merged into {chain.branch}")
        if await asyncio.to_thread(Path(tree.path).exists) != (wanted == "blocked"):
            broken.append(f"the working tree of {task.task_id} is not as it should be")
    return broken


def _session_line(session: Worker) -> str:
    share = 100 * session.tokens // max(1, session.token_limit)
    return (
        f"  s{session.ordinal}  process {session.pid}  {session.reason}: {session.tokens:,} of "
        f"{session.token_limit:,} tokens ({share} %)"
    )


def _task_line(connection: sqlite3.Connection, task: Task) -> str:
    given = handoffs.find(connection, task.task_id)
    told = given.summary.partition("\n")[0] if given else "no handoff"
    words = f"{given.status if given else ''} {told}".strip()
    return f"  {_SIGNS.get(task.status, '?')} {task.task_id}  {task.title}\n       {words}"
