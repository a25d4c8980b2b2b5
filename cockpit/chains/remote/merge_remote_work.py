"""Taking over what a worker did: its branch and its steps, then the merge, as of a task done here.

Doing it twice is doing it once: a crash in between is repeated from the stored result. See
``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from cockpit.chains.remote.message_types import RunResult, work_branch
from cockpit.chains.remote.shared_repository import ask_shared, local_branch
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import convert
from cockpit.store.backlog import wip
from cockpit.store.backlog.wip import WipInvalid
from cockpit.store.chains import remote_runs, task_runs, worktrees
from cockpit.store.chains.remote_runs import RemoteRun
from cockpit.store.chains.task_runs import Step
from cockpit.store.db.transaction import Tx
from cockpit.tasks.finish_task import SetAside, raise_if_set_aside
from cockpit.tasks.git import commit_of, is_ancestor, worktree_lock, worktrees_folder
from cockpit.tasks.run_task import run_task
from cockpit.tasks.steps import next_step
from cockpit.tasks.task_context import TaskContext, TaskOutcome
from cockpit.tasks.worktree import ensure_task_worktree

_BY = "engine"
_STEPS = frozenset(("implement", "test", "fix", "spec_review", "quality_review"))
MOST_STEPS = 200


class ResultRefused(CockpitError):
    """A worker's result is not what it says it is."""

    code = "result"


async def take_over(context: TaskContext, repository: str, remote: RemoteRun) -> TaskOutcome:
    """Fetch the worker's branch from the shared repository, store its steps, and merge.

    Raises :class:`ResultRefused` for a branch or
    steps that are not as the result says, ``WorktreeError``, and the store's errors.
    """
    result = convert(dict(remote.result), RunResult)
    task_id, run = remote.task_id, remote.run
    if (
        not result.steps
        or len(result.steps) > MOST_STEPS
        or {s.step for s in result.steps} - _STEPS
    ):
        raise ResultRefused(
            f"{remote.worker} sent no steps of {task_id}, or other ones than a task has."
        )
    if (after := _step_after(context, remote, result)) != "merge":
        raise ResultRefused(f"{remote.worker} sent steps of {task_id} after which {after} comes.")
    branch = await local_branch(context, remote)
    await _fetch(context, repository, remote, result, branch)

    def store(tx: Tx) -> None:
        worktrees.register(
            tx,
            task_id,
            task_id=task_id,
            chain_id=context.chain_id,
            path=str(worktrees_folder(context.place) / task_id),
            branch=branch,
            base_commit=remote.base_commit,
        )
        _store_steps(tx, context, remote, result)
        remote_runs.finish(tx, task_id, run)

    await context.store.write(store)
    return await _merge(context, remote)


async def _merge(context: TaskContext, remote: RemoteRun) -> TaskOutcome:
    """Merge what was taken over; where the user ended the task meanwhile, keep it as a chain here does."""
    task_id, store = remote.task_id, context.store
    try:
        await store.write(lambda tx: raise_if_set_aside(tx, task_id))
        outcome = await run_task(context, task_id)
    except SetAside as error:
        outcome = TaskOutcome(
            task_id, "interrupted", str(error), remote.tokens, remote.cost_usd or 0.0,
            reason=error.code,
        )  # fmt: skip
    if outcome.status != "done":
        await ensure_task_worktree(
            store,
            context.place,
            task_id,
            chain_id=context.chain_id,
            chain_branch=context.chain_branch,
        )
        await store.write(lambda tx: worktrees.set_status(tx, task_id, "kept"))
    return outcome


async def _fetch(
    context: TaskContext,
    repository: str,
    remote: RemoteRun,
    result: RunResult,
    branch: str,
) -> None:
    """Fetch the worker's branch as ``branch``: its commit and its beginning are as they have to be."""
    if result.commit == remote.base_commit:
        return  # the run changed nothing: there is nothing to fetch, and no branch
    home = context.place.home
    name = work_branch(remote.task_id, remote.run, remote.fence)
    if await commit_of(home, f"refs/heads/{branch}") != result.commit:  # else: before a crash
        words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", repository)
        await ask_shared(
            context.store.clock,
            home,
            *(*words, f"+refs/heads/{name}:refs/heads/{branch}"),
            within=partial(worktree_lock, context.place),
        )
    if await commit_of(home, f"refs/heads/{branch}") != result.commit:
        raise ResultRefused(
            f"The branch of {remote.worker} for {remote.task_id} is not at the commit that it names."
        )
    if not await is_ancestor(home, remote.base_commit, result.commit):
        raise ResultRefused(
            f"The branch of {remote.worker} for {remote.task_id} does not begin where the run began."
        )


def _store_steps(tx: Tx, context: TaskContext, remote: RemoteRun, result: RunResult) -> None:
    """Store the worker's steps as those of this run; the first one is open since the run was sent."""
    where: dict[str, Any] = {"chain_id": context.chain_id, "ordinal": context.ordinal}
    steps = task_runs.select_steps(tx.connection, remote.task_id)
    current = steps[-1] if steps and steps[-1].run == remote.run and steps[-1].open else None
    for taken in result.steps:
        if current is None:
            current = task_runs.begin(tx, remote.task_id, remote.run, taken.step, **where)
        detail = {name: value for name, value in taken.detail.items() if name not in _NO_DETAILS}
        task_runs.end(tx, current, taken.outcome, **{**detail, "worker": remote.worker})
        current = None
    progress = {name: result.progress[name] for name in _PROGRESS if name in result.progress}
    try:
        wip.update(tx, remote.task_id, progress, by=_BY)
    except WipInvalid as error:
        raise ResultRefused(f"{remote.worker} sent other work in progress: {error}") from error


def _step_after(context: TaskContext, remote: RemoteRun, result: RunResult) -> str:
    """Return the step that follows the worker's; each of those has to follow from the ones before it."""
    steps: list[Step] = []
    for position, taken in enumerate(result.steps, start=1):
        coming = next_step(steps, auto_fix=True, max_fixes=context.work.max_test_retries)
        if coming.step != taken.step:
            return coming.step
        steps.append(
            Step(
                task_id=remote.task_id,
                run=remote.run,
                position=position,
                chain_id=context.chain_id,
                ordinal=context.ordinal,
                step=taken.step,
                attempt=1,
                session_id=None,
                outcome=taken.outcome or "none",
                detail=taken.detail,
                started_at="",
                ended_at="",
            )
        )
    return next_step(steps, auto_fix=True, max_fixes=context.work.max_test_retries).step


_NO_DETAILS = frozenset(("tx", "step", "outcome"))
"""Names of what a step has besides its details."""
_PROGRESS = ("files_modified", "last_commit", "uncommitted_changes", "test_results", "decisions")
"""What of a worker's work in progress is taken along."""
