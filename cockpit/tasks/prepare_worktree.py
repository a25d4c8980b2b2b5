"""Where a task is done: in its own tree, on what it builds on, from the last commit that is known of it.

Source: design of work, "Doing a task".
"""

from __future__ import annotations

import sqlite3

from cockpit.store.chains import task_runs
from cockpit.store.chains.worktrees import Worktree
from cockpit.tasks.prerequisites import merge_prerequisites
from cockpit.tasks.task_context import TaskContext
from cockpit.tasks.worktree import ensure_chain_worktree, ensure_task_worktree


async def prepare_worktree(desk: TaskContext, task_id: str) -> Worktree:
    """The task's tree, made where it is not there. Raises ``WorktreeTrouble``."""
    chain = await ensure_chain_worktree(
        desk.store, desk.place, desk.chain_branch, chain_id=desk.chain_id
    )
    await merge_prerequisites(desk.store, desk.place, chain, task_id)
    return await ensure_task_worktree(
        desk.store,
        desk.place,
        task_id,
        chain_id=desk.chain_id,
        chain_branch=desk.chain_branch,
        tip=desk.store.read_now(lambda found: _tip(found, task_id)),
    )


def _tip(connection: sqlite3.Connection, task_id: str) -> str:
    """The commit that the task's last finished step left; empty where none did."""
    steps = reversed(task_runs.select_steps(connection, task_id))
    return next((str(step.detail["tip"]) for step in steps if step.detail.get("tip")), "")
