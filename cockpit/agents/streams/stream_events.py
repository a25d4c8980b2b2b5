"""The events in an external agent's output stream, the same for every format.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class TokenUsage(Struct, frozen=True):
    """Tokens and cost that an agent reported."""

    input_tokens: int = 0
    """Includes tokens read from a cache."""
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    """None when the agent reports no price."""

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens

    @property
    def fresh(self) -> int:
        """Tokens not read from a cache: an agent reads its own transcript again on every call."""
        return self.tokens - min(self.cached_tokens, self.input_tokens)


class AgentStarted(Struct, frozen=True):
    """The agent has started."""

    agent_session: str
    """The agent's own id of the session."""
    model: str = ""


class TextPiece(Struct, frozen=True):
    """A piece of a message that is still streaming."""

    text: str


class AgentMessage(Struct, frozen=True):
    """A whole message; the pieces before it were parts of it."""

    text: str


class ToolStarted(Struct, frozen=True):
    """The agent calls one of its own tools."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]


class ToolEnded(Struct, frozen=True):
    """The result of a tool call."""

    call_id: str
    output: str
    failed: bool
    exit_code: int | None = None
    """None when the agent reports none."""


class UsageUpdate(Struct, frozen=True):
    """What the agent has used so far in this run."""

    usage: TokenUsage


class UnreadableLine(Struct, frozen=True):
    """A line that does not fit the format; ``message`` says why and quotes its beginning."""

    message: str


StreamEvent = (
    AgentStarted | TextPiece | AgentMessage | ToolStarted | ToolEnded | UsageUpdate | UnreadableLine
)


class Finish(Struct, frozen=True):
    """The agent reported the end of its run."""

    ok: bool
    text: str
    """Its last message, or with ``ok`` False the error."""
    usage: TokenUsage = TokenUsage()
    refused: tuple[str, ...] = ()
    """The tool calls that it had no permission for, one line each."""


_MAX_TITLE = 160
_TITLE_ARGUMENTS = (
    *("command", "file_path", "path", "notebook_path", "input", "pattern", "query", "url"),
)


def call_title(call: ToolStarted) -> str:
    """Return a tool call on one line: the tool and its most telling argument."""
    values = (call.arguments.get(name) for name in _TITLE_ARGUMENTS)
    argument = next((value for value in values if isinstance(value, str) and value.strip()), "")
    return " ".join(f"{call.tool} {argument[: 4 * _MAX_TITLE]}".split())[:_MAX_TITLE]
