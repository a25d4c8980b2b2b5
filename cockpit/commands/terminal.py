"""All output to stdout and stderr, safe for a terminal.

Text loses escape sequences, control characters and invisible characters. JSON keeps each value whole
and writes such characters as ``\\uXXXX``.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any
from unicodedata import east_asian_width

from cockpit.core.errors import CockpitError
from widgets.text.clean import StreamCleaner, clean

# What JSON allows in a string and a terminal may act on, or a reader cannot see.
_UNSAFE = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class ReaderGone(Exception):
    """The program that read this stream has closed it."""


class OutputFailed(CockpitError):
    """The output cannot be written, for example because the disk is full."""

    code = "output"


def is_terminal(stream: IO[str] | None) -> bool:
    """Return whether the stream is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False  # closed


def say(text: str) -> None:
    """Print a message about the work on stderr; without stderr do nothing."""
    if sys.stderr is not None:
        _write(sys.stderr, clean(text) + "\n")


def show(text: str) -> None:
    """Print the answer of a command on stdout."""
    _write(sys.stdout, clean(text) + "\n")


def ring_terminal(sequence: str) -> None:
    """Send a bell or notification sequence to the terminal; ``sequence`` must not contain foreign text."""
    if sys.stderr is not None:
        _write(sys.stderr, sequence)


def show_json(value: Any) -> None:
    """Print one indented JSON document on stdout."""
    _write(sys.stdout, json_text(value, indent=2) + "\n")


def show_json_line(text: str) -> None:
    """Print one line of JSON on stdout and flush it, because another program waits for it."""
    _write(sys.stdout, _escaped(text) + "\n")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return JSON that is safe for a terminal and that any parser reads back unchanged."""
    return _escaped(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent))


def output_width(stream: IO[str] | None = None) -> int:
    """Return the columns of the terminal that ``stream``, or stdout, goes to; 0 where it goes elsewhere."""
    stream = stream or sys.stdout
    if not is_terminal(stream):
        return 0
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def format_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, width: int = 0) -> str:
    """Return a table whose columns fit their cells; cells have one line, the last column is not padded.

    Blanks in a cell become one blank, so that no cell looks like two; with a ``width`` lines end there, so
    that no terminal breaks one into what looks like another row.
    """
    table = _format_table(headings, rows)
    if not width:
        return table
    return "\n".join(_cut(line, width) for line in table.split("\n"))


def _cut(line: str, width: int) -> str:
    """Cut a line to the columns of a terminal; wide characters take two."""
    if len(line) <= width and line.isascii():
        return line
    columns = 0
    for place, character in enumerate(line):
        columns += 1 + (east_asian_width(character) in "WF")
        if columns > width:
            return f"{line[: max(0, place - 2)]}…"
    return line


def _format_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [[" ".join(clean(cell, newlines=False).split()) for cell in row] for row in rows]
    lines = [list(headings), *cells]
    widths = [max(len(line[place]) for line in lines) for place in range(len(headings) - 1)]
    return "\n".join(
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]
        ).rstrip()
        for line in lines
    )


def show_list(
    as_json: bool,
    records: Sequence[Mapping[str, Any]],
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    nothing: str,
) -> None:
    """Print a list on stdout, as JSON or as a table; without records print ``nothing`` on stderr."""
    if as_json:
        show_json([dict(record) for record in records])
    elif records:
        show(format_table(headings, rows, width=output_width()))
    else:
        say(nothing)


class SafeStream:
    """A stream for text that arrives in fragments; removes sequences that are split across two of them."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._cleaner = StreamCleaner()

    def write(self, fragment: str) -> None:
        """Write the safe part of the fragment at once."""
        _write(self._stream, self._cleaner.feed(fragment))

    def end(self) -> None:
        """Forget an unfinished sequence, because no fragment follows."""
        self._cleaner.end()


def _write(stream: IO[str] | None, text: str) -> None:
    if stream is None:  # closed before the program began
        raise ReaderGone
    encoding: str = getattr(stream, "encoding", None) or "utf-8"
    try:
        # A character that the terminal's encoding lacks becomes `?`.
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        discard_buffered(stream)
        raise OutputFailed(
            f"The output cannot be written: {error.strerror or error}. All recorded data is kept."
        ) from error


def discard_buffered(*streams: IO[str] | None) -> None:
    """Send the buffered rest of the streams nowhere; else the interpreter would report an error at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        if stream is not None:
            os.dup2(null, stream.fileno())


def _escaped(text: str) -> str:
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
