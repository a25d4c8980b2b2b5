"""The formats of agents' output streams: chosen by a runner's settings or its command.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from cockpit.agents.streams.claude_stream import ClaudeStream
from cockpit.agents.streams.stream_events import Finish, StreamEvent, TextPiece

LONGEST_TEXT = 200_000
"""Characters of one message; the rest is left out."""


class Stream(Protocol):
    """The reader of one format."""

    @property
    def reports_usage(self) -> bool:
        """Whether it shows the agent's tools, its tokens and a price."""
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


def open_stream(name: str, command: Sequence[str]) -> Stream:
    """Return a reader of a format; ``auto``: of Claude Code's where ``command`` asks for it, else of text."""
    if name == "claude" or (name == "auto" and "stream-json" in command):
        return ClaudeStream()
    return TextStream()
