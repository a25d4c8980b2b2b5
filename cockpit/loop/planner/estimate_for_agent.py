"""The planner's estimates as an external agent reads them: ranges as JSON values.

See ``docs/reference/planner.md``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cockpit.loop.planner.planner_service import PlannerService
from cockpit.loop.wave_context import Engine
from cockpit.store.backlog.queue_scope import Scope
from cockpit.store.journal.details.detail import detail_body


async def estimate_words(engine: Engine, words: str) -> dict[str, Any]:
    """Estimate the session that ``words`` would start. Raises as :meth:`PlannerService.estimate_words`."""
    estimated = await PlannerService(engine).estimate_words(words)
    return {
        "task_type": estimated.task_type,
        "title": estimated.title,
        "model": estimated.model,
        "estimate": detail_body(estimated.estimate),
    }


async def estimate_tasks(engine: Engine, named: Collection[str], most: int) -> dict[str, Any]:
    """Estimate the ``named`` open tasks, all of the backlog without; at most ``most`` are listed."""
    estimated = await PlannerService(engine).estimate_tasks(Scope(), named=named)
    total = estimated.total
    return {
        "tasks": [
            {
                "task_id": each.task.task_id,
                "task_type": each.task.task_type,
                "waits_for": list(each.waits),
                "estimate": detail_body(each.estimate),
            }
            for each in estimated.tasks[:most]
        ],
        "total": {
            **detail_body(total),
            "tasks": len(estimated.tasks),
            "without_history": len(estimated.tasks) - total.history,
        },
        "blocked": estimated.blocked,
        "left_out": estimated.left_out + max(0, len(estimated.tasks) - most),
    }
