"""What a fixer starts from, and what it may not leave changed.

Source: seed 004, solution 8; design of work, "Doing a task".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from cockpit.act.protected_tests import is_test
from cockpit.tasks.git import changed_files, reset_index_flags, restore_files, uncommitted_files

MOST_NAMED = 12
"""The files that a fixer is given."""

_PATH = re.compile(
    r"(?<![\w./-])((?:\.{0,2}/)?(?:[\w.@+-]+/)*[\w.@+-]+\.[A-Za-z][A-Za-z0-9]{0,7})\b"
)


def named_files(failure: str, root: Path, changed: Iterable[str]) -> tuple[str, ...]:
    """The project's files that ``failure`` names, in its order, then those ``changed`` so far."""
    found: dict[str, None] = {}
    for match in _PATH.finditer(failure):
        path = match[1].removeprefix(f"{root}/").removeprefix("./")
        if not path.startswith(("/", "..")) and (root / path).is_file():
            found[path] = None
    for path in changed:
        if (root / path).is_file():
            found[path] = None
    return tuple(found)[:MOST_NAMED]


async def restore_tests(root: Path, before: str) -> tuple[str, ...]:
    """Put back the tests that differ from the commit ``before``, committed or not; returns them.

    A call that names a test was refused already; this finds what a command did.
    """
    await reset_index_flags(root)
    restored: set[str] = set()
    while True:
        touched = {*await changed_files(root, before), *await uncommitted_files(root)} - restored
        protected = sorted(path for path in touched if is_test(path))
        if not protected:
            return tuple(sorted(restored))
        await restore_files(root, before, protected)
        # Again: what a changed .gitignore hid shows now.
        restored.update(protected)
