"""The report of the demo: its results, checked in the store and in git. The stories were printed before."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from cockpit.access.run_program import run_git, run_program
from cockpit.commands.demo.sample_project import Sample
from cockpit.core.project.safe_git import git_environment
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.text import pluralize
from cockpit.store.backlog import tasks
from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain
from cockpit.store.context import packets
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import sessions

BLOCKED = "T-5"
"""The task of the demo that the fixer cannot fix."""


async def report(store: Store, place: ProjectPaths, sample: Sample) -> tuple[str, list[str]]:
    """Check the sessions or the chain that worked in the sample; return a report and a list of problems.

    The list is empty where all checks pass.
    """
    from cockpit.orient.verify_packet import verify_packet

    chain = next(iter(await store.read(chains.select)), None)
    broken = await store.read(lambda connection: list(_find_unfinished(connection, chain)))
    branch = chain.branch if chain else "main"
    log = await run_git(
        "log", "-1", "--stat", "--format=commit %H%n%an, %s", branch, cwd=sample.root
    )
    tests = await run_program(
        ("python3", "-B", "-m", "unittest"),
        cwd=place.state / "worktrees" / chain.chain_id if chain else sample.root,
        timeout_s=60,
        env=git_environment(),
    )
    test_output = " ".join(line for line in tests.error_text.splitlines()[-3:] if line)
    outcomes = [
        verify_packet(store, wave_id) for wave_id in await store.read(packets.select_wave_ids)
    ]
    same = sum(outcome.ok for outcome in outcomes)
    journal = await store.read(verify_chain.verify)
    head = await run_git("rev-parse", "HEAD", cwd=sample.root)
    changes = await run_git("status", "--porcelain", cwd=sample.root)
    is_kept = head.text.strip() == sample.main and not changes.text
    for is_wrong, problem in (
        (not tests.ok, f"the tests of {branch} do not pass"),
        (same < len(outcomes), "a packet does not compile to the same bytes again"),
        (not journal.ok, "the journal's chain is broken"),
        (not chain and head.text.strip() == sample.main, "no commit was made"),
        (bool(chain) and not is_kept, "your checkout was changed"),
    ):
        broken += [problem] if is_wrong else []
    lines = [
        f"{branch} of {sample.root}",
        *(f"  {line}" for line in log.text.strip().splitlines()),
        f"  its tests, run again: {test_output}",
        f"  your checkout: {'unchanged' if is_kept else 'on the new commit'}",
        f"  packets compiled again: {same} of {len(outcomes)} the same, byte for byte",
        f"  journal: {pluralize(journal.rows, 'row')}, "
        f"{'each follows from the one before' if journal.ok else 'broken'}",
    ]
    if chain:
        path = chain.report_path or "missing"
        lines.append(f"  report: {path}")
        if not await asyncio.to_thread((sample.root / Path(path)).is_file):
            broken.append("the chain's report is missing")
    return "\n".join(lines), broken


def _find_unfinished(connection: sqlite3.Connection, chain: Chain | None) -> Iterator[str]:
    if chain is None:
        for session in sessions.select_recent(connection):
            if (status := session.result.get("status", session.status)) != "done":
                yield f"{session.title!r} ({session.session_id}) ended {status}"
        return
    if chain.status != "completed":
        yield f"{chain.chain_id} is {chain.status}"
    for task in tasks.select(connection, limit=100):
        expected = "blocked" if task.task_id == BLOCKED else "done"
        if task.status != expected:
            yield f"{task.task_id} is {task.status} and not {expected}"
