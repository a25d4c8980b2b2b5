"""The report of a chain: what it needs is kept before anything decays, and written when it ends.

Source: seed 004, solution 7 ("Chain Reporting").
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cockpit.backlog.completion import BeforeDecay, Boundaries
from cockpit.chains.report.report_markdown import (
    ChainReport,
    TaskReport,
    WorkerReport,
    render_report,
)
from cockpit.core.clock import parse_time
from cockpit.core.errors import StoreUnwritable
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.backlog import handoffs, tasks
from cockpit.store.backlog.tasks import Task
from cockpit.store.chains import chains, task_runs, worker_metrics, workers, worktrees
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

MOST_SUMMARY = 600
"""Characters of a handoff's summary that are kept for the report."""
MOST_DECISIONS = 50
"""Of a task, the newest."""

_FAILURES = ("failed", "limited")
_DIRECTORY = "reports"


def collect_before_decay(chain_id: str) -> BeforeDecay:
    """What keeps, in the chain's row, the handoffs of a story or an epic that its tasks completed:
    called in the transaction in which they decay, before they do."""

    def collect(tx: Tx, reached: Boundaries) -> None:
        found = tx.execute(
            "SELECT h.task_id, h.summary FROM task_handoffs h JOIN tasks t USING(task_id)"
            " LEFT JOIN stories s USING(story_id)"
            " WHERE h.status='PASS' AND (t.story_id=? OR (? AND s.epic_id=?))"
            " AND EXISTS (SELECT 1 FROM task_runs r WHERE r.task_id=h.task_id AND r.chain_id=?)",
            (reached.story_id, reached.epic_completed, reached.epic_id, chain_id),
        ).fetchall()
        if not found:
            return
        kept = dict(chains.load(tx.connection, chain_id).summary)
        told = {task_id: summary[:MOST_SUMMARY] for task_id, summary in found}
        chains.save_summary(
            tx, chain_id, {**kept, "handoffs": {**kept.get("handoffs", {}), **told}}
        )

    return collect


def wants_report(connection: sqlite3.Connection, chain: Chain, setting: str) -> bool:
    """Whether ``setting`` (``[headless] report``) asks for a report of the chain as it ended.

    ``on_failure``: it failed or met a limit, or one of its tasks is blocked.
    """
    if setting == "on_complete":
        return chain.status == "completed"
    if setting == "on_failure":
        return chain.status in _FAILURES or any(
            task.status == "blocked" for task in _touched(connection, chain)
        )
    return setting == "always"


async def write_report(store: Store, place: ProjectPaths, chain: Chain) -> Path:
    """Write the report of the chain, which stands or ends as ``chain`` says; returns where. Journals
    ``chain.reported``.

    Raises ``StoreUnwritable`` where it cannot be written, or would be outside of the project.
    """
    text = await store.read(lambda found: render_report(collect_report(found, chain)))
    path = place.folder / _DIRECTORY / f"chain-{chain.number}-report.md"
    _write(path, text)
    relative = path.relative_to(place.home).as_posix()
    await store.write(lambda tx: chains.record_report(tx, chain.chain_id, relative))
    return path


async def write_report_if_set(
    store: Store, place: ProjectPaths, setting: str, chain: Chain
) -> None:
    """Write the report of the chain, which ends as ``chain`` says, where ``setting`` asks for it."""
    if await store.read(lambda found: wants_report(found, chain, setting)):
        await write_report(store, place, chain)


