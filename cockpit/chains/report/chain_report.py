"""The report of a chain: collected from the store, and written when the chain ends.

Handoffs that decay before that are copied into the chain's row first. What the repository asks of commits
and cockpit's own do not do (hooks, signatures) is told. See ``docs/reference/chains.md``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cockpit.act.commit_hooks import find_hooks
from cockpit.backlog.story_completion import BeforeDecay, Boundaries
from cockpit.chains.decide_next_worker import chain_usage
from cockpit.chains.report.chain_document import read_workers
from cockpit.chains.report.report_markdown import (
    BLOCKED,
    DONE,
    IN_PROGRESS,
    ChainReport,
    TaskReport,
    render_report,
)
from cockpit.core.errors import StoreUnwritable
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.backlog import handoffs, task_activity, tasks
from cockpit.store.backlog.tasks import Task
from cockpit.store.chains import chains, task_runs, worktrees
from cockpit.store.chains.chains import Chain
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.tasks.agent_changes.moved_branch import find_lost_tasks
from cockpit.tasks.git import try_git

_HOOKS = ("pre-commit", "commit-msg", "pre-merge-commit")
_OF_CHAIN = "SELECT session_id, task_id FROM task_runs WHERE chain_id=?1 AND session_id IS NOT NULL"
# The built-in agent's commits, and those of commands and external agents.
_FAILED = f"""\
WITH of_chain AS ({_OF_CHAIN})
SELECT of_chain.task_id, coalesce(json_extract(detail_json, '$.message'),
                                  json_extract(detail_json, '$.summary'), '')
FROM journal JOIN of_chain USING (session_id)
WHERE (action='action.failed' AND (json_extract(detail_json, '$.type')='git_commit'
                                   OR json_extract(detail_json, '$.title') LIKE '%git commit%'))
   OR (action='runner.tool_ended' AND json_extract(detail_json, '$.failed')
       AND json_extract(detail_json, '$.title') LIKE '%git commit%')
ORDER BY seq
"""  # noqa: S608 - fixed text
_LONGEST = 300


async def describe_commit_checks(
    store: Store, place: ProjectPaths, chain: Chain
) -> tuple[str, ...]:
    """Return sentences for the report; none where the repository asks for nothing of the kind."""
    if not place.git:
        return ()
    hooks = (await find_hooks(place.home, _HOOKS)).names
    question = ("config", "--type=bool", "--show-scope", "--get-all", "commit.gpgSign")
    values = [line.split("\t") for line in (await try_git(place.home, *question)).text.splitlines()]
    own = [
        value for scope, value in values if scope != "command"
    ]  # cockpit's own git signs nothing
    signs = own[-1:] == ["true"]
    if not (hooks or signs):
        return ()
    # The last refusal of a commit, by task.
    failed = await store.read(lambda c: dict(c.execute(_FAILED, (chain.chain_id,)).fetchall()))
    return tuple(_describe(hooks, signs, failed))


def _describe(hooks: tuple[str, ...], signs: bool, failed: dict[str, str]) -> Iterator[str]:
    if hooks:
        yield (
            f"The repository has hooks ({', '.join(hooks)}). cockpit's commits and merges run none: run them"
            " before you merge."
        )
    if signs:
        yield (
            "The repository signs commits (`commit.gpgSign`). cockpit's commits and merges are not signed: it"
            " has no key of yours."
        )
    for task_id, message in failed.items():
        words = " ".join(message.split())
        yield f"A commit of the agent of {task_id} failed: {words[:_LONGEST]}"


MAX_SUMMARY = 600
"""Characters of a handoff's summary that are kept for the report."""
MAX_DECISIONS = 50
"""Decisions of one task in the report; the newest are kept."""

_FAILURES = ("failed", "limited")
_DIRECTORY = "reports"


def collect_before_decay(chain_id: str) -> BeforeDecay:
    """Return a callback that copies the chain's handoffs into its row before they decay.

    It runs in the transaction in which a story or an epic completes and its handoffs decay.
    """

    def collect(tx: Tx, reached: Boundaries) -> None:
        rows = tx.execute(
            "SELECT h.task_id, h.summary FROM task_handoffs h JOIN tasks t USING(task_id)"
            " LEFT JOIN stories s USING(story_id)"
            " WHERE h.status='PASS' AND (t.story_id=? OR (? AND s.epic_id=?))"
            " AND EXISTS (SELECT 1 FROM task_runs r WHERE r.task_id=h.task_id AND r.chain_id=?)",
            (reached.story_id, reached.epic_completed, reached.epic_id, chain_id),
        ).fetchall()
        if not rows:
            return
        collected = dict(chains.load(tx.connection, chain_id).summary)
        summaries = {task_id: summary[:MAX_SUMMARY] for task_id, summary in rows}
        merged = {**collected.get("handoffs", {}), **summaries}
        chains.save_summary(tx, chain_id, {**collected, "handoffs": merged})

    return collect


def wants_report(connection: sqlite3.Connection, chain: Chain, setting: str) -> bool:
    """Whether ``setting`` (``[headless] report``) asks for a report of the chain as it ended.

    ``on_failure``: the chain failed or reached a limit, or one of its tasks is blocked.
    """
    if setting == "on_complete":
        return chain.status == "completed"
    if setting == "on_failure":
        return chain.status in _FAILURES or any(
            task.status == "blocked" for task in _reported_tasks(connection, chain)
        )
    return setting == "always"


