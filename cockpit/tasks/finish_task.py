"""How a task's run ends: its handoff, status and worktree in one transaction, or the user sets it aside.

A user's decision about a running task takes effect before its next step. An agent's word about its status
does not count. See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cockpit.backlog import service
from cockpit.backlog.user_decision import USER_DECISIONS, user_decision
from cockpit.core.errors import CockpitError
from cockpit.loop.planner.estimate_run import learn_run
from cockpit.store.backlog import handoffs
from cockpit.store.backlog.tasks import Task
from cockpit.store.chains import task_runs, worktrees
from cockpit.store.chains.task_runs import Step
from cockpit.store.db.transaction import Tx
from cockpit.tasks.git import changed_files, commit_of
from cockpit.tasks.steps import NextStep, details_of, summary_of
from cockpit.tasks.task_context import TaskContext
from cockpit.tasks.worktree import remove_worktree

_BY = "engine"


async def finish_task(
    context: TaskContext, task: Task, run: int, ending: NextStep, steps: Sequence[Step]
) -> tuple[str, str | None]:
    """End the task's run with ``ending``, which is ``done`` or ``blocked``.

    Removes the worktree of a done task and keeps everything of a blocked one. Returns the handoff's
    summary and the merge commit.
    """
    done = ending.step == "done"
    worktree = context.store.read_now(lambda connection: worktrees.find(connection, task.task_id))
    if done and worktree is not None:
        # Before the status changes: after a crash here, the resumed task removes its worktree again.
        await remove_worktree(context.store, context.place, worktree.name)
    summary = (summary_of(steps, task.title) if done else ending.reason)[: handoffs.MOST_SUMMARY]
    files: Sequence[str] = steps[-1].detail.get("files", ()) if done else ()
    if not done and worktree is not None:
        tip = await commit_of(context.place.home, f"refs/heads/{worktree.branch}")
        files = await changed_files(context.place.home, worktree.base_commit, tip) if tip else ()

    def record(tx: Tx) -> None:
        where: dict[str, Any] = {"chain_id": context.chain_id, "ordinal": context.ordinal}
        last = task_runs.begin(tx, task.task_id, run, ending.step, **where)
        task_runs.end(tx, last, ending.handoff, summary=summary)
        if done:
            learn_run(tx, task.task_id, run)
        handoffs.set_handoff(
            tx, task.task_id, ending.handoff, summary, files, details_of(steps), by=_BY
        )
        if not done and worktree is not None and worktree.status == "active":
            worktrees.set_status(tx, worktree.name, "kept")
        decision = user_decision(tx.connection, task.task_id)
        if decision and (not done or decision == "archived"):
            return  # merged work is done, even if the user blocked the task meanwhile
        service.set_status(
            tx,
            task.task_id,
            ending.step,
            None if done else ending.reason,
            by=_BY,
            before_decay=context.before_decay,
        )

    await context.store.write(record)
    return summary, steps[-1].detail.get("commit") if done else None


def finished_result(context: TaskContext, task: Task) -> tuple[str, str | None]:
    """Return what :func:`finish_task` returned, of a task that is done already."""
    handoff = context.store.read_now(lambda connection: handoffs.find(connection, task.task_id))
    worktree = context.store.read_now(lambda connection: worktrees.find(connection, task.task_id))
    return (
        handoff.summary if handoff else task.title,
        worktree.merged_commit if worktree else None,
    )


class SetAside(CockpitError):
    """The user blocked, archived or finished the task while it was running."""

    code = "set_aside"


def raise_if_set_aside(tx: Tx, task_id: str) -> None:
    """Raise :class:`SetAside` when the user ended the task's run."""
    if decision := user_decision(tx.connection, task_id):
        raise SetAside(
            f"{task_id} was {USER_DECISIONS[decision]} while it was running; its work is kept"
        )


def keep_worktree(tx: Tx, task_id: str) -> None:
    """Mark the task's worktree as kept, so that a later run can resume there."""
    worktree = worktrees.find(tx.connection, task_id)
    if worktree is not None and worktree.status == "active":
        worktrees.set_status(tx, worktree.name, "kept")
