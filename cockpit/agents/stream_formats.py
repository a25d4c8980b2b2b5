"""The formats of streams: which one a runner speaks, told by its settings or by its first lines."""

from __future__ import annotations

from typing import Protocol

from cockpit.agents.claude_stream import TYPES as CLAUDE_TYPES
from cockpit.agents.claude_stream import ClaudeStream
from cockpit.agents.codex_stream import TYPES as CODEX_TYPES
from cockpit.agents.codex_stream import CodexStream
from cockpit.agents.stream_events import (
    AgentMessage,
    Finish,
    StreamEvent,
    TextPiece,
    UnreadableLine,
)
from cockpit.core.json_fields import read_object, text

LONGEST_TEXT = 200_000
"""Characters of one message; what comes after them is left out."""
_UNDECIDED = 20
"""Lines that may come before the first one that gives a format away: programs warn and greet."""


class Stream(Protocol):
    """A stream as it comes in."""

    def take(self, line: str) -> list[StreamEvent]:
        """What a line (without its end) tells."""
        ...

    def close(self, code: int) -> Finish | None:
        """How the run ended, when the program has ended with ``code``; None: without a finish."""
        ...


class TextStream:
    """Plain text: all of it is one message, and ending with 0 is the finish."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._length = 0

    def take(self, line: str) -> list[StreamEvent]:
        """The line, as a piece of the message."""
        if self._length > LONGEST_TEXT:
            return []
        self._length += len(line) + 1
        self._lines.append(line)
        return [TextPiece(line + "\n")]

    def close(self, code: int) -> Finish | None:
        """The whole text; None after a failure."""
        words = "\n".join(self._lines).strip()
        return Finish(True, words) if code == 0 else None


class DetectedStream:
    """A stream whose format its own first lines tell."""

    def __init__(self) -> None:
        self._found: Stream | None = None
        self._before: list[str] = []

    def take(self, line: str) -> list[StreamEvent]:
        """What the line tells; nothing until the format is known."""
        if self._found is not None:
            return self._found.take(line)
        self._found = _recognised(line)
        if self._found is not None:
            told: list[StreamEvent] = [
                UnreadableLine(f"no JSON object: {one.strip()[:200]!r}")
                for one in self._before
                if one.strip()
            ]
            return told + self._found.take(line)
        self._before.append(line)
        return self._as_text() if len(self._before) > _UNDECIDED else []

    def close(self, code: int) -> Finish | None:
        """As the format's own stream."""
        if self._found is None:
            self._as_text()
        return self._found.close(code) if self._found is not None else None

    def _as_text(self) -> list[StreamEvent]:
        self._found = TextStream()
        before, self._before = self._before, []
        return [one for line in before for one in self._found.take(line)]


def open_stream(name: str) -> Stream:
    """The stream of a format: ``claude``, ``codex``, ``text``, or ``auto`` to find out."""
    match name:
        case "claude":
            return ClaudeStream()
        case "codex":
            return CodexStream()
        case "text":
            return TextStream()
        case _:
            return DetectedStream()


def shorten_message(message: AgentMessage) -> AgentMessage:
    """The message, no longer than :data:`LONGEST_TEXT`."""
    return (
        message
        if len(message.text) <= LONGEST_TEXT
        else AgentMessage(message.text[:LONGEST_TEXT] + "…")
    )


def _recognised(line: str) -> Stream | None:
    body = read_object(line)
    if body is None:
        return None
    kind = text(body, "type")
    if kind in CLAUDE_TYPES:
        return ClaudeStream()
    return CodexStream() if kind.startswith(CODEX_TYPES) else None
