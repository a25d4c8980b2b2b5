"""The one door to stdout and stderr: nothing that came from elsewhere reaches a terminal raw.

Words lose every escape sequence, control and invisible character. JSON keeps each value whole and
writes such characters as ``\\uXXXX``.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from cockpit.core.errors import CockpitError
from widgets.text.clean import StreamCleaner, clean

# What JSON allows in a string and a terminal may act on, or a reader cannot see.
_UNSAFE = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class ReaderGone(Exception):
    """Whoever read this stream went away: there is nobody left to write for."""


class OutputFailed(CockpitError):
    """The output cannot be written, as on a full disk; what was asked for is not complete."""

    code = "output"


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether a person reads this stream now."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False  # closed: nobody does


def say(text: str) -> None:
    """Words for a person about the work, on stderr; without one, nobody is told."""
    if sys.stderr is not None:
        _write(sys.stderr, clean(text) + "\n")


def show(text: str) -> None:
    """Words that are the answer, on stdout."""
    _write(sys.stdout, clean(text) + "\n")


def ring_terminal(sequence: str) -> None:
    """Call the person at the terminal: ``sequence`` is cockpit's own, with nothing of others in it raw."""
    if sys.stderr is not None:
        _write(sys.stderr, sequence)


def show_json(value: Any) -> None:
    """One JSON document on stdout, indented."""
    _write(sys.stdout, json_text(value, indent=2) + "\n")


def show_json_line(text: str) -> None:
    """One line of JSON on stdout, at once: another program waits for it."""
    _write(sys.stdout, _escaped(text) + "\n")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON that no terminal acts on and that any parser reads back unchanged."""
    return _escaped(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent))


def format_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as what is in them; every cell on one line, the last as long as it is."""
    cells = [[clean(cell, newlines=False).strip() for cell in row] for row in rows]
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
    """A list, as JSON on stdout or as a table; without any record ``nothing`` goes to stderr."""
    if as_json:
        show_json([dict(record) for record in records])
    elif records:
        show(format_table(headings, rows))
    else:
        say(nothing)


class SafeStream:
    """Words that arrive in fragments; a sequence split across two of them is removed all the same."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._cleaner = StreamCleaner()

    def write(self, fragment: str) -> None:
        """Write what of the fragment is safe, now."""
        _write(self._stream, self._cleaner.feed(fragment))

    def end(self) -> None:
        """Nothing more comes: forget an unfinished sequence."""
        self._cleaner.end()


def _write(stream: IO[str] | None, text: str) -> None:
    if stream is None:  # closed before the program began
        raise ReaderGone
    encoding: str = getattr(stream, "encoding", None) or "utf-8"
    try:
        # What the terminal's encoding lacks becomes `?`.
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        discard_buffered(stream)
        raise OutputFailed(
            f"The output cannot be written: {error.strerror or error}. What was recorded is kept."
        ) from error


def discard_buffered(*streams: IO[str] | None) -> None:
    """What is still buffered has no reader: without this the interpreter would complain on leaving."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        if stream is not None:
            os.dup2(nowhere, stream.fileno())


def _escaped(text: str) -> str:
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
