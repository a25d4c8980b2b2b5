"""Read what a worktree changed since it began: its files before and after, and whether it can be merged.

Nothing is changed: what is not committed is read through an index of its own. See
``docs/reference/agents.md``, the change of a worktree.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.commands.command_table import file_risk
from cockpit.access.git_folders import locate_git_folders, read_head
from cockpit.access.run_program import run_git
from cockpit.access.secret_files import is_sensitive
from cockpit.act.preview_files import changed_lines
from cockpit.act.proposed_action import FileDiff, draw_diff
from cockpit.act.protected_tests import is_test
from cockpit.core.secrets import mask
from cockpit.core.text import pluralize
from cockpit.tasks.git import (
    WorktreeError,
    commit_of,
    git,
    is_ancestor,
    reset_index_flags,
    try_git,
    uncommitted_files,
)

MOST_FILES = 200
"""Files that a proposal draws; the others are counted."""
MOST_BYTES = 1_000_000
"""Bytes of the files' texts, before and after, that one proposal draws."""
_MOST_NAMES = 10
_LINK, _MODULE, _PROGRAM = "120000", "160000", "100755"
_NOTHING = "000000"


class WorktreeChange(Struct, frozen=True):
    """What a worktree changed, and what a merge would come to."""

    base: str
    tip: str
    tree: str
    fork: str
    """The commit at which the branch began."""
    commits: int
    uncommitted: tuple[str, ...]
    paths: tuple[str, ...]
    added: int
    removed: int
    diffs: tuple[FileDiff, ...]
    notes: tuple[str, ...]
    risk: Literal["low", "medium", "high"]
    conflicts: tuple[str, ...]

    @property
    def size(self) -> str:
        """Say how large it is, in a few words."""
        return f"+{self.added:,} −{self.removed:,} in {pluralize(len(self.paths), 'file')}"


class _Entry(Struct, frozen=True):
    """One file of ``git diff-tree``."""

    path: str
    mode_before: str
    mode: str
    blob_before: str
    blob: str


async def read_change(
    root: Path, branch: str, into: str, began: str, *, is_checked_out: bool = True
) -> WorktreeChange | None:
    """Compare the worktree at ``root`` with where its branch began; None where it changed nothing.

    ``into`` is the reference that it would be merged into, ``began`` the commit that the worktree was made
    at. Where it is not checked out, ``root`` is the user's checkout and only commits are compared. Raises
    :class:`WorktreeError`, also where the agent left its branch.
    """
    snapshot = await _snapshot(root, branch, is_checked_out=is_checked_out)
    return await _compare(root, into, began, *snapshot)


async def read_merged(
    root: Path, branch: str, into: str, began: str, *, is_checked_out: bool
) -> tuple[str, str]:
    """Return tip and tree of a branch that has nothing left to merge; arguments as of :func:`read_change`.

    Raises :class:`WorktreeError` where it has.
    """
    tip, tree, uncommitted = await _snapshot(root, branch, is_checked_out=is_checked_out)
    if await _compare(root, into, began, tip, tree, uncommitted) is not None:
        raise WorktreeError(f"{branch} has changed; look at its diff again.")
    return tip, tree


async def _snapshot(
    root: Path, branch: str, *, is_checked_out: bool
) -> tuple[str, str, tuple[str, ...]]:
    """Return the branch's commit, the tree of its files, and those of them that no commit holds so."""
    if is_checked_out:
        await require_on_branch(root, branch)
    tip = await commit_of(root, f"refs/heads/{branch}")
    if tip is None:
        raise WorktreeError(f"There is no branch {branch}; its work is merged or dropped.")
    if not is_checked_out:
        return tip, await tree_of(root, tip), ()
    return tip, *await snapshot_tree(root, tip)


async def _compare(
    root: Path,
    into: str,
    began: str,
    tip: str,
    tree: str,
    uncommitted: tuple[str, ...],
) -> WorktreeChange | None:
    base = await commit_of(root, into) if into else None
    met = await try_git(root, "merge-base", base or began, tip)
    fork = met.text.split()[0] if met.ok and met.text.strip() else began
    change = await compare_trees(root, fork, tip, tree, uncommitted)
    if change is None:
        return None
    name = into.removeprefix("refs/heads/")
    if base is None:
        why = (
            f"It cannot be taken: the branch {name} is gone."
            if name
            else "It cannot be taken: the checkout was on no branch when the worktree was made."
        )
        return replace(change, notes=(*change.notes, why))
    conflicts = (await merge_trees(root, base, tip, tree)).conflicts
    if not conflicts:
        return replace(change, base=base)
    note = f"It conflicts with {name} in {', '.join(conflicts[:_MOST_NAMES])}."
    return replace(
        change,
        base=base,
        conflicts=conflicts,
        notes=(note, *change.notes),
        risk="medium" if change.risk == "low" else change.risk,
    )


