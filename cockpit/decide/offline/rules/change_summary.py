"""A summary of a change from its diff: files, functions, sizes. Nothing is judged here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cockpit.core.test_files import is_test
from cockpit.core.text import pluralize
from cockpit.decide.offline.rules.changed_definitions import defined
from cockpit.decide.offline.rules.code_and_comments import functions, tree
from cockpit.decide.offline.rules.parse_diff import FileDiff, Hunk
from cockpit.decide.offline.rules.reviewed_change import Change, is_docs, is_source

_FILES = 6
_NAMES = 4
_LONGEST_HEADING = 200
"""Git cuts them at 80 bytes."""
_HEADING = re.compile(
    r"(?:(?:export|default|async|pub|static|public|private|protected|abstract|final)\s+)*"
    r"(?:def|class|func|fn|function|struct|interface)\s+(?:\([^)]*\)\s*)?(\w+)"
)


def size(change: Change) -> str:
    """``3 files, +10 −2``."""
    count = len(change.paths)
    added, removed = change.counts
    return f"{pluralize(count, 'file')}, +{added} −{removed}"


def describe_files(change: Change) -> list[str]:
    """Return one line for each of the most important files, sources first, then a count of the rest."""
    ranked = sorted(change.files, key=_rank)
    lines = [_line(change, file) for file in ranked[:_FILES]]
    if rest := len(change.paths) - len(lines):
        lines.append(f"{pluralize(rest, 'more file')}.")
    return lines


def touched(change: Change, file: FileDiff) -> list[str]:
    """Functions and classes of ``one`` that hold changed lines and were there before."""
    fresh = {new.name for new in defined(file, "+")} - {old.name for old in defined(file, "-")}
    ours = {line.number for line in file.added}
    names: list[str] = []
    if (module := tree(change, file.path)) is not None:
        for node in functions(module):
            inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if ours & set(inside) and node.name not in fresh:
                names.append(node.name)
    else:
        for hunk in file.hunks:
            names += [name for name in _around(hunk) if name not in fresh]
    return list(dict.fromkeys(names))


def _around(hunk: Hunk) -> Iterator[str]:
    """Yield the names of what encloses the changed lines of a hunk, by headings and indentation."""
    heading = _HEADING.search(hunk.heading[:_LONGEST_HEADING])
    name, depth = (heading[1], 0) if heading else ("", 0)
    for line in hunk.lines:
        indent = len(line.text) - len(line.text.lstrip())
        if match := _HEADING.match(line.text.lstrip()):
            name, depth = match[1], indent
        if name and line.text.strip() and line.sign != " " and (match or indent > depth):
            yield name


def _rank(file: FileDiff) -> tuple[int, int, str]:
    kind = (
        0 if is_source(file.path) else 1 if is_test(file.path) else 2 if is_docs(file.path) else 3
    )
    return kind, -(len(file.added) + len(file.removed)), file.path


def _line(change: Change, file: FileDiff) -> str:
    first = file.hunks[0].new_start if file.hunks and file.status != "removed" else 0
    place = f"`{file.path}:{first}`" if first else f"`{file.path}`"
    sizes = "binary" if file.binary else f"+{len(file.added)} −{len(file.removed)}"
    if file.path in change.partial:
        sizes += " seen, in part"
    old = {name.name for sign in "- " for name in defined(file, sign)}
    new = list(dict.fromkeys(name.name for name in defined(file, "+") if name.name not in old))
    remaining = {name.name for sign in "+ " for name in defined(file, sign)}
    gone = list(
        dict.fromkeys(name.name for name in defined(file, "-") if name.name not in remaining)
    )
    again = {name.name for name in defined(file, "-")} & {name.name for name in defined(file, "+")}
    changed = list(dict.fromkeys([*sorted(again), *touched(change, file)]))
    parts = [
        f"{verb} {_listed(names)}"
        for verb, names in (("adds", new), ("changes", changed), ("removes", gone))
        if names and file.status != "removed"
    ]
    lead = {
        "added": "is new",
        "removed": "is removed",
        "renamed": f"was `{file.old_path}`",
        "copied": f"is a copy of `{file.old_path}`",
        "modified": "",
    }[file.status]
    summary = "; ".join(part for part in (lead, *parts) if part) or "changes"
    return f"{place} ({sizes}) {summary}."


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:_NAMES])
    return listed + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")
