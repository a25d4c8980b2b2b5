"""Capture of work in progress: an action's effect on the record of the session's task.

It runs as soon as an action has its receipt, and is committed before another one runs. Merging the same
action twice changes nothing, so a wave that resumes after a crash may repeat it. See
``docs/reference/work-in-progress.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from cockpit.core.errors import NotFound
from cockpit.learn.capture_wip import ToolUse, capture_tool_use, list_solved
from cockpit.loop.wave_context import WaveContext
from cockpit.store.backlog import wip
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import outbox
from cockpit.store.sessions.outbox import OutboxAction, Receipt

_MAX_FILE_BYTES = 100_000


async def capture_work_in_progress(context: WaveContext, action: OutboxAction) -> None:
    """Merge an ended action into the work in progress of the session's task, if any."""
    task_id = context.session.task_id
    if task_id is None:
        return
    receipts = context.store.read_now(
        lambda connection: outbox.select_receipts(connection, action.action_id)
    )
    if not receipts or action.phase not in ("confirmed", "failed_terminal"):
        return
    tool_use = _tool_use_of(action, receipts[-1], str(context.engine.place.root))
    patch = await asyncio.to_thread(_capture, tool_use)
    if not patch:
        return

    def merge(tx: Tx) -> None:
        # The task may belong to another project, and the session only names it: then nothing is written.
        with contextlib.suppress(NotFound):
            wip.update(tx, task_id, patch, by="engine", session_id=context.session.session_id)

    await context.store.write(merge)


def _capture(tool_use: ToolUse) -> dict[str, Any]:
    solved = list_solved(tool_use)
    patch = capture_tool_use(tool_use, _read_small_file)
    return {**patch, wip.SOLVED: solved} if solved else patch


def _tool_use_of(action: OutboxAction, receipt: Receipt, root: str) -> ToolUse:
    detail = receipt.detail
    outputs = [str(detail[name]) for name in ("stdout", "stderr") if detail.get(name)]
    code = detail.get("exit_code")
    arguments: dict[str, Any] = dict(action.payload)
    if detail.get("commit"):
        arguments["commit"] = detail["commit"]
    return ToolUse(
        tool=action.action_type,
        arguments=arguments,
        output="\n".join(outputs) or receipt.summary,
        exit_code=code if isinstance(code, int) else None,
        cwd=root,
        root=root,
        failed=receipt.status != "success",
    )


def _read_small_file(path: str) -> str | None:
    """Return the text of a script or patch file; None when it is missing or too large."""
    file = Path(path)
    try:
        if not file.is_file() or file.stat().st_size > _MAX_FILE_BYTES:
            return None
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