def collect_report(connection: sqlite3.Connection, chain: Chain) -> ChainReport:
    """What the report of the chain says, from what is stored."""
    kept: Mapping[str, str] = chains.load(connection, chain.chain_id).summary.get("handoffs", {})
    told = [_task(connection, task, kept) for task in _touched(connection, chain)]
    sessions = workers.select_for_chain(connection, chain.chain_id)
    done = {one.ordinal: one for one in worker_metrics.select_for_chain(connection, chain.chain_id)}
    tokens, cost = connection.execute(
        "SELECT coalesce(sum(input_tokens+output_tokens),0), coalesce(sum(cost_usd),0.0)"
        " FROM sessions WHERE session_id IN (SELECT session_id FROM task_runs"
        " WHERE chain_id=? AND session_id IS NOT NULL)",
        (chain.chain_id,),
    ).fetchone()
    accounts = []
    for one in sessions:
        metrics = done.get(one.ordinal)
        accounts.append(
            WorkerReport(
                one,
                tasks_done=metrics.tasks_done if metrics else 0,
                interrupted=metrics.interrupted if metrics else 0,
                wall_s=_ran(one),
            )
        )
    return ChainReport(
        chain=chain,
        progress=chains.count_progress(connection, chain),
        tasks=tuple(told),
        sessions=tuple(accounts),
        tokens=int(tokens),
        cost_usd=float(cost),
        wall_s=sum(one.wall_s for one in accounts),
        merged=task_runs.has_merged(connection, chain.chain_id),
    )


def _touched(connection: sqlite3.Connection, chain: Chain) -> list[Task]:
    """The tasks that the chain did anything for, and those of its scope that were blocked before."""
    where, values = chains.scope_condition(chain)
    found = connection.execute(
        "SELECT t.task_id FROM tasks t WHERE EXISTS"  # noqa: S608 - conditions of ours
        " (SELECT 1 FROM task_runs r WHERE r.task_id=t.task_id AND r.chain_id=?)"
        f" OR (t.status='blocked' AND {where}) ORDER BY t.number",
        (chain.chain_id, *values),
    )
    return tasks.load_many(connection, [task_id for (task_id,) in found])


def _task(connection: sqlite3.Connection, task: Task, kept: Mapping[str, str]) -> TaskReport:
    tree = worktrees.find(connection, task.task_id)
    known = task.wip or {}
    summary, details, failed = kept.get(task.task_id, ""), "", False
    if task.status != "done" or not summary:
        given = handoffs.find(connection, task.task_id)
        if given is not None:
            summary, failed = given.summary, given.status == "FAIL"
            details = given.full_details or ""
    standing = {"done": "done", "blocked": "failed" if failed else "blocked"}
    if task.status == "blocked":
        summary = task.blocker or summary
    elif task.status != "done":
        summary = f"rests at: {known.get('phase') or task.status.replace('_', ' ')}"
    merged = task.status == "done" and tree is not None
    return TaskReport(
        task_id=task.task_id,
        title=task.title,
        standing=standing.get(task.status, "under way"),
        summary=summary,
        decisions=tuple(_decision(one) for one in known.get("decisions", ())[-MOST_DECISIONS:]),
        details=details if failed else "",
        next_step="" if task.status == "blocked" else str(known.get("next_step", "")),
        commit=(tree.merged_commit or "") if merged and tree else "",
        branch=tree.branch if tree and not merged and tree.status != "removed" else "",
        path=tree.path if tree and not merged and tree.status != "removed" else "",
    )


def _decision(entry: Mapping[str, Any]) -> str:
    reason = str(entry.get("reason", ""))
    return f"{entry.get('decision', '')}" + (f" ({reason})" if reason else "")


def _ran(session: Worker) -> float:
    ended = parse_time(session.ended_at or session.beat_at)
    return (ended - parse_time(session.started_at)).total_seconds()


def _write(path: Path, text: str) -> None:
    """Put the whole text there at once, inside the project."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        for folder in (path.parent.parent, path.parent, partial):
            if folder.is_symlink():
                raise StoreUnwritable(
                    f"{folder} is a link to somewhere else; a report is kept inside the project. "
                    "Remove the link and write it again: `cockpit chain report`."
                )
        ignore = path.with_name(".gitignore")
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")  # the person's checkout stays as it was
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)  # noqa: PTH105 - in one step, whatever was there
    except OSError as error:
        raise StoreUnwritable(
            f"The report cannot be written to {path}: {error.strerror or error}. When that is mended: "
            "`cockpit chain report`."
        ) from error
