"""The hooks that an external agent gets: they report its actions to cockpit and ask for permission.

See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import asyncio
import shlex
from typing import Any

from cockpit.store.db.database import Store
from cockpit.store.hooks import pending_events

_TOOLS = {
    "claude": "Bash|Edit|Write|MultiEdit|NotebookEdit|mcp__.*__update_task_status",
    "codex": "Bash|apply_patch|mcp__.*__update_task_status",
}
_GUARDED = {"claude": "Read|Task|Agent", "codex": "Read"}
"""Tools beside the shell whose calls the guard against redundant reads sees."""
_TIMEOUT_S = 15
_ANSWER_TIMEOUT_S = 900
"""Seconds that an agent lets a hook wait for the user; the hook ends before."""
_WAITING = ("PermissionRequest", "PreToolUse")
_WAITING_WORDS = "answer in cockpit, or press Esc"
"""What Codex shows while the hook waits: its own dialog opens only after the hook."""
_WAIT_S = 10.0
_POLL_S = 0.05


def hook_groups(
    agent: str,
    program: str,
    *,
    asks: bool = False,
    approve: bool = False,
    guard: bool = False,
    policy: str = "",
    config: str = "",
) -> dict[str, list[dict[str, Any]]]:
    """Return our hooks by event, each a list with one matcher group. ``program`` starts cockpit.

    ``asks``: the agent asks for permissions by its protocol, and no hook answers them. ``approve``: a
    permission that the agent asks for waits for the user in an open cockpit. ``guard``: a read of what the
    agent has in its context is refused. ``policy`` is what a run of cockpit's lets pass, and ``config`` the
    folder of the user's settings: a hook takes neither from its environment, which a repository can set.
    """
    options = [*(["--approve"] if approve else []), *(["--guard"] if guard else [])]
    options += ["--policy", policy] if policy else []
    options += ["--config", shlex.quote(config)] if config else []
    command = " ".join([f"{program} hook --agent {agent}", *options])
    handler: dict[str, Any] = {
        "type": "command",
        "command": command,
        "timeout": _TIMEOUT_S,
    }
    # A shell may be behind any tool of an MCP server.
    shell, tools = "Bash|mcp__.*", _TOOLS[agent]
    if guard:
        shell, tools = f"{shell}|{_GUARDED[agent]}", f"{tools}|{_GUARDED[agent]}"
    matchers = {
        "SessionStart": None,
        "SessionEnd": None,
        "UserPromptSubmit": None,
        "PreToolUse": "*" if approve else shell,
        "PermissionRequest": "*",
        "PostToolUse": "*" if approve else tools,
        "PostToolUseFailure": "*" if approve else tools,
        "Notification": None,
        "PreCompact": None,
        "Stop": None,
    }
    if agent == "codex":
        del matchers["PostToolUseFailure"]  # Codex reports a failed command like any other
    if agent == "codex" or not approve:
        del matchers["Notification"]  # Codex has none
    if asks:
        del matchers["PermissionRequest"]
    return {
        event: [
            {
                **({"matcher": matcher} if matcher else {}),
                "hooks": [_waiting(handler, agent, event, approve)],
            }
        ]
        for event, matcher in matchers.items()
    }


def _waiting(handler: dict[str, Any], agent: str, event: str, approve: bool) -> dict[str, Any]:
    """Return the handler of one event, with the time that a waiting one may take."""
    if not approve or event not in _WAITING:
        return handler
    words = agent == "codex" and event == "PermissionRequest"
    more: dict[str, Any] = {"statusMessage": _WAITING_WORDS} if words else {}
    return {**handler, "timeout": _ANSWER_TIMEOUT_S, **more}


async def wait_for_hook_events(store: Store, task_id: str) -> None:
    """Wait until the task's hook events are work in progress, at most a few seconds.

    Events that arrive after the commit would mark a clean worktree as uncommitted.
    """
    until = store.clock.monotonic() + _WAIT_S
    while store.read_now(lambda connection: pending_events.has_waiting_for(connection, task_id)):
        if store.clock.monotonic() > until:
            return
        await asyncio.sleep(_POLL_S)
