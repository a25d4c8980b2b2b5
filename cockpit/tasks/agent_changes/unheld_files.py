"""Files of a task's worktree that no commit would hold: added, or the task is blocked with their names.

A folder that is a repository of its own (``git init`` in ``web/``) and files that an ignore rule matches are
left out by ``git add``; when the worktree goes, they would be lost. Specified in ``docs/reference/roles.md``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path

from cockpit.tasks.git import GENERATED_NAMES, WorktreeError, git, show_name, try_git

_GENERATED_NAMES = GENERATED_NAMES | {
    *("dist", "build", "out", "target", "obj", "bin", "vendor", "tmp", "logs", "log", "coverage"),
    *("htmlcov", "site-packages", "DerivedData", "Pods", ".next", ".nuxt", ".svelte-kit", ".turbo"),
    *(".cache", ".parcel-cache", ".nyc_output", ".terraform", ".eggs", ".eslintcache", ".cockpit"),
    *(".claude", ".codex", ".vscode"),
}
"""Folders and files that programs make again; nobody misses those of a worktree."""
_GENERATED = ("*.pyc", "*.pyo", "*.o", "*.class", "*.log", "*.tmp", "*.egg-info", "*.tsbuildinfo")
_MOST_NESTED = 20


async def add_unheld(root: Path, text: str, brought: Collection[str] = ()) -> None:
    """Let the next commit in the worktree hold nested repositories, and ignored files that ``text`` names.

    A nested repository that came from elsewhere (it has a remote) stays as it is. Of a new one the history
    is kept beside the worktree, and its files are added. ``brought`` is what the setup of the worktree left:
    nobody's work, and perhaps secrets. Raises ``WorktreeError``.
    """
    left_out = await list_left_out(root)
    for _ in range(_MOST_NESTED):
        nested = [path for state, path in left_out if state == "??"]
        if not [path for path in nested if await _take_over(root, path)]:
            break
        left_out = await list_left_out(root)
    named = [
        path
        for state, path in left_out
        if state == "!!"
        and path not in brought
        and re.search(rf"(?<![\w/.-]){re.escape(path)}", text)  # also what is in such a folder
    ]
    if named:
        listed = "\0".join(named).encode("utf-8", "surrogateescape")
        await git(
            root, "add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=listed
        )


async def list_unheld(root: Path, base: str, brought: Collection[str] = ()) -> tuple[str, ...]:
    """Return the files and folders of the worktree that no commit holds, as they are shown; often none.

    ``base`` is the commit that the worktree began at: a folder recorded since as a repository of its own
    counts, where ``.gitmodules`` does not say where that comes from. Raises ``WorktreeError``.
    """
    left = [
        path
        for state, path in await list_left_out(root)
        if path not in brought and not _is_generated(path)
    ]
    changed = await try_git(root, "diff-tree", "-r", "-z", "--no-renames", base, "HEAD")
    fields = os.fsdecode(changed.stdout).split("\0") if changed.ok else []
    links = {path for entry, path in zip(fields[::2], fields[1::2], strict=False) if ":" in entry
             and entry.split(" ")[1] == "160000"}  # fmt: skip
    if links:
        listed = await try_git(root, "config", "--file", ".gitmodules", "--get-regexp", r"\.path$")
        links -= {line.partition(" ")[2] for line in os.fsdecode(listed.stdout).splitlines()}
    return tuple(sorted(map(show_name, {*left, *links})))


async def list_left_out(root: Path) -> list[tuple[str, str]]:
    """Return nested repositories (``??``) and ignored files and folders (``!!``)."""
    ended = await try_git(
        root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching",
        "--no-renames",
    )  # fmt: skip
    if not ended.ok:
        raise WorktreeError(f"git status in {root} failed: {ended.reason}")
    entries = [(entry[:2], entry[3:]) for entry in os.fsdecode(ended.stdout).split("\0")]
    return [
        (state, path)
        for state, path in entries
        if state == "!!" or (state == "??" and path.endswith("/"))
    ]


async def _take_over(root: Path, path: str) -> bool:
    """Move the history of a new nested repository aside; False for one that came from elsewhere."""
    state = root / path / ".git"
    if not state.is_dir() or state.is_symlink():
        return False
    if (await try_git(root / path, "config", "--local", "--get-regexp", r"^remote\.")).ok:
        return False
    name = path.strip("/").replace("/", "-")
    aside, number = root.with_name(f"{root.name}.{name}.git"), 1
    while aside.exists():
        number += 1
        aside = root.with_name(f"{root.name}.{name}-{number}.git")
    state.rename(aside)
    return True


def _is_generated(path: str) -> bool:
    parts = path.strip("/").split("/")
    return not _GENERATED_NAMES.isdisjoint(parts) or any(
        fnmatchcase(part, pattern) for part in parts for pattern in _GENERATED
    )