async def compare_trees(
    root: Path, fork: str, tip: str, tree: str, uncommitted: tuple[str, ...]
) -> WorktreeChange | None:
    """Compare ``tree``, the commit ``tip`` with the ``uncommitted`` files, with the commit ``fork``.

    None where nothing differs. Raises :class:`WorktreeError`.
    """
    if await tree_of(root, fork) == tree:
        return None
    entries = await _list_entries(root, fork, tree)
    if not entries:
        return None
    diffs, notes, counts = await _draw(root, entries)
    counted = await git(root, "rev-list", "--count", f"{fork}..{tip}")
    return WorktreeChange(
        base="",
        tip=tip,
        tree=tree,
        fork=fork,
        commits=int(counted.strip() or 0),
        uncommitted=uncommitted,
        paths=tuple(entry.path for entry in entries),
        added=counts[0],
        removed=counts[1],
        diffs=tuple(diffs),
        notes=tuple(notes),
        risk=_judge(entries, is_whole=len(diffs) == len(entries)),
        conflicts=(),
    )


async def require_on_branch(root: Path, branch: str) -> None:
    """Raise :class:`WorktreeError` unless the worktree is there, and on its own branch."""
    if not await asyncio.to_thread(root.is_dir):
        raise WorktreeError(
            f"The worktree {root} is gone, so its work is not compared: the folder was deleted or moved. What"
            f" was committed is on the branch {branch}, if the repository still has it."
        )
    folders = await asyncio.to_thread(locate_git_folders, root)
    head = None if folders is None else await asyncio.to_thread(read_head, folders)
    if head != f"refs/heads/{branch}":
        raise WorktreeError(
            f"The worktree {root} is not on its branch {branch}, so its work is not compared. Run `git"
            f" switch {branch}` in it, and send the agent its next message."
        )


async def tree_of(root: Path, commit: str) -> str:
    """Return the tree of a commit. Raises :class:`WorktreeError`."""
    return (await git(root, "rev-parse", "--verify", f"{commit}^{{tree}}")).strip()


async def snapshot_tree(root: Path, tip: str) -> tuple[str, tuple[str, ...]]:
    """Return the tree of the worktree as its files are, and those that no commit holds so.

    The worktree's own index stays as it is.
    """
    await reset_index_flags(root)
    paths = await uncommitted_files(root)
    if not paths:
        return await tree_of(root, tip), ()
    folders = locate_git_folders(root)
    if folders is None:
        raise WorktreeError(f"{root} is not a worktree any more.")
    index = Path(folders.own, f"cockpit-{os.getpid()}.index")
    listed = "\0".join(paths).encode("utf-8", "surrogateescape")
    steps: tuple[tuple[tuple[str, ...], bytes | None], ...] = (
        (("read-tree", tip), None),
        (("update-index", "--add", "--remove", "--replace", "-z", "--stdin"), listed),
        (("write-tree",), None),
    )
    written = ""
    try:
        for words, stdin in steps:
            ended = await run_git(
                *words, cwd=root, stdin=stdin, timeout_s=300.0, env={"GIT_INDEX_FILE": str(index)}
            )
            if not ended.ok:
                raise WorktreeError(f"git {words[0]} in {root} failed: {ended.reason}")
            written = ended.text.strip()
    finally:
        for left in (index, index.with_name(f"{index.name}.lock")):
            await asyncio.to_thread(left.unlink, missing_ok=True)
    return written, paths


class MergedTrees(Struct, frozen=True):
    """What a merge would come to: its tree ('' with conflicts), or the files in conflict."""

    tree: str
    conflicts: tuple[str, ...] = ()


async def merge_trees(root: Path, base: str, tip: str, tree: str) -> MergedTrees:
    """Merge ``tree``, on top of the commit ``tip``, with the commit ``base``, in no checkout.

    Raises :class:`WorktreeError`.
    """
    if await is_ancestor(root, base, tip):
        return MergedTrees(tree)
    commit = tip
    if await tree_of(root, tip) != tree:
        # A commit that no branch has: git's garbage collection removes it.
        commit = (await git(root, "commit-tree", tree, "-p", tip, "-m", "uncommitted")).strip()
    words = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", base, commit)
    ended = await try_git(root, *words)
    fields = [field for field in ended.text.split("\0") if field]
    if ended.code not in (0, 1) or not fields:
        raise WorktreeError(f"git merge-tree in {root} failed: {ended.reason}")
    if ended.ok:
        return MergedTrees(fields[0].strip())
    return MergedTrees("", tuple(sorted(mask(path) for path in set(fields[1:]))))


