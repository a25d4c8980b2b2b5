"""The form in which a prompt shows a fact: a line with its source, then its text between fences.

Decide renders it, and Observe counts what it costs; so it stands below both. See
``docs/reference/kernel.md``, packets.
"""

from __future__ import annotations

import re

MESSAGE_TOKENS = 4
"""Tokens that a provider adds around one message of a prompt: its role and its end."""
CALL_TOKENS = 8
"""Tokens that a provider adds around one tool call, one tool result or one tool's definition."""

MESSAGE_SOURCES = ("person", "notice")
"""Sources that are messages to the agent: they are not fenced."""
HEAD_BANDS = ("identity", "capabilities")
"""Bands that are the system text, without fences."""
SEPARATOR = "\n\n"
"""What stands between two facts of one message."""

_TICKS = re.compile("`+")


def fence_for(text: str) -> str:
    """Return backticks, three or more, that ``text`` does not contain."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0) if "```" in text else 0
    return "`" * max(3, longest + 1)


def heading(source_ref: str, level: str, fence: str, *, replaces: bool = False) -> str:
    """Return what stands before the text of a fenced fact; ``replaces``: it replaces one above it."""
    if level == "diff":
        detail = " · changed: the difference from the text above"
    else:
        detail = "" if level == "full" else f" · {level}"
        detail += " · replaces the text above" if replaces else ""
    return f"[{source_ref}{detail}]\n{fence}\n"


def fenced(source_ref: str, level: str, text: str, *, replaces: bool = False) -> str:
    """Return the text of a fact between fences, under a line with its source and detail level."""
    fence = fence_for(text)
    return f"{heading(source_ref, level, fence, replaces=replaces)}{text}\n{fence}"


def gone_line(source_ref: str) -> str:
    """Return the line that says that the text of a fact above holds no longer."""
    return f"[{source_ref} · the text above holds no longer]"
