"""The events in an external agent's output stream, the same for every format.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TokenUsage:
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


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """The agent has started."""

    agent_session: str
    """The agent's own id of the session."""
    model: str = ""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of a message that is still streaming."""

    text: str


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """A whole message; the pieces before it were parts of it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The agent calls one of its own tools."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """The result of a tool call."""

    call_id: str
    output: str
    failed: bool
    exit_code: int | None = None
    """None when the agent reports none."""


@dataclass(frozen=True, slots=True)
class UsageUpdate:
    """What the agent has used so far in this run."""

    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class UnreadableLine:
    """A line that does not fit the format; ``message`` says why and quotes its beginning."""

    message: str


StreamEvent = (
    AgentStarted | TextPiece | AgentMessage | ToolStarted | ToolEnded | UsageUpdate | UnreadableLine
)


@dataclass(frozen=True, slots=True)
class Finish:
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
