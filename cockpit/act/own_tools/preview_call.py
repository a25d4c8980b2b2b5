"""The preview of a call of a tool in Python. See ``docs/reference/tools.md``, calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cockpit.act.model_tools import ADDED_ACTIONS
from cockpit.act.own_tools.run_child import require_sandbox
from cockpit.act.own_tools.tool_definition import ToolDefinition, clean_text
from cockpit.act.proposed_action import ActionPreview
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.core.fenced_text import fence_text

OWN_TOOL = ADDED_ACTIONS[0]
"""The type of the action that calls a tool in Python."""


def preview_own_call(
    definition: ToolDefinition, arguments: Mapping[str, Any], sandbox: Sandbox
) -> ActionPreview:
    """Return what the call will do. Raises ``NoSandbox``.

    Its risk is low only where the sandbox keeps it from writing, which the author's word alone does not do.
    """
    require_sandbox(sandbox)
    reads = definition.effects == "reads"
    access = "read-only" if reads else "writable, .git read-only"
    return ActionPreview(
        type=OWN_TOOL,
        title=describe_call(definition.name, arguments),
        risk="low" if reads else "medium",
        summary=clean_text(definition.description, 300),
        fields=(
            ("tool", definition.title),
            ("approved as", definition.digest[:16]),
            ("sandbox", f"bubblewrap: project {access}, home hidden, network off"),
            ("time limit", f"{definition.timeout_s} s"),
        ),
        body=render_arguments(arguments),
        notes=sandbox.notes(),
        payload={
            "tool_id": definition.tool_id,
            "digest": definition.digest,
            "arguments": dict(arguments),
        },
    )


def describe_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call in one line."""
    values = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items()]
    line = f"{name}({', '.join(values)})"
    return line if len(line) <= 120 else f"{line[:118]}…)"


def render_arguments(arguments: Mapping[str, Any]) -> str:
    """Return the arguments as Markdown: one a line, texts of several lines as they are, between fences."""
    parts = []
    for name, value in arguments.items():
        if isinstance(value, str) and "\n" in value:
            parts.append(f"{name}:\n" + "\n".join(f"  {line}" for line in value.splitlines()))
        else:
            parts.append(f"{name}: {json.dumps(value, ensure_ascii=False)}")
    return fence_text("\n".join(parts)) if parts else ""
