"""The formats of agents' output streams: chosen by a runner's settings, or detected from the first lines.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from cockpit.agents.streams.claude_stream import TYPES as CLAUDE_TYPES
from cockpit.agents.streams.claude_stream import ClaudeStream
from cockpit.agents.streams.stream_events import (
    AgentMessage,
    Finish,
    StreamEvent,
    TextPiece,
    UnreadableLine,
)
from cockpit.core.json_fields import get_text, parse_object
from cockpit.core.text import keep_ends

LONGEST_TEXT = 200_000
"""Characters of one message; the rest is left out."""
_MAX_UNDETECTED = 20
"""Lines before the first one that reveals the format: programs print warnings and greetings."""


class Stream(Protocol):
    """The reader of one format."""

    @property
    def reports_usage(self) -> bool | None:
        """Whether it shows the agent's tools, its tokens and a price; None while the format is not known."""
        ...

    def feed(self, line: str) -> list[StreamEvent]:
        """Return the events in a line, which comes without its end."""
        ...

    def close(self, exit_code: int) -> Finish | None:
        """Return how the run ended, when the program has exited; None without a reported end."""
        ...


class TextStream:
    """Plain text: all of it is one message, and exit code 0 is its end.

    Of a long text the start is streamed, and the message keeps start and end: the status is its last line.
    """

    reports_usage = False

    def __init__(self) -> None:
        self._start = ""
        self._end: deque[str] = deque()
        self._end_length = self._left_out = 0

    def feed(self, line: str) -> list[StreamEvent]:
        """Return the line as a piece of the message; none once the message is long."""
        line += "\n"
        if not self._end and len(self._start) + len(line) <= LONGEST_TEXT // 4:
            self._start += line
            return [TextPiece(line)]
        self._end.append(line)
        self._end_length += len(line)
        while self._end_length > LONGEST_TEXT // 2 and len(self._end) > 1:
            self._left_out += len(self._end[0])
            self._end_length -= len(self._end.popleft())
        return []

    def close(self, exit_code: int) -> Finish | None:
        """Return the text; None after a failure."""
        left_out = f"[… {self._left_out:,} characters are left out …]\n" if self._left_out else ""
        text = f"{self._start}{left_out}{''.join(self._end)}".strip()
        return Finish(True, text) if exit_code == 0 else None


class DetectedStream:
    """A stream whose format its first lines reveal."""

    def __init__(self) -> None:
        self._stream: Stream | None = None
        self._waiting_lines: list[str] = []

    @property
    def reports_usage(self) -> bool | None:
        """As the format's, once it is known."""
        return None if self._stream is None else self._stream.reports_usage

    def feed(self, line: str) -> list[StreamEvent]:
        """Return the events in the line; none until the format is known."""
        if self._stream is not None:
            return self._stream.feed(line)
        if get_text(parse_object(line) or {}, "type") in CLAUDE_TYPES:
            self._stream = ClaudeStream()
            events: list[StreamEvent] = [
                UnreadableLine(f"no JSON object: {earlier.strip()[:200]!r}")
                for earlier in self._waiting_lines
                if earlier.strip()
            ]
            return events + self._stream.feed(line)
        self._waiting_lines.append(line)
        return self._read_as_text() if len(self._waiting_lines) > _MAX_UNDETECTED else []

    def close(self, exit_code: int) -> Finish | None:
        """Return how the run ended, as its format says."""
        if self._stream is None:
            self._read_as_text()
        return self._stream.close(exit_code) if self._stream is not None else None

    def _read_as_text(self) -> list[StreamEvent]:
        self._stream = TextStream()
        lines, self._waiting_lines = self._waiting_lines, []
        return [event for line in lines for event in self._stream.feed(line)]


def open_stream(name: str) -> Stream:
    """Return a reader of the format ``claude``, ``text``, or ``auto`` to detect it."""
    match name:
        case "claude":
            return ClaudeStream()
        case "text":
            return TextStream()
        case _:
            return DetectedStream()


def shorten_message(message: AgentMessage) -> AgentMessage:
    """Return the message, of which :data:`LONGEST_TEXT` characters are kept, from both ends."""
    return AgentMessage(keep_ends(message.text, LONGEST_TEXT))
