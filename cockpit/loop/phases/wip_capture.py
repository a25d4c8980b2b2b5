"""The engine's own actions, told to the work in progress of the session's task.

As soon as an action has its receipt; merging twice is merging once, so that a wave that is taken up
again after a crash loses nothing and adds nothing. Source: seed 004, solution 2.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from cockpit.core.errors import NotFound
from cockpit.learn.capture_wip import ToolUse, captured
from cockpit.loop.wave_context import Here
from cockpit.store.backlog import wip
from cockpit.store.sessions import outbox
from cockpit.store.sessions.outbox import OutboxAction, Receipt

_MOST_READ = 100_000


async def capture(here: Here, action: OutboxAction) -> None:
    """Merge what ``action``, which has ended, tells. A session without a task is left alone."""
    task_id = here.session.task_id
    if task_id is None:
        return
    receipts = here.store.read_now(lambda found: outbox.select_receipts(found, action.action_id))
    if not receipts or action.phase not in ("confirmed", "failed_terminal"):
        return
    use = _used(action, receipts[-1], str(here.engine.place.root))
    patch = await asyncio.to_thread(captured, use, _read)
    if not patch:
        return
    try:
        await here.store.write(
            lambda tx: wip.update(
                tx, task_id, patch, by="engine", session_id=here.session.session_id
            )
        )
    except NotFound:
        return  # a session may be about a task of somewhere else, and only bears its name


def _used(action: OutboxAction, receipt: Receipt, root: str) -> ToolUse:
    detail = receipt.detail
    told = [str(detail[name]) for name in ("stdout", "stderr") if detail.get(name)]
    code = detail.get("exit_code")
    arguments: dict[str, Any] = dict(action.payload)
    if detail.get("commit"):
        arguments["commit"] = detail["commit"]
    return ToolUse(
        tool=action.action_type,
        arguments=arguments,
        output="\n".join(told) or receipt.summary,
        exit_code=code if isinstance(code, int) else None,
        cwd=root,
        root=root,
        failed=receipt.status != "success",
    )


def _read(path: str) -> str | None:
    """The text of a script or a patch, where there is one of a sensible size."""
    place = Path(path)
    try:
        if not place.is_file() or place.stat().st_size > _MOST_READ:
            return None
        return place.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
