"""One action as it is proposed: the record, and how files are drawn in it.

See ``docs/reference/journal.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cockpit.access.commands.judge_command import Risk
from cockpit.core.secrets import mask

_WHOLE = 200_000
_AROUND = 60


class FileDiff(Struct, frozen=True):
    """One file before and after; ``before`` is None for a new file, ``after`` for a removed one."""

    path: str
    before: str | None
    after: str | None


class ActionPreview(Struct, frozen=True):
    """One action as it is proposed.

    ``payload`` has JSON values only; the adapter receives it.
    """

    type: str
    title: str
    risk: Risk
    summary: str
    payload: Mapping[str, Any]
    fields: tuple[tuple[str, str], ...] = ()
    body: str = ""
    diffs: tuple[FileDiff, ...] = ()
    notes: tuple[str, ...] = ()

    def proposal_body(self) -> dict[str, Any]:
        """Return the JSON body of an action proposal, as ``docs/reference/journal.md`` lists it."""
        return {
            "type": self.type,
            "summary": self.summary,
            "fields": [list(pair) for pair in self.fields],
            "body": self.body,
            "diffs": [
                {"path": diff.path, "before": diff.before, "after": diff.after}
                for diff in self.diffs
            ],
            "notes": list(self.notes),
            "payload": dict(self.payload),
        }


def draw_diff(path: str, before: str | None, after: str | None) -> tuple[FileDiff, str]:
    """Return the diff to show, secrets masked, and a note ('' when it is whole).

    Of large files only the lines around the changes are kept.
    """
    if len(before or "") + len(after or "") <= _WHOLE or before is None or after is None:
        return FileDiff(path, _masked(before), _masked(after)), ""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    first, last = max(0, head - _AROUND), max(0, tail - _AROUND)
    kept_old, kept_new = old[first : len(old) - last], new[first : len(new) - last]
    note = f"{path}: drawn from line {first + 1}; the rest of the file does not change."
    return FileDiff(path, _masked("".join(kept_old)), _masked("".join(kept_new))), note


def _masked(text: str | None) -> str | None:
    return None if text is None else mask(text)
