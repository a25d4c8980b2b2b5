"""Details of tools and guards that cockpit does not bring: their approval, and who is offered tools."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from cockpit.store.journal.details.detail import Detail, Part


class OfferedTool(Part, frozen=True, kw_only=True):
    """A tool that a session's agent may call."""

    tool_id: str
    """``PLACE:NAME``, or ``mcp:SERVER.NAME``."""
    digest: str
    """The digest of the approved version."""


class RareTool(Part, frozen=True, kw_only=True):
    """One of cockpit's own tools that sessions are offered only with a reason."""

    name: str
    why: str
    """The reason."""


class ToolApproved(Detail, frozen=True, kw_only=True):
    """The user approved a tool; nothing but this version of it runs."""

    tool_id: str
    """``PLACE:NAME`` of a tool in Python, ``mcp:SERVER.NAME`` of an MCP server's."""
    name: str
    """The name that agents call."""
    kind: str
    """``own`` (in Python) or ``mcp``."""
    place: str
    """``project``, ``user`` or ``skill:NAME``; or the MCP server."""
    file: str
    """The file of a tool in Python; empty for an MCP server's."""
    digest: str
    """The digest of its sources, or of the description by its server."""


class ToolForgotten(Detail, frozen=True, kw_only=True):
    """A tool's approval was withdrawn."""

    tool_id: str
    """The tool."""
    digest: str
    """The digest of the version that had been approved."""
    reason: str
    """Why: in the user's words, or because the tool changed."""


class ToolsOffered(Detail, frozen=True, kw_only=True):
    """From this wave on the session's agent has these tools beside those that every session has."""

    tools: tuple[OfferedTool, ...]
    """Tools that cockpit does not bring, in the order in which the model gets them."""
    rare: tuple[RareTool, ...] | UnsetType = UNSET
    """Cockpit's own rare tools; left out where there are none."""


class GuardApproved(Detail, frozen=True, kw_only=True):
    """The user approved a guard; nothing but this version of it runs."""

    guard_id: str
    """``PLACE:NAME`` of the guard."""
    digest: str
    """The digest of its sources."""


class GuardForgotten(Detail, frozen=True, kw_only=True):
    """A guard's approval was withdrawn."""

    guard_id: str
    """The guard."""
    digest: str
    """The digest of the version that had been approved."""
