"""A task's end: its handoff, its status and its tree, in one transaction.

Source: seed 004, solution 1; design of work, "Doing a task".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cockpit.backlog import service
from cockpit.store.backlog import handoffs
from cockpit.store.backlog.tasks import Task
from cockpit.store.chains import task_runs, worktrees
from cockpit.store.chains.task_runs import Step
from cockpit.store.db.transaction import Tx
from cockpit.tasks.git import changed_files, commit_of
from cockpit.tasks.pause import user_decision
from cockpit.tasks.steps import NextStep, details_of, summary_of
from cockpit.tasks.task_context import TaskContext
from cockpit.tasks.worktree import remove_worktree

_BY = "engine"


async def finish_task(
    desk: TaskContext, task: Task, run: int, coming: NextStep, steps: Sequence[Step]
) -> tuple[str, str | None]:
    """End the task's run as ``coming`` says; returns the handoff's summary and the merge's commit.

    Of a task that is done the tree is removed; of one that is blocked everything is kept.
    """
    done = coming.step == "done"
    tree = desk.store.read_now(lambda found: worktrees.find(found, task.task_id))
    if done and tree is not None:
        # Before the task is done: whoever takes it up after a crash removes the tree then.
        await remove_worktree(desk.store, desk.place, tree.name)
    summary = (summary_of(steps, task.title) if done else coming.reason)[: handoffs.MOST_SUMMARY]
    files: Sequence[str] = steps[-1].detail.get("files", ()) if done else ()
    if not done and tree is not None:
        tip = await commit_of(desk.place.home, f"refs/heads/{tree.branch}")
        files = await changed_files(desk.place.home, tree.base_commit, tip) if tip else ()

    def ended(tx: Tx) -> None:
        where: dict[str, Any] = {"chain_id": desk.chain_id, "ordinal": desk.ordinal}
        last = task_runs.begin(tx, task.task_id, run, coming.step, **where)
        task_runs.end(tx, last, coming.handoff, summary=summary)
        handoffs.set_handoff(
            tx, task.task_id, coming.handoff, summary, files, details_of(steps), by=_BY
        )
        if not done and tree is not None and tree.status == "active":
            worktrees.set_status(tx, tree.name, "kept")
        said = user_decision(tx.connection, task.task_id)
        if said and (not done or said == "archived"):
            return  # what is merged is done, whoever blocked it meanwhile
        service.set_status(
            tx,
            task.task_id,
            coming.step,
            None if done else coming.reason,
            by=_BY,
            before_decay=desk.before_decay,
        )

    await desk.store.write(ended)
    return summary, steps[-1].detail.get("commit") if done else None


def finished_result(desk: TaskContext, task: Task) -> tuple[str, str | None]:
    """As :func:`finish_task` of a task that is done already."""
    given = desk.store.read_now(lambda found: handoffs.find(found, task.task_id))
    tree = desk.store.read_now(lambda found: worktrees.find(found, task.task_id))
    return given.summary if given else task.title, tree.merged_commit if tree else None
