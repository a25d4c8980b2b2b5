"""The events in an external agent's output, the same for every format and protocol.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from cockpit.store.journal.details.detail import Detail


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


class Thought(Struct, frozen=True):
    """A piece of a thought; it is whole when something else follows."""

    text: str


class AgentMessage(Struct, frozen=True):
    """A whole message; the pieces before it were parts of it."""

    text: str


class MessageEnd(Struct, frozen=True):
    """The pieces so far are the whole message."""

    interrupted: bool = False


class ToolStarted(Struct, frozen=True):
    """The agent calls one of its own tools."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    named: str = ""
    """The call in one line, where the agent says it."""
    kind: str = ""
    """``read``, ``edit``, ``execute`` and so on; empty where the agent says none."""
    places: tuple[str, ...] = ()
    """The files that it is about, as ``PATH`` or ``PATH:LINE``."""
    files: tuple[str, ...] = ()
    """The same files as the agent names them."""

    @property
    def title(self) -> str:
        """The call in one line: as the agent says, or the tool and its most telling argument."""
        values = (self.arguments.get(name) for name in _TITLE_ARGUMENTS)
        argument = next((value for value in values if isinstance(value, str) and value.strip()), "")
        words = self.named or f"{self.tool} {argument[: 4 * _MAX_TITLE]}"
        return " ".join(words[: 8 * _MAX_TITLE].split())[:_MAX_TITLE]


class ToolEnded(Struct, frozen=True):
    """The result of a tool call."""

    call_id: str
    output: str
    failed: bool
    exit_code: int | None = None
    """None when the agent reports none."""
    call: ToolStarted | None = None
    """The call as the agent describes it at its end; None: as at its start."""
    draw_diff: Callable[[], str] = str
    """Returns the change that the agent reported, as a diff. It takes time."""
    gated: bool | UnsetType = UNSET
    """Whether it was asked for before; absent where the protocol does not tell."""


class UsageUpdate(Struct, frozen=True):
    """What the agent has used so far in this run."""

    usage: TokenUsage


class Latest(Struct, frozen=True):
    """A row that replaces the one of the same key: of several at once, the last counts."""

    key: str
    detail: Detail


class UnreadableLine(Struct, frozen=True):
    """A line that does not fit the format; ``message`` says why and quotes its beginning."""

    message: str


StreamEvent = (
    AgentStarted
    | TextPiece
    | Thought
    | AgentMessage
    | MessageEnd
    | ToolStarted
    | ToolEnded
    | UsageUpdate
    | Latest
    | UnreadableLine
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
