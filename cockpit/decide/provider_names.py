"""Names of tools as providers take them: letters, digits, ``_`` and ``-``, at most 64.

cockpit's own names fit. Those of MCP servers have a dot; on their way out it becomes two underscores, and on
the way back the tool's own name again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from msgspec.structs import replace

from cockpit.decide.model import ModelEvent, ToolCall, ToolSpec

_UNFIT = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_MOST = 64


def provider_name(name: str) -> str:
    """Return the name that a provider gets for a tool."""
    fit = _UNFIT.sub("__", name)
    if len(fit) <= _MOST:
        return fit
    return f"{fit[: _MOST - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def restore_names(events: Sequence[ModelEvent], tools: Sequence[ToolSpec]) -> list[ModelEvent]:
    """Return the events with the own names of the tools that they call."""
    names = {provider_name(tool.name): tool.name for tool in reversed(tools)}
    return [
        replace(event, name=names.get(event.name, event.name))
        if isinstance(event, ToolCall)
        else event
        for event in events
    ]
