"""The difference between two texts, as a prompt shows it in place of the newer one.

See ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import lru_cache

MAX_LINES = 6_000
"""Longer texts are not compared: the newer one is shown whole."""
_CONTEXT = 2
_NO_NEWLINE = "\\ No newline at end of file\n"


def describe_change(before: str, after: str) -> str | None:
    """Return the unified diff that makes ``before`` into ``after``; None where they are not compared.

    Equal texts give a line that says so.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > MAX_LINES:
        return None
    lines = list(difflib.unified_diff(old, new, n=_CONTEXT))[2:]
    if not lines:
        return "(the same text)"
    return "".join(
        line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines
    ).removesuffix("\n")


LEAST_RUN = 4
"""Lines that stand above in a row are pointed to from so many on."""
_LEAST_SAVED = 20
"""Characters that a pointer must save."""
_QUOTED = 24


def point_to_repeats(text: str, above: Sequence[tuple[str, str]]) -> tuple[str, tuple[int, ...]]:
    """Return ``text`` with pointers in the place of runs of lines that stand in a text ``above``.

    ``above`` are (reference, text), in order; the second value says which of them are pointed to.
    """
    lines = text.split("\n")
    if len(lines) < LEAST_RUN:
        return text, ()
    runs = _runs(text)
    bases = [
        (place, base)
        for place, (_, shown) in enumerate(above)
        if shown.count("\n") >= LEAST_RUN - 1 and not runs.keys().isdisjoint(base := _runs(shown))
    ]
    if not bases:
        return text, ()
    result, used, at = list[str](), dict[int, None](), 0
    while at < len(lines):
        key = "\n".join(lines[at : at + LEAST_RUN])
        match = next(((place, base[key]) for place, base in bases if key in base), None)
        if match is not None and at + LEAST_RUN <= len(lines):
            place, start = match
            shown = above[place][1].split("\n")
            length = LEAST_RUN
            while (
                lines[at + length : at + length + 1]
                == shown[start + length : start + length + 1]
                != []
            ):
                length += 1
            pointer = _pointer(above[place][0], lines[at : at + length])
            if sum(map(len, lines[at : at + length])) + length >= len(pointer) + _LEAST_SAVED:
                result.append(pointer)
                used[place] = None
                at += length
                continue
        result.append(lines[at])
        at += 1
    return "\n".join(result), tuple(used)


def _pointer(reference: str, lines: Sequence[str]) -> str:
    first = next((line.strip() for line in lines if line.strip()), "")[:_QUOTED]
    return f"[… {first} … {len(lines)} lines as in {reference} above …]"


@lru_cache(maxsize=1_024)
def _runs(text: str) -> dict[str, int]:
    """Return the first place of each run of the least length, by its lines."""
    lines = text.split("\n")
    places: dict[str, int] = {}
    for at in range(len(lines) - LEAST_RUN + 1):
        places.setdefault("\n".join(lines[at : at + LEAST_RUN]), at)
    return places
