"""Which of the files that a watcher reports are documents of the project.

See ``docs/reference/knowledge.md``, background.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from cockpit.access.run_program import ProgramMissing, run_git
from cockpit.observe.knowledge.refresh_index import is_document

MOST_NAMED = 500
"""Changed files that are looked at one by one; of more the whole project is."""


async def find_documents(root: Path, changed: Iterable[Path]) -> list[str]:
    """Return the paths within the project of changed documents, without those that git ignores."""
    names = []
    for path in changed:
        try:
            name = path.relative_to(root).as_posix()
        except ValueError:
            continue  # a name that is spelled another way: the next whole look finds it
        if is_document(name):
            names.append(name)
    if not names or len(names) > MOST_NAMED:
        return names
    try:
        ended = await run_git(
            "ls-files", "-z", "-c", "-o", "--exclude-standard", "--", *names, cwd=root
        )  # fmt: skip
    except ProgramMissing:
        return names
    if not ended.ok:
        return names  # no repository: nothing is ignored
    listed = set(os.fsdecode(ended.stdout).split("\0"))
    # A file that is gone is named as well: it leaves the index.
    return sorted(name for name in names if name in listed or not (root / name).exists())
