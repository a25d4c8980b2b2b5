"""The hooks that an agent is given, so that it tells cockpit what it does and asks what it may."""

from __future__ import annotations

import asyncio
from typing import Any

from cockpit.store.db.database import Store
from cockpit.store.hooks import pending_events

_TOOLS = {
    "claude": "Bash|Edit|Write|MultiEdit|NotebookEdit|mcp__.*__update_task_status",
    "codex": "Bash|apply_patch|mcp__.*__update_task_status",
}
_TIMEOUT_S = 15
_PATIENCE_S = 10.0
_LOOK_S = 0.05


def hook_groups(agent: str, program: str) -> dict[str, list[dict[str, Any]]]:
    """Our hooks by event: each a list with one matcher group. ``program`` starts cockpit."""
    handler: dict[str, Any] = {
        "type": "command",
        "command": f"{program} hook --agent {agent}",
        "timeout": _TIMEOUT_S,
    }
    shell, tools = "Bash", _TOOLS[agent]
    matchers = {
        "SessionStart": None,
        "SessionEnd": None,
        "PreToolUse": shell,
        "PermissionRequest": "*",
        "PostToolUse": tools,
        "PostToolUseFailure": tools,
        "PreCompact": None,
        "Stop": None,
    }
    if agent == "codex":
        del matchers["PostToolUseFailure"]  # there a failed command is told like any other
    return {
        event: [{**({"matcher": matcher} if matcher else {}), "hooks": [dict(handler)]}]
        for event, matcher in matchers.items()
    }


async def wait_for_hook_events(store: Store, task_id: str) -> None:
    """Wait until what hooks told of the task is work in progress; not for ever, and mostly a moment.

    What comes after the agent's end would otherwise say of a tree that is committed that it is not.
    """
    until = store.clock.monotonic() + _PATIENCE_S
    while store.read_now(lambda seen: pending_events.has_waiting_for(seen, task_id)):
        if store.clock.monotonic() > until:
            return
        await asyncio.sleep(_LOOK_S)
