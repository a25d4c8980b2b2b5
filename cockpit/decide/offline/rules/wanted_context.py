"""The context that a reviewer needs before judging a change, as scope items with reasons."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from cockpit.core.parse_diff import FileDiff
from cockpit.core.test_files import is_test
from cockpit.decide.offline.rules.changed_definitions import touched
from cockpit.decide.offline.rules.public_name_rules import (
    changed_signatures,
    narrowed_functions,
    new_names,
    removed_names,
)
from cockpit.decide.offline.rules.reviewed_change import Change, is_code, is_source, search_for

MOST = 8
"""Items of one request; the user reads each."""

WIDER = 20
"""Lines around a hunk that usually show the function it is in."""

SHORT_FILE = 300
"""Up to this line a Python file is asked for whole: only a whole file can be parsed."""

_NAMES = 10
"""Names that one search looks for."""

Sort = Literal["diff", "callers", "code", "tests"]


class Item(Struct, frozen=True):
    """One scope item, what sort it is, the paths or names it is about, and why it is wanted."""

    scope: str
    sort: Sort
    about: tuple[str, ...]
    why: str


def wanted(change: Change, target: Mapping[str, Any]) -> tuple[Item, ...]:
    """At most :data:`MOST` items; none when the diff says all that rules can use."""
    tests = list(_tests(change))
    items = [*_unseen(change, target), *_callers(change), *_code(change)]
    chosen = items[: MOST - len(tests)] + tests
    return tuple({item.scope: item for item in chosen}.values())


def spelled(path: str) -> str:
    """A path as scope items write it: as it is, or as a JSON string when it could be misread."""
    plain = re.fullmatch(r"[\w./@+~-]+", path) is not None
    return path if plain else json.dumps(path)


def _unseen(change: Change, target: Mapping[str, Any]) -> Iterator[Item]:
    """Files that the cut left out of the diff, whole or in part, sources first."""
    seen = {file.path for file in change.files} - {*change.partial}
    missing = [path for path in change.listed if path not in seen and is_code(path)]
    source = f"diff:{target['base']}..{target['tip']}" if target.get("base") else ""
    source = f"pr:{target['pr']}" if "pr" in target else source
    for path in sorted(missing, key=lambda path: (is_test(path), path))[: 3 if source else 0]:
        why = "the diff was cut before it"
        yield Item(f"{source} in {spelled(path)}", "diff", (path,), why)


def _callers(change: Change) -> Iterator[Item]:
    names = [old.name for old in removed_names(change) if not old.member or old.public]
    if names := list(dict.fromkeys(names))[:_NAMES]:
        why = f"does anything still use {_some(names)}?"
        yield Item(f"search:{search_for(names)}", "callers", tuple(names), why)
    for new, _, _, how in narrowed_functions(change):
        why = f"its callers: it {how.replace('`', '')}"
        yield Item(f"symbol:{new.name}", "callers", (new.name,), why)


def _code(change: Change) -> Iterator[Item]:
    """The code around what changed, the most changed file first."""
    files = [file for file in change.files if is_code(file.path) and file.hunks]
    files = [file for file in files if file.status not in ("added", "removed")]
    for file in sorted(files, key=lambda file: (is_test(file.path), -file.size, file.path)):
        if file.path in change.whole:
            continue
        last = max(hunk.new_start + hunk.new_count for hunk in file.hunks)
        why = f"the code around {', '.join(touched(file)[:3]) or 'the change'}"
        if file.path.endswith(".py") and last <= SHORT_FILE:
            yield Item(
                f"file:{spelled(file.path)}", "code", (file.path,), f"{why}, whole to parse it"
            )
            continue
        for first, until in _windows(file)[:2]:
            yield Item(f"file:{spelled(file.path)}:{first}-{until}", "code", (file.path,), why)


def _tests(change: Change) -> Iterator[Item]:
    """Tests that speak of what changed, unless the diff shows some that do."""
    names = [new.name for new in new_names(change) if not new.name.isupper()]
    names += [new.name for _, new in changed_signatures(change)]
    for file in change.files:
        names += touched(file) if is_source(file.path) and file.status == "modified" else []
    shown = [line.text for file in change.files if is_test(file.path) for line in file.lines()]
    tested = "\n".join(shown)
    names = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", tested)]
    names = [name for name in dict.fromkeys(names) if not name.startswith("__")][:_NAMES]
    if names:
        glob = "*.spec.*" if any(".spec." in path for path in change.paths) else "*test*"
        why = f"which tests cover {_some(names)}?"
        yield Item(f"search:{search_for(names)} in {glob}", "tests", tuple(names), why)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _windows(file: FileDiff) -> list[tuple[int, int]]:
    """Lines around the hunks, merged where they touch, the largest first."""
    windows: list[tuple[int, int]] = []
    for hunk in file.hunks:
        first = max(1, hunk.new_start - WIDER)
        until = hunk.new_start + max(hunk.new_count, 1) + WIDER
        if windows and first <= windows[-1][1] + 1:
            windows[-1] = (windows[-1][0], until)
        else:
            windows.append((first, until))
    return sorted(windows, key=lambda window: (window[0] - window[1], window[0]))


def reasons(items: Sequence[Item]) -> str:
    """Return the items as a list for the user, one line each."""
    return "\n".join(f"- `{item.scope}`: {item.why}" for item in items)
