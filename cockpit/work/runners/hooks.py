"""The hooks that an agent is given, so that it tells cockpit what it does and asks what it may."""

from __future__ import annotations

from typing import Any

_TOOLS = {
    "claude": "Bash|Edit|Write|MultiEdit|NotebookEdit|mcp__.*__update_task_status",
    "codex": "Bash|apply_patch|mcp__.*__update_task_status",
}
_TIMEOUT_S = 15


def wanted(agent: str, program: str) -> dict[str, list[dict[str, Any]]]:
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
