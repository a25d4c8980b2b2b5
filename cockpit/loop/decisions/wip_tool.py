"""The agent's tool ``update_wip``: what it decided, what matters, and what comes next, kept with its task.

It changes no file, so nothing waits for the user. See ``docs/reference/work-in-progress.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.core.text import pluralize
from cockpit.loop.wave_context import WaveContext
from cockpit.store.backlog import wip

TOOL = "update_wip"


async def record_work(context: WaveContext, call: Mapping[str, Any]) -> None:
    """Merge one planned ``call`` into the task's work in progress.

    Merging it twice changes nothing, so a wave that resumes after a crash may repeat it.
    """
    session = context.session
    patch = {name: value for name, value in call["arguments"].items() if value not in ("", [], ())}
    await context.store.write(
        lambda tx: wip.update(
            tx, str(session.task_id), patch, by="agent", session_id=session.session_id
        )
    )


def read_call_result(call: Mapping[str, Any]) -> tuple[str, str]:
    """Return the result that the agent reads of a call that was merged, and the exchange's status."""
    decisions = call["arguments"].get("decisions", ())
    parts = [pluralize(len(decisions), "decision")] if decisions else []
    parts += [
        name.replace("_", " ") for name in ("context", "next_step") if call["arguments"].get(name)
    ]
    return f"Recorded with the task: {', '.join(parts)}.", "confirmed"
