"""Ask the guards of the user and of the project about a call, after cockpit's own.

See ``docs/reference/guards.md``, your own guards.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from cockpit.act.guards.action_guard import GuardState, Refusal
from cockpit.act.guards.project_guards import ask_guard, restore_guard
from cockpit.act.model_tools import Call
from cockpit.act.own_tools.tool_files import ToolFileRefused
from cockpit.loop.wave_context import WaveContext
from cockpit.store.guards import approved_guards
from cockpit.store.guards.approved_guards import ApprovedGuard


async def ask_own_guards(context: WaveContext, call: Call, state: GuardState) -> Refusal | None:
    """Return the first refusal of the approved guards, in the order of their ids."""
    for approved in context.store.read_now(_list_approved):
        try:
            guard = restore_guard(approved.guard_id, approved.sources, approved.digest)
        except ToolFileRefused as error:
            return Refusal(approved.guard_id, f"This call is not carried out: {error}")
        if not guard.sees(call.name):
            continue
        refusal = await ask_guard(guard, call, state, context.engine.ground)
        if refusal is not None:
            return refusal
    return None


def _list_approved(connection: sqlite3.Connection) -> Any:
    if not approved_guards.has_any(connection):
        return list[ApprovedGuard]()
    return approved_guards.select_all(connection)
