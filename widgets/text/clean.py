"""The boundary between untrusted text and the terminal.

Models, files, commit messages and command output may carry escape sequences that move the cursor,
set the clipboard or the title, hide text behind links, or turn the reading direction around.
:func:`clean` and :class:`StreamCleaner` let only visible text, newlines and spaces through. What
they return is plain text: it is drawn as ``Content`` or ``Text``, never parsed as markup.

Specified in ``docs/reference/security.md``.
"""

from __future__ import annotations

import re

# A string sequence (OSC, DCS, SOS, PM, APC) ends at its terminator, and also at a newline or a new
# escape: an unterminated one may hide the rest of its line from a reader, never the rest of a text.
_SEQUENCE = re.compile(
    r"(?P<string>(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\n\x07\x18\x1a\x1b\x9c]*)"
    r"|(?P<csi>(?:\x1b\[|\x9b)[0-?]*[ -/]*)(?P<final>[@-~])?"
    r"|(?P<esc>\x1b[ -/]*)(?P<end>[0-~])?"
)

_TAB = " " * 4
_LOST = "\ufffd"

_INVISIBLE = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),  # zero width, direction marks
    (0x202A, 0x202E),  # direction overrides
    (0x2060, 0x206F),  # joiners, isolates, deprecated formatting
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),  # tags: text that only a machine reads
)


def _table() -> dict[int, str | None]:
    table: dict[int, str | None] = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)))
    for first, last in _INVISIBLE:
        table.update(dict.fromkeys(range(first, last + 1)))
    table.update(dict.fromkeys(range(0xD800, 0xE000), _LOST))
    table[0x09] = _TAB
    table[0x0A] = table[0x2028] = table[0x2029] = "\n"
    return table


_TABLE = _table()
_SUSPECT = re.compile("[^\n -~]")


def clean(text: str, *, newlines: bool = True) -> str:
    """Return ``text`` without anything that could act on a terminal or hide from a reader.

    Removed: whole escape sequences (7- and 8-bit, also unterminated ones), C0 and C1 controls,
    carriage returns, direction overrides and isolates, zero-width and other invisible characters.
    Tabs become four spaces, lone surrogates U+FFFD, line and paragraph separators newlines. With
    ``newlines=False`` each newline becomes a space: for text that must stay on one line.
    """
    if _SUSPECT.search(text) is not None:
        text = _SEQUENCE.sub("", text).translate(_TABLE)
    return text if newlines else text.replace("\n", " ")


def unify_newlines(text: str) -> str:
    """Return ``text`` with one kind of line break: terminals send carriage returns for those of a paste."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def hidden(text: str) -> int:
    """Count the characters of ``text`` that :func:`clean` hides.

    Line endings (CR LF) and tabs are not counted. Proposals are drawn clean; a count above zero means
    that they contain more than the user can see.
    """
    if _SUSPECT.search(text) is None:
        return 0
    text = text.replace("\r\n", "\n")
    bare = _SEQUENCE.sub("", text)
    count = len(text) - len(bare)
    return count + sum(1 for char in bare if _TABLE.get(ord(char), char) is None)


class StreamCleaner:
    """:func:`clean` for text that arrives in fragments; sequences may be split across them.

    For every way to cut a text, the joined results of :meth:`feed` and :meth:`end` equal
    ``clean(text)``. Keeps at most three characters between calls.
    """

    __slots__ = ("_newlines", "_open")

    def __init__(self, *, newlines: bool = True) -> None:
        self._newlines = newlines
        self._open = ""

    def feed(self, chunk: str) -> str:
        """Return the part of ``chunk`` that is safe to draw now."""
        text = self._open + chunk
        self._open = ""
        if _SUSPECT.search(text) is not None:
            sequences = list(_SEQUENCE.finditer(text))
            if sequences and sequences[-1].end() == len(text):
                self._open = _still_open(sequences[-1])
                if self._open:
                    text = text[: sequences[-1].start()]
        return clean(text, newlines=self._newlines)

    def end(self) -> str:
        """Drop an unfinished sequence; return the empty string."""
        self._open = ""
        return ""


def _still_open(match: re.Match[str]) -> str:
    """The shortest text that leaves the pattern in the state the unfinished ``match`` is in."""
    if (string := match["string"]) is not None:
        return string[:2] if string[0] == "\x1b" else string[0]
    if (csi := match["csi"]) is not None:
        if match["final"] is not None:
            return ""
        intro = "\x1b[" if csi[0] == "\x1b" else csi[0]
        return intro + (csi[-1] if csi[-1] in " !\"#$%&'()*+,-./" else "")
    if match["end"] is not None:
        return ""
    esc = match["esc"]
    return esc[0] + (esc[-1] if len(esc) > 1 else "")
