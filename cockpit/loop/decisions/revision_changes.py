"""The differences between a proposal and its next revision, as lines that the revision stores and shows.

See ``docs/reference/loop.md``, decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

from cockpit.core.secrets import mask_value
from cockpit.store.sessions.proposals import EDITED_BY_YOU, Proposal

REMOVED, ADDED = "− ", "+ "
"""How lines begin that only one of the two has."""
_MOST_LINES = 40
_LONGEST_LINE = 400
_MOST_PAIRS = 40_000
"""Pairs of lines that are compared one by one; a longer stretch is replaced whole."""


def list_changes(
    before: Proposal, body: Mapping[str, Any], *, was_edited: bool = False
) -> list[str]:
    """Return the differences between a proposal and the ``body`` of its next revision.

    ``was_edited`` says that the revision is the user's. Long lists end with the number of lines left out:
    the revision itself is shown in full.
    """
    revised = mask_value(dict(body))  # as it will be stored: what ``before`` has is masked already
    if before.kind == "context":
        lines = list(_compare_items(before.body, revised))
    else:
        lines = list(_compare_texts(before.body, revised))
    lines = [
        line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…" for line in lines
    ]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"{len(lines) - _MOST_LINES + 1:,} more lines differ"]
    head = [EDITED_BY_YOU] if was_edited else []
    return [*head, *lines] or ["nothing changed"]


def _compare_items(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    old, new = ([item["item"] for item in body.get("items", ())] for body in (before, after))
    yield from (f"{REMOVED}{item}" for item in old if item not in new)
    yield from (f"{ADDED}{item}" for item in new if item not in old)
    for name in ("purpose", "question"):
        if before.get(name) != after.get(name) and after.get(name):
            yield f"{name}: {after[name]}"


def _compare_texts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in ("purpose", "question", "body"):  # the summary repeats the others
        yield from _compare(name, before.get(name) or "", after.get(name) or "")
    old, new = (
        [f"{name}: {value}" for name, value in body.get("fields", ())] for body in (before, after)
    )
    yield from (f"{REMOVED}{field}" for field in old if field not in new)
    yield from (f"{ADDED}{field}" for field in new if field not in old)
    earlier, later = (
        {str(diff["path"]): diff.get("after") for diff in body.get("diffs", ())}
        for body in (before, after)
    )
    for path in {**earlier, **later}:
        if path not in later:
            yield f"{path}: no longer changed"
        elif path not in earlier:
            yield f"{path}: changed as well"
        else:
            yield from _compare(path, earlier[path] or "", later[path] or "")


def _compare(name: str, before: str, after: str) -> Iterator[str]:
    """Yield the lines that differ below the name of their text."""
    if before == after:
        return
    yield f"{name} changed"
    old, new = before.split("\n"), after.split("\n")
    head = _count_same(zip(old, new, strict=False))
    rest = min(len(old), len(new)) - head
    tail = min(rest, _count_same(zip(reversed(old), reversed(new), strict=False)))
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(old) * len(new) > _MOST_PAIRS:
        opcodes = [("replace", 0, len(old), 0, len(new))]
    else:
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        opcodes = list(matcher.get_opcodes())
    for tag, a, b, c, d in opcodes:
        if tag != "equal":
            yield from (f"{REMOVED}{line}" for line in old[a:b])
            yield from (f"{ADDED}{line}" for line in new[c:d])


def _count_same(pairs: Iterable[tuple[str, str]]) -> int:
    count = 0
    for earlier, later in pairs:
        if earlier != later:
            break
        count += 1
    return count
