"""What an agent's stream tells, whatever format it comes in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens are counts, those read from a cache among ``input_tokens``; ``cost_usd`` is None when the
    agent names no price."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def fresh(self) -> int:
        """Tokens that no cache gave: an agent with a transcript reads the same ones again and again."""
        return self.tokens - min(self.cached_tokens, self.input_tokens)


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """The agent has started: its own name for this session, and its model where it tells it."""

    agent_session: str
    model: str = ""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of a message that is still streaming."""

    text: str


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """A whole message; the fragments before it were pieces of it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The agent uses a tool of its own, in its own words."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """How that came out. ``exit_code`` is None where none is told."""

    call_id: str
    output: str
    failed: bool
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class UsageUpdate:
    """What the agent has spent so far, all together."""

    spent: TokenUsage


@dataclass(frozen=True, slots=True)
class UnreadableLine:
    """A line that is none of the format's; the words say why, and quote little of it."""

    words: str


StreamEvent = (
    AgentStarted | TextPiece | AgentMessage | ToolStarted | ToolEnded | UsageUpdate | UnreadableLine
)


@dataclass(frozen=True, slots=True)
class Finish:
    """The agent's own word that it has finished: its last message, or with ``ok`` False what went
    wrong."""

    ok: bool
    text: str
    spent: TokenUsage = TokenUsage()
