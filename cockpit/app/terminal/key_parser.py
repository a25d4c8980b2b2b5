"""What a terminal sends, as keys and pastes: legacy and kitty keys, and pastes that no terminal marks.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser

_ALT_ENTER = ("\x1b\r", "\x1b\n")
"""Alt+Enter where keys have no protocol. Textual takes it for Enter, which approves."""
_ALT_CHARACTER = re.compile(r"\x1b([^\x00-\x1f\x7f\[\]OP^_])")
"""Alt with a character, where keys have no protocol: no sequence that terminals send begins so."""
_MODIFIED = re.compile(r"\x1b\[27;(\d+);(\d+)~")
"""xterm's modifyOtherKeys: ``CSI 27 ; modifiers ; code ~`` is kitty's ``CSI code ; modifiers u``."""

PAUSE_S = 0.03
"""A paste without marks ends when nothing has come for so long."""
_LINE_BREAK_INSIDE = re.compile(r"[\r\n][^\r\n]")
_TYPED = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O]|$)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]", re.S
)
"""A sequence or a control character of a key. Pastes have none."""
_FULL = 1_000
"""A chunk of so many characters is a part of something longer, whatever it ends with."""


class KeyParser(XTermParser):
    """Textual's parser, and the keys that it takes for others."""

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if sequence in _ALT_ENTER:
            return (events.Key("alt+enter", None),)
        if match := _MODIFIED.fullmatch(sequence):
            sequence = f"\x1b[{match[2]};{match[1]}u"
        keys = list(super()._sequence_to_key_events(sequence, alt))
        if alt:
            return [_press_alt(key) for key in keys]
        if not keys and (match := _ALT_CHARACTER.fullmatch(sequence)):
            # At once: with a second key right behind it, Textual takes both for text.
            return [_press_alt(key) for key in super()._sequence_to_key_events(match[1], True)]
        return keys


def _press_alt(key: events.Key) -> events.Key:
    """Return a key with Alt. It types nothing: where it means nothing now, its character is not a text."""
    if not key.is_printable:
        return key
    name = key.key if key.key.startswith("alt+") else f"alt+{key.key}"
    return events.Key(name, None)


class PasteFinder:
    """Tells text that was pasted from keys, where the terminal does not mark pastes.

    Nobody types a line break and the next character at once: text with a line break inside that arrives
    in one piece was pasted, so its line breaks are not Enter. Seconds are those of any monotonic clock.
    """

    def __init__(self) -> None:
        self._is_marked = False
        self._tail = ""
        self._pasted: list[str] = []
        self._last_s = float("-inf")

    @property
    def is_waiting(self) -> bool:
        """True while a paste may go on."""
        return bool(self._pasted)

    def take(self, text: str, now_s: float) -> tuple[str, str]:
        """Return the paste that ended before ``text``, and what of ``text`` is keys.

        The rest belongs to a paste without marks, and is kept.
        """
        if self._follow_marks(text):
            return self.end(), text
        typed = list(_TYPED.finditer(text))
        start = typed[-1].end() if typed else 0
        keys, rest = text[:start], text[start:]
        continues = self.is_waiting and not keys and now_s - self._last_s <= PAUSE_S
        ended = "" if continues else self.end()
        ends_full = len(rest) >= _FULL and rest[-1] in "\r\n"
        if not (continues or ends_full or _LINE_BREAK_INSIDE.search(rest)):
            return ended, text
        self._pasted.append(rest)
        self._last_s = now_s
        return ended, keys

    def end(self) -> str:
        """Return the paste that was taken, and forget it."""
        text, self._pasted = "".join(self._pasted), []
        return text

    def _follow_marks(self, text: str) -> bool:
        """Return whether any of ``text`` stands between a terminal's marks; they may come in pieces."""
        seen = self._tail + text
        was_marked = self._is_marked
        start, end = seen.rfind(BRACKETED_PASTE_START), seen.rfind(BRACKETED_PASTE_END)
        if start != end:
            self._is_marked = start > end
        self._tail = seen[-len(BRACKETED_PASTE_START) + 1 :]
        return was_marked or self._is_marked
