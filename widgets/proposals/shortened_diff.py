"""A large change cut down to the part that is drawn in the panel; the whole is in a view of its own."""

from __future__ import annotations

from widgets.views import FileDiffView

MOST_LINES = 600
"""Lines of each side that are drawn: highlighting and mounting more takes seconds."""
MOST_CHARACTERS = 60_000
_AROUND = 20


def shorten_diff(view: FileDiffView) -> tuple[FileDiffView, str]:
    """Return the diff from its first change on, and a sentence about what is left out ('' for nothing)."""
    sides = [side for side in (view.before, view.after) if side is not None]
    if all(len(side) <= MOST_CHARACTERS and side.count("\n") < MOST_LINES for side in sides):
        return view, ""
    old, new = (view.before or "").splitlines(True), (view.after or "").splitlines(True)
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    first = max(0, same - _AROUND)
    before = None if view.before is None else _cut(old[first:])
    after = None if view.after is None else _cut(new[first:])
    total = max(len(old), len(new))
    drawn = max(len((each or "").splitlines()) for each in (before, after))
    words = f"Lines {first + 1} to {first + drawn} of {total:,} are drawn."
    return FileDiffView(view.path, before, after), words


def _cut(lines: list[str]) -> str:
    return "".join(lines[:MOST_LINES])[:MOST_CHARACTERS]
