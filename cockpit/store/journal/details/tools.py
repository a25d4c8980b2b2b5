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


class ToolsOffered(Detail, frozen=True, kw_only=True):
    """From this wave on the session's agent has these tools beside those that every session has."""

    tools: tuple[OfferedTool, ...]
    """Tools that cockpit does not bring, in the order in which the model gets them."""
    rare: tuple[RareTool, ...] | UnsetType = UNSET
    """Cockpit's own rare tools; left out where there are none."""


class ApprovalChanged(Detail, frozen=True, kw_only=True):
    """The user approved a tool or a guard, of which only this version runs, or the approval ended."""

    subject: str
    """``tool`` or ``guard``."""
    id: str
    """``PLACE:NAME``, or ``mcp:SERVER.NAME`` of an MCP server's tool."""
    status: str
    """``approved`` or ``forgotten``."""
    digest: str
    """The digest of its sources, or of the description by its server."""
    reason: str = ""
    """Why it was forgotten: in the user's words, or because the tool changed."""
