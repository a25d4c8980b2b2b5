"""The files that a fixer starts from, and the tests that it may not change.

See ``docs/reference/roles.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from cockpit.act.protected_tests import is_test
from cockpit.core.named_files import drop_long_runs
from cockpit.tasks.git import changed_files, reset_index_flags, restore_files, uncommitted_files

MAX_FILES = 12
"""Files that a fixer starts from."""

_PATH = re.compile(
    r"(?<![\w./-])((?:\.{0,2}/)?(?:[\w.@+-]+/)*[\w.@+-]+\.[A-Za-z][A-Za-z0-9]{0,7})\b"
)


def named_files(failure: str, root: Path, changed: Iterable[str]) -> tuple[str, ...]:
    """Return the project's files that the output ``failure`` names, in order, then those ``changed``."""
    files: dict[str, None] = {}
    for match in _PATH.finditer(drop_long_runs(failure)):
        path = match[1].removeprefix(f"{root}/").removeprefix("./")
        if not path.startswith(("/", "..")) and (root / path).is_file():
            files[path] = None
    for path in changed:
        if (root / path).is_file():
            files[path] = None
    return tuple(files)[:MAX_FILES]


async def restore_tests(root: Path, before: str) -> tuple[str, ...]:
    """Restore the tests that differ from the commit ``before``, committed or not; return their paths.

    Tool calls that name a test were refused already; this finds what a command changed.
    """
    await reset_index_flags(root)
    restored: set[str] = set()
    while True:
        touched = {*await changed_files(root, before), *await uncommitted_files(root)} - restored
        protected = sorted(path for path in touched if is_test(path))
        if not protected:
            return tuple(sorted(restored))
        await restore_files(root, before, protected)
        # Look again: restoring a .gitignore shows files that it had hidden.
        restored.update(protected)
