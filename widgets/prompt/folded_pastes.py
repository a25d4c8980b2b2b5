"""Long pastes, folded: one short mark in the prompt stands for thousands of lines."""

from __future__ import annotations

import re

LINES_LEAST = 13
"""Pastes of so many lines are folded."""
CHARACTERS_LEAST = 4_000
_KEPT = 50
"""How many pastes are remembered for drafts that come back."""


class FoldedPastes:
    """The pastes that marks such as ``[+10,000 lines]`` in a text stand for."""

    def __init__(self) -> None:
        self._pastes: dict[str, str] = {}
        self._recent: dict[str, None] = {}
        """The last folded pastes, the newest last, also those whose mark is gone."""

    def fold(self, text: str) -> str:
        """Return the mark for a pasted ``text``; the text itself when it is short."""
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines < LINES_LEAST and len(text) < CHARACTERS_LEAST:
            return text
        size = f"+{lines:,} lines" if lines >= LINES_LEAST else f"+{len(text):,} characters"
        mark, number = f"[{size}]", 1
        while self._pastes.get(mark, text) != text:
            number += 1
            mark = f"[{size} #{number}]"
        self._pastes[mark] = text
        self._recent.pop(text, None)
        self._recent[text] = None
        while len(self._recent) > _KEPT:
            del self._recent[next(iter(self._recent))]
        return mark

    def fold_again(self, text: str) -> str:
        """Return an unfolded ``text`` with the mark of each recent paste in the place of the paste."""
        for paste in sorted(self._recent, key=len, reverse=True):
            if paste in text:
                text = text.replace(paste, self.fold(paste))
        return text

    def unfold(self, text: str) -> str:
        """Return ``text`` with the paste of each mark in its place."""
        if not self._pastes:
            return text
        # In one pass: a paste may itself contain what looks like a mark.
        marks = "|".join(re.escape(mark) for mark in self._pastes)
        return re.sub(marks, lambda match: self._pastes[match[0]], text)

    def find_mark(self, line: str, column: int) -> tuple[int, int] | None:
        """Return the columns of the mark in which, or behind which, a cursor stands; None without one."""
        for mark in self._pastes:
            start = line.find(mark)
            while start >= 0:
                if start < column <= start + len(mark):
                    return start, start + len(mark)
                start = line.find(mark, start + 1)
        return None

    def forget(self) -> None:
        """Forget all marks: the text with them is gone."""
        self._pastes.clear()