async def write_report(store: Store, place: ProjectPaths, chain: Chain) -> Path:
    """Write the report of the chain as ``chain`` describes it; return its path.

    Journals it. Raises ``StoreUnwritable`` where the file cannot be written, or would be
    outside the project.
    """
    lost = await find_lost_tasks(store, place, chain)
    checks = await describe_commit_checks(store, place, chain)
    collected = await store.read(lambda connection: collect_report(connection, chain))
    text = render_report(replace(collected, lost=lost, checks=checks))
    path = place.folder / _DIRECTORY / f"chain-{chain.number}-report.md"
    _write(path, text)
    relative = path.relative_to(place.home).as_posix()
    await store.write(lambda tx: chains.record_report(tx, chain.chain_id, relative))
    return path


async def write_report_if_set(
    store: Store, place: ProjectPaths, setting: str, chain: Chain
) -> None:
    """Write the report of the chain, which ends as ``chain`` says, where ``setting`` asks for it."""
    if await store.read(lambda connection: wants_report(connection, chain, setting)):
        await write_report(store, place, chain)


def collect_report(connection: sqlite3.Connection, chain: Chain) -> ChainReport:
    """Read from the store what the report of the chain contains."""
    summaries: Mapping[str, str] = chains.load(connection, chain.chain_id).summary.get(
        "handoffs", {}
    )
    task_reports = [
        _task_report(connection, task, summaries) for task in _reported_tasks(connection, chain)
    ]
    return ChainReport(
        chain=chain,
        progress=chains.count_progress(connection, chain),
        tasks=tuple(task_reports),
        workers=read_workers(connection, chain),
        usage=chain_usage(connection, chain),
        merged=task_runs.has_merged(connection, chain.chain_id),
    )


def _reported_tasks(connection: sqlite3.Connection, chain: Chain) -> list[Task]:
    """Return the tasks that the chain worked on, and blocked ones of its scope."""
    where, values = chains.scope_condition(chain)
    rows = connection.execute(
        "SELECT t.task_id FROM tasks t WHERE EXISTS"  # noqa: S608 - conditions of ours
        " (SELECT 1 FROM task_runs r WHERE r.task_id=t.task_id AND r.chain_id=?)"
        f" OR (t.status='blocked' AND {where}) ORDER BY t.number",
        (chain.chain_id, *values),
    )
    return tasks.load_many(connection, [task_id for (task_id,) in rows])


def _task_report(
    connection: sqlite3.Connection, task: Task, summaries: Mapping[str, str]
) -> TaskReport:
    worktree = worktrees.find(connection, task.task_id)
    progress = task.wip or {}
    summary, details, failed = summaries.get(task.task_id, ""), "", False
    if task.status != "done" or not summary:
        handoff = handoffs.find(connection, task.task_id)
        if handoff is not None:
            summary, failed = handoff.summary, handoff.status == "FAIL"
            details = handoff.full_details or ""
    if task.status == "blocked":
        summary = task.blocker or summary
    elif task.status != "done":
        summary = f"paused at: {progress.get('phase') or task.status.replace('_', ' ')}"
    merged = task.status == "done" and worktree is not None
    has_branch = worktree is not None and not merged and worktree.status != "removed"
    return TaskReport(
        task_id=task.task_id,
        title=task.title,
        status={"done": DONE, "blocked": BLOCKED}.get(task.status, IN_PROGRESS),
        summary=summary,
        decisions=_list_decisions(connection, task),
        details=details if failed and task.status == "blocked" else "",
        next_step="" if task.status == "blocked" else str(progress.get("next_step", "")),
        commit=(worktree.merged_commit or "") if merged and worktree else "",
        branch=worktree.branch if has_branch and worktree else "",
        path=worktree.path if has_branch and worktree else "",
    )


def _list_decisions(connection: sqlite3.Connection, task: Task) -> tuple[str, ...]:
    """List the task's decisions, the newest last: from its work in progress and from its activity."""
    activity = task_activity.select_for_task(connection, task.task_id)
    texts = [each.description for each in reversed(activity) if each.activity_type == "decision"]
    texts += [_decision_text(entry) for entry in (task.wip or {}).get("decisions", ())]
    return tuple(dict.fromkeys(texts))[-MAX_DECISIONS:]


def _decision_text(entry: Mapping[str, Any]) -> str:
    reason = str(entry.get("reason", ""))
    return f"{entry.get('decision', '')}" + (f" ({reason})" if reason else "")


def _write(path: Path, text: str) -> None:
    """Write the whole text in one step, inside the project."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        for folder in (path.parent.parent, path.parent, partial):
            # Before anything is created in it: a link would lead that elsewhere.
            if folder.is_symlink():
                raise StoreUnwritable(
                    f"{folder} is a symbolic link; reports must stay inside the project. Remove the"
                    " link, then write the report again with `cockpit chain last --report`."
                )
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        ignore = path.with_name(".gitignore")
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")  # reports must not show up in git status
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)  # noqa: PTH105 - replaces an older report in one step
    except OSError as error:
        raise StoreUnwritable(
            f"cockpit cannot write the report to {path}: {error.strerror or error}. Fix that, then"
            " write the report again with `cockpit chain last --report`."
        ) from error