async def _list_entries(root: Path, fork: str, tree: str) -> list[_Entry]:
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    ended = await try_git(root, *words, fork, tree)
    if not ended.ok:
        raise WorktreeError(f"git diff-tree in {root} failed: {ended.reason}")
    fields = iter(ended.stdout.rstrip(b"\0").decode("utf-8", "replace").split("\0"))
    entries = []
    for head in fields:
        if not head.startswith(":"):
            continue
        before, after, blob_before, blob, _ = head[1:].split(" ")
        entries.append(_Entry(mask(next(fields)), before, after, blob_before, blob))
    return entries


async def _draw(
    root: Path, entries: Sequence[_Entry]
) -> tuple[list[FileDiff], list[str], tuple[int, int]]:
    """Return the files' diffs, notes over what they cannot show, and the lines added and removed."""
    notes = _note_modes(entries)
    texts = await _read_texts(root, entries[:MOST_FILES])
    diffs: list[FileDiff] = []
    added = removed = 0
    undrawn = [entry.path for entry in entries[MOST_FILES:]]
    for entry in entries[:MOST_FILES]:
        before, after = texts.get(entry.blob_before), texts.get(entry.blob)
        if (before is None and entry.mode_before != _NOTHING) or (
            after is None and entry.mode != _NOTHING
        ):
            undrawn.append(entry.path)
            continue
        if is_sensitive(entry.path):
            notes.append(
                f"{entry.path}: files of this name hold secrets, so its text is not drawn."
            )
            before, after = "" if before is not None else None, "" if after is not None else None
        counted = await asyncio.to_thread(changed_lines, before or "", after or "")
        added, removed = added + counted[0], removed + counted[1]
        diff, note = draw_diff(entry.path, before, after)
        diffs.append(diff)
        notes += [note] if note else []
    if undrawn:
        shown = ", ".join(undrawn[:_MOST_NAMES])
        more = f" and {len(undrawn) - _MOST_NAMES:,} more" if len(undrawn) > _MOST_NAMES else ""
        notes.append(f"Not drawn, because not text or too large: {shown}{more}.")
    return diffs, notes, (added, removed)


async def _read_texts(root: Path, entries: Sequence[_Entry]) -> dict[str, str]:
    """Read the texts of these files, as far as there is room; those that are not text are missing."""
    wanted = [
        blob
        for entry in entries
        for mode, blob in ((entry.mode_before, entry.blob_before), (entry.mode, entry.blob))
        if mode not in (_NOTHING, _MODULE)
    ]
    blobs = list(dict.fromkeys(wanted))
    sizes = await git(root, "cat-file", "--batch-check", stdin="\n".join([*blobs, ""]).encode())
    room, kept = MOST_BYTES, []
    for line in sizes.splitlines():
        name, _, size = line.partition(" ")
        number = size.rpartition(" ")[2]
        if number.isdigit() and int(number) <= room:
            room -= int(number)
            kept.append(name)
    ended = await try_git(root, "cat-file", "--batch", stdin="\n".join([*kept, ""]).encode())
    texts, data = {}, ended.stdout
    for name in kept:
        head, _, data = data.partition(b"\n")
        length = int(head.rpartition(b" ")[2])
        content, data = data[:length], data[length + 1 :]
        if b"\0" in content:
            continue
        texts[name] = content.decode("utf-8", "replace")
    return texts


def _note_modes(entries: Sequence[_Entry]) -> list[str]:
    """Say what a diff of texts does not show, and which files decide over others."""
    kinds = (
        ("Steers what runs or what agents read as rules", lambda e: file_risk(e.path) == "high"),
        ("Tests, or what selects them", lambda e: is_test(e.path)),
        ("Becomes a symbolic link", lambda e: e.mode == _LINK),
        ("Another commit of a submodule", lambda e: _MODULE in (e.mode, e.mode_before)),
        ("Becomes executable", lambda e: e.mode == _PROGRAM and e.mode_before != _PROGRAM),
    )
    notes = []
    for words, applies in kinds:
        paths = [entry.path for entry in entries if applies(entry)]
        if paths:
            more = f" and {len(paths) - _MOST_NAMES:,} more" if len(paths) > _MOST_NAMES else ""
            notes.append(f"{words}: {', '.join(paths[:_MOST_NAMES])}{more}.")
    return notes


def _judge(entries: Sequence[_Entry], *, is_whole: bool) -> Literal["low", "medium", "high"]:
    """Return the highest risk of the files; what is not drawn, links and submodules are high."""
    risks = {file_risk(entry.path) for entry in entries}
    modes = {mode for entry in entries for mode in (entry.mode, entry.mode_before)}
    if "high" in risks or not is_whole or modes & {_LINK, _MODULE}:
        return "high"
    return "medium" if "medium" in risks else "low"
