"""Some hunks of a proposed change: the text that is left of it when the others are taken out.

The text is that of the edited action: the whole new content of a file, or what takes the place of a piece of
it. See ``docs/reference/screen.md``, hunks.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import SequenceMatcher

from msgspec import Struct


class Hunk(Struct, frozen=True):
    """One change of a file: lines that go and lines that come, at line ``first`` of the old text, from 1."""

    first: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


class EditableChange(Struct, frozen=True):
    """What an action replaces (``old``) by its editable text (``new``)."""

    old: str
    new: str
    first: int
    """The line of the file at which ``old`` begins, from 1."""

    @classmethod
    def find(cls, before: str, after: str, text: str) -> EditableChange | None:
        """Find what ``text``, the action's editable text, replaces in ``before`` so that ``after`` comes out.

        None where it does not replace exactly one piece.
        """
        at = after.find(text)
        while at >= 0:
            start, end = after[:at], after[at + len(text) :]
            fits = before.startswith(start) and before.endswith(end)
            if fits and len(start) + len(end) <= len(before):
                old = before[at : len(before) - len(end)]
                return cls(old, text, start.count("\n") + 1)
            at = after.find(text, at + 1)
        return None

    def list_hunks(self) -> list[Hunk]:
        """Return the changes in their order."""
        old, new = self.old.splitlines(), self.new.splitlines()
        return [
            Hunk(self.first + a, tuple(old[a:b]), tuple(new[c:d]))
            for _, a, b, c, d in self._changes()
        ]

    def keep(self, places: Collection[int]) -> str:
        """Return the text with only the hunks of these places (from 0); all other lines are as they were."""
        old, new = self.old.splitlines(keepends=True), self.new.splitlines(keepends=True)
        parts: list[str] = []
        done = 0
        for place, a, b, c, d in self._changes():
            parts += old[done:a]
            parts += new[c:d] if place in places else old[a:b]
            done = b
        return "".join([*parts, *old[done:]])

    def _changes(self) -> list[tuple[int, int, int, int, int]]:
        old, new = self.old.splitlines(keepends=True), self.new.splitlines(keepends=True)
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        changes = [each[1:] for each in matcher.get_opcodes() if each[0] != "equal"]
        return [(place, *each) for place, each in enumerate(changes)]
