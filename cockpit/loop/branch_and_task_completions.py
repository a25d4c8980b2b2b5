"""Completions of branches and tags, and of backlog tasks.

Specified in ``docs/reference/screen.md``, commands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cockpit.access.run_program import run_git
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.backlog import tasks
from cockpit.store.db.database import Store

TASK_SIGN = "T-"
"""The beginning of a task's id, which asks for tasks wherever a word begins with it."""

_COMMAND = re.compile(r"/(?P<name>review|review-pr|diff|work) (?P<word>\S*)")
_OF_BRANCHES = ("review", "review-pr")
_MOST_REFERENCES = 20_000
_KINDS = {"refs/heads/": "branch", "refs/tags/": "tag"}


async def complete_reference(
    store: Store, place: ProjectPaths, text: str, most: int
) -> list[tuple[str, str]] | None:
    """Return completions of ``text`` with their hints, the best first; None where it asks for neither.

    ``T-`` and digits ask for tasks, as do ``/work`` and ``/diff`` with the beginning of an id. ``/review``
    and ``/review-pr`` ask for local branches and tags, also behind the dots of a range.
    """
    if text.startswith(TASK_SIGN):
        return await _find_tasks(store, text.removeprefix(TASK_SIGN), "", most)
    match = _COMMAND.fullmatch(text)
    if match is None:
        return None
    command, word = f"/{match['name']} ", match["word"]
    if match["name"] not in _OF_BRANCHES:
        if not TASK_SIGN.startswith(word) and not word.startswith(TASK_SIGN):
            return []
        return await _find_tasks(store, word[len(TASK_SIGN) :], command, most)
    if not place.git:
        return []
    begin = re.sub(r"[^.]*\Z", "", word) if ".." in word else ""
    wanted = word.removeprefix(begin)
    listed = await run_git(
        "for-each-ref",
        f"--count={_MOST_REFERENCES}",
        "--format=%(refname)",
        *_KINDS,
        cwd=place.root,
    )
    names = _select_references(listed.text.splitlines(), wanted, most)
    return [(f"{command}{begin}{name}", kind) for name, kind in names]


async def _find_tasks(store: Store, digits: str, command: str, most: int) -> list[tuple[str, str]]:
    rows = await store.read(lambda connection: tasks.find_by_number(connection, digits, most))
    return [(f"{command}{task_id}", title) for task_id, title in rows]


def _select_references(references: Sequence[str], wanted: str, most: int) -> list[tuple[str, str]]:
    """Return names that contain ``wanted``: those that begin with it first, short ones first."""
    folded = wanted.casefold()
    kinds: dict[str, str] = {}
    for reference in references:
        prefix = next((each for each in _KINDS if reference.startswith(each)), "")
        name = reference.removeprefix(prefix)
        # A name that begins with a dash would be read as an option.
        if prefix and folded in name.casefold() and not name.startswith("-"):
            kinds.setdefault(name, _KINDS[prefix])
    ordered = sorted(
        kinds, key=lambda name: (not name.casefold().startswith(folded), len(name), name)
    )
    return [(name, kinds[name]) for name in ordered[:most]]
