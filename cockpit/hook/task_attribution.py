"""The task that an agent's session starts or finishes, derived from its tool calls.

A hook knows the agent's session but not its task; an MCP server knows the task but not the session.
The call of the MCP tool, seen by the hook, connects the two. See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OVER = ("done", "archived", "blocked", "todo")


def read_task_change(event: str, body: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the task that the session works on from now on, and the task that it leaves; None for none.

    An agent that cockpit runs was given its task and starts no other.
    """
    task_id = body.get("task")
    if isinstance(task_id, str):
        return task_id, None
    if event != "PostToolUse":
        return None, None
    arguments = body.get("arguments", {})
    task_id, status = arguments.get("task_id"), arguments.get("status")
    if isinstance(task_id, str) and isinstance(status, str):
        if status == "in_progress":
            return task_id, None
        return None, task_id if status in _OVER else None
    command = arguments.get("command", "")
    if "cockpit" not in command or body.get("exit_code") not in (0, None):
        return None, None
    words = [word.strip("'\";&|()") for word in command.split()]
    for place, word in enumerate(words):
        if word.rpartition("/")[2] == "cockpit" and words[place + 1 : place + 2] == ["tasks"]:
            verb, named, state = (*words[place + 2 : place + 5], "", "", "")[:3]
            if verb == "move" and named.startswith("T-"):
                if state == "in_progress":
                    return named, None
                return None, named if state in _OVER else None
    return None, None
