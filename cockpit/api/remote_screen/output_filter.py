"""What of another machine's output reaches the user's terminal: what draws a screen, and little more.

Let through: characters, moves of the cursor, colours, erasing, the modes that a screen needs, the two
questions that it asks, titles, and short notes. Left out: the clipboard, links, other questions, device
control strings, resets, and whatever is not known. Specified in ``docs/reference/connect.md``.
"""

from __future__ import annotations

import re

LONGEST_STRING = 1_000
"""Characters of a title or note."""
_MOST_HELD = 4_096
"""Characters of a sequence that may come in pieces."""

_MODES = frozenset(
    (
        *("7", "12", "25", "1000", "1002", "1003", "1004", "1006", "1015", "1016", "1049"),
        *("2004", "2026", "2048"),
    )
)
"""Wrapping, cursor, mouse, focus, the second screen, marked pastes, whole frames, reports of the size."""
_QUESTIONS = ("?2026$p", "?2048$p")
"""Whether the terminal knows whole frames and reports of its size."""
_KITTY = re.compile(r"(?:>[\d]{1,3}|<\d{0,2})u")
_TITLE_STACK = ("22;2t", "23;2t", "22;0t", "23;0t")
_DRAWS = re.compile(r"[\d;]{0,64}[ABCDEFGHJKLMPSTXdf@r]|[\d;:]{0,512}m|\d? q")
_TITLE = re.compile(r"[02];|9;(?!4;)|777;notify;")
_SEQUENCE = re.compile(
    r"\x1b\[(?P<csi>[0-?]*[ -/]*[@-~])"
    r"|\x1b\](?P<osc>[^\x00-\x1f\x7f-\x9f]*)(?:\x07|\x1b\\)"
    r"|\x1b[PX^_][^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\|[\x18\x1a])"  # strings of no use
    r"|\x1b\][^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\|[\x18\x1a])"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-OQ-WYZ\\`-~]"
    r"|[\x00-\x06\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]"
    r"|\x1b"
)
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x18\x1a\x1b]*\x1b?|[ -/]*)?\Z")


class OutputFilter:
    """Filters output that comes in pieces of any length."""

    def __init__(self) -> None:
        self._held = ""
        self._in_string = False
        """Whether a string that is too long is left out until its end."""

    def take(self, output: str) -> str:
        """Return what may be written; a sequence that has only begun is kept for the next piece."""
        data = self._held + output
        self._held = ""
        if self._in_string:
            end = re.search(r"\x07|\x1b\\|[\x18\x1a]|\x1b(?=[^\\])", data)
            if end is None:
                self._held = "\x1b" if data.endswith("\x1b") else ""
                return ""
            self._in_string = False
            data = data[end.end() if end[0] != "\x1b" else end.start() :]
        if (begun := _BEGUN.search(data)) is not None:
            self._held, data = begun[0], data[: begun.start()]
            if len(self._held) > _MOST_HELD:
                self._in_string = self._held[1:2] in ("]", "P", "X", "^", "_")
                self._held = ""
        return _SEQUENCE.sub(_choose, data)


def _choose(match: re.Match[str]) -> str:
    """Return a sequence that may pass, else nothing."""
    if (osc := match["osc"]) is not None:
        return match[0] if _TITLE.match(osc) and len(osc) <= LONGEST_STRING else ""
    body = match["csi"]
    if body is None:
        return ""
    if _DRAWS.fullmatch(body) or body in _QUESTIONS or body in _TITLE_STACK:
        return match[0]
    if body[:1] == "?" and body[-1] in "hl" and _MODES.issuperset(body[1:-1].split(";")):
        return match[0]
    return match[0] if _KITTY.fullmatch(body) else ""
