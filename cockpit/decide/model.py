"""The interface of every model: a prompt in, a stream of events out.

Providers, the offline rules and the scripted model implement it; the loop knows nothing else. See
``docs/reference/loop.md``, phases.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import asdict

from cockpit.core.errors import CockpitError


class ToolSpec(Struct, frozen=True):
    """A tool as a model sees it: name, one-paragraph description, JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class PromptCall(Struct, frozen=True):
    """A tool call of an earlier wave, replayed to the provider as its own tool-call message."""

    call_id: str
    name: str
    arguments: str
    """The arguments as canonical JSON text."""


class ThinkingBlock(Struct, frozen=True):
    """A part of what a model thought, which its provider wants back as it was, to the letter."""

    text: str
    """What can be read of it; empty where the provider encrypts all of it."""
    provider: str
    block_id: str = ""
    signature: str = ""
    """The provider's signature, or the encrypted content."""
    details: Mapping[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Return it as a JSON value; ``ThinkingBlock(**body)`` reverses it."""
        return asdict(self)


class PromptMessage(Struct, frozen=True):
    """One message. ``user`` has text; ``assistant`` thinking, text, calls; ``tool`` answers ``call_id``."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[PromptCall, ...] = ()
    call_id: str = ""
    tool_name: str = ""
    cache: bool = False
    """True: a provider's prompt cache may break after this message (a band boundary)."""
    thinking: tuple[ThinkingBlock, ...] = ()
    """What the model thought before this message of its own."""


class PacketFact(Struct, frozen=True):
    """A fact as it is in the packet, for models that read structure instead of text."""

    fact_id: str
    band: str
    source_type: str
    source_ref: str
    level: str
    text: str
    tokens: int
    pinned: bool
    ordinal: int
    provenance: Mapping[str, Any]
    added: int = 0
    """The wave that appended it to the prompts before; 0: it stands under ``ordinal``."""
    replaces: bool = False
    """It replaces a fact above it."""
    is_bare: bool = False
    """Its text says by itself what it is about, and stands without a source line and fences."""
    pointed: tuple[str, Mapping[str, Any]] | None = None
    """Text and provenance as messages show them, where they point to lines that stand above."""

    @property
    def text_shown(self) -> str:
        """The text in messages."""
        return self.pointed[0] if self.pointed else self.text

    @property
    def provenance_shown(self) -> Mapping[str, Any]:
        """The provenance in messages: what an exchange says and its result."""
        return self.pointed[1] if self.pointed else self.provenance


class Prompt(Struct, frozen=True):
    """The input of one model call: compiled context, never a growing transcript.

    ``system`` is the stable head (identity and capabilities bands); ``messages`` the rest, in
    order. ``facts`` carries the same content as records. ``wave`` is the 1-based ordinal of the
    wave in its session, ``task_type`` and ``target`` what the session is about (target: e.g.
    ``{"range": "a..b"}`` or ``{"pr": 24}``). ``max_output_tokens`` bounds the answer (the reserve
    band).
    """

    system: str
    messages: tuple[PromptMessage, ...]
    tools: tuple[ToolSpec, ...]
    facts: tuple[PacketFact, ...] = ()
    wave: int = 1
    task_type: str = ""
    target: Mapping[str, Any] = field(default_factory=dict)
    max_output_tokens: int = 8_000

    def count_characters(self) -> int:
        """Return the characters of all messages, without those of the tools."""
        texts = [message.text for message in self.messages]
        calls = [call.arguments for message in self.messages for call in message.calls]
        return sum(map(len, (self.system, *texts, *calls)))


class TextDelta(Struct, frozen=True):
    """A fragment of the model's text."""

    text: str


class ToolCall(Struct, frozen=True):
    """One complete tool call; ``arguments`` is the raw JSON text the model wrote, unchecked."""

    call_id: str
    name: str
    arguments: str


class Thought(Struct, frozen=True):
    """What the model thought before its answer, whole, after the answer's calls."""

    blocks: tuple[ThinkingBlock, ...]


class Retrying(Struct, frozen=True):
    """The call failed and a retry can help; it follows after ``wait_s`` seconds."""

    reason: str
    attempt: int
    wait_s: float


class Usage(Struct, frozen=True):
    """What one call cost. Tokens are counts; ``cost_usd`` is None when no price is known.

    ``input_usd`` is what the tokens read cost, ``cached_usd`` those of the cache; None when not known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    input_usd: float | None = None
    cached_usd: float | None = None
    doubt: str = ""
    """What is wrong with the provider's own numbers, for the user."""


class Done(Struct, frozen=True):
    """The end of a call. ``stop`` is 'end', 'tool', 'length', 'cut' (the stream broke, and what came
    before is kept) or 'filtered' (the provider's content filter ended it, and calls are dropped);
    ``reason`` says why for these two."""

    usage: Usage
    stop: Literal["end", "tool", "length", "cut", "filtered"]
    reason: str = ""


ModelEvent = TextDelta | ToolCall | Thought | Retrying | Done


class ModelError(CockpitError):
    """A call that cannot succeed. ``code`` is stable ('auth', 'not_found', 'rate_limit', 'network',
    'bad_request', 'content_filter', 'empty_answer', 'endless_answer', 'script', 'config'); the message says
    what happened and what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message, code=code)


class Model(Protocol):
    """A model under its full name (``anthropic:claude-…``, ``offline``, ``script:FILE``)."""

    @property
    def name(self) -> str: ...

    def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Yield events, the last one :class:`Done`. Raises :class:`ModelError`; cancellable."""
        ...
