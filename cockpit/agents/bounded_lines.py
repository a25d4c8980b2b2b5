"""Lines out of a program's output: bounded, whatever it writes."""

from __future__ import annotations

LONGEST_LINE = 32 * 1024 * 1024
"""Bytes; a longer line is passed over, the ones behind it are read."""


class LineReader:
    """Cuts what comes into lines. A line is text without its end, or None for one that was too long."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._held = bytearray()
        self._passing = False

    def feed(self, chunk: bytes) -> list[str | None]:
        """The lines that ``chunk`` completes."""
        lines: list[str | None] = []
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            lines.append(self._line(piece))
        self._hold(rest)
        return lines

    def end(self) -> list[str | None]:
        """The last line, where it has no end of its own."""
        return [self._line(b"")] if self._held or self._passing else []

    def _line(self, piece: bytes) -> str | None:
        self._hold(piece)
        held, passing = bytes(self._held), self._passing
        self._held, self._passing = bytearray(), False
        return None if passing else held.decode("utf-8", "replace").removesuffix("\r")

    def _hold(self, piece: bytes) -> None:
        if self._passing or len(self._held) + len(piece) > self._longest:
            self._passing, self._held = True, bytearray()
            return
        self._held += piece
