"""Git for worktrees: without signatures, and one process at a time.

It changes only worktrees and branches of cockpit. See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from cockpit.access.run_program import Finished, run_git
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import ProjectPaths
from cockpit.tasks.read_commit import read_commit

_QUIET = (
    *("-c", "commit.gpgSign=false", "-c", "merge.verifySignatures=false"),
    *("-c", "checkout.defaultRemote="),
)
_FALLBACK_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "cockpit"), ("EMAIL", "cockpit@localhost"))
}
_NO_IDENTITY = ("tell me who you are", "unable to auto-detect email", "empty ident name")
_IGNORED_NAMES = frozenset(
    [
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".coverage"),
        *("node_modules", ".venv", "venv", ".tox", ".nox", ".DS_Store", ".gradle", ".idea"),
    ]
)
"""Leftovers of programs that are not committed even where nothing ignores them."""
_LOCK_POLL_S = 0.05
_TIMEOUT_S = 300.0

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_KEPT_DIFFERENCES = 64
_KEPT_BYTES = 1_000_000


class WorktreeError(CockpitError):
    """A worktree cannot be created, merged or removed; the message says why and what to do."""

    code = "worktree"


def worktrees_folder(place: ProjectPaths) -> Path:
    """Return the folder of all worktrees; git ignores it."""
    return place.state / "worktrees"


async def try_git(cwd: Path, *args: str, stdin: bytes | None = None) -> Finished:
    """Run ``git ARGS`` in ``cwd``, with an identity of cockpit where the user has none."""
    ended = await run_git(*_QUIET, *args, cwd=cwd, timeout_s=_TIMEOUT_S, stdin=stdin)
    if not ended.ok and any(words in ended.error_text for words in _NO_IDENTITY):
        return await run_git(
            *_QUIET, *args, cwd=cwd, timeout_s=_TIMEOUT_S, stdin=stdin, env=_FALLBACK_IDENTITY
        )
    return ended


async def git(cwd: Path, *args: str, stdin: bytes | None = None) -> str:
    """As :func:`try_git`: its output. Raises :class:`WorktreeError` with git's own last words."""
    ended = await try_git(cwd, *args, stdin=stdin)
    if not ended.ok:
        raise WorktreeError(f"git {args[0]} in {cwd} failed: {error_line(ended)}")
    return ended.text


def error_line(ended: Finished) -> str:
    """Return why git failed, in one line of its own output."""
    if ended.timed_out:
        return f"it took longer than {_TIMEOUT_S:.0f} s"
    lines = (ended.error_text or ended.text).strip().splitlines()
    errors = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines
    return errors[-1][:300] if errors else f"exit {ended.code}"


async def commit_of(cwd: Path, revision: str) -> str | None:
    """The id of the commit that ``revision`` names, or None."""
    if (commit := read_commit(cwd, revision)) is not None:
        return commit
    ended = await try_git(cwd, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    return ended.text.strip() or None if ended.ok else None


async def is_ancestor(cwd: Path, older: str, newer: str) -> bool:
    """Whether ``older`` is ``newer`` or lies behind it."""
    first, second = read_commit(cwd, older) or older, read_commit(cwd, newer) or newer
    if first == second:
        return True
    if (first, second) in _ancestries:
        return True
    ended = await try_git(cwd, "merge-base", "--is-ancestor", first, second)
    if ended.ok and _COMMIT.fullmatch(first) and _COMMIT.fullmatch(second):
        _ancestries[first, second] = None  # it stays so
        if len(_ancestries) > _KEPT_DIFFERENCES:
            del _ancestries[next(iter(_ancestries))]
    return ended.ok


async def changed_files(cwd: Path, base: str, tip: str = "HEAD") -> tuple[str, ...]:
    """The files that differ between two commits; under both names where one was renamed."""
    listed = await diff_commits(cwd, base, tip, "--name-only", "--no-renames", "-z")
    return tuple(sorted(path for path in listed.decode("utf-8", "replace").split("\0") if path))


async def diff_commits(cwd: Path, base: str, tip: str, *options: str) -> bytes:
    """Return ``git diff OPTIONS base tip``. What two commits differ by never changes: it is kept.

    Raises :class:`WorktreeError`.
    """
    first, second = read_commit(cwd, base) or base, read_commit(cwd, tip) or tip
    certain = bool(_COMMIT.fullmatch(first) and _COMMIT.fullmatch(second))
    key = (first, second, *options)
    if certain and first == second:
        return b""
    if certain and key in _differences:
        return _differences[key]
    ended = await try_git(cwd, "diff", *options, first, second)
    if not ended.ok:
        raise WorktreeError(f"git diff in {cwd} failed: {error_line(ended)}")
    if certain and len(ended.stdout) <= _KEPT_BYTES:
        if len(_differences) >= _KEPT_DIFFERENCES:
            del _differences[next(iter(_differences))]
        _differences[key] = ended.stdout
    return ended.stdout


_differences: dict[tuple[str, ...], bytes] = {}
_ancestries: dict[tuple[str, str], None] = {}


async def uncommitted_files(cwd: Path) -> tuple[str, ...]:
    """The files in ``cwd`` that no commit holds as they are; what programs leave behind is not one."""
    return tuple(sorted(path for _, path in await _status_entries(cwd)))


async def _status_entries(cwd: Path) -> list[tuple[str, str]]:
    """As :func:`uncommitted_files`, each with git's two status letters."""
    listed = await git(
        cwd, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"
    )
    entries = []
    for entry in listed.split("\0"):
        state, path = entry[:2], entry[3:]
        left = state == "??" and (
            path.endswith(("/", ".pyc")) or not _IGNORED_NAMES.isdisjoint(path.split("/"))
        )
        if path and not left:
            entries.append((state, path))
    return entries


async def reset_index_flags(cwd: Path) -> None:
    """Let git look at every file of a tree of cockpit's own: what ran there can have told it not to."""
    listed = (await git(cwd, "ls-files", "-v", "-z")).split("\0")
    assumed = [entry[2:] for entry in listed if entry[:1].islower()]
    skipped = [entry[2:] for entry in listed if entry[:1] in ("s", "S")]
    if (
        skipped
        and (await try_git(cwd, "config", "--type=bool", "core.sparseCheckout")).text == "true\n"
    ):
        skipped = []  # files that the user keeps off the disk
    for flag, paths in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)):
        if paths:
            named = "\0".join(paths).encode("utf-8", "surrogateescape")
            await git(cwd, "update-index", flag, "-z", "--stdin", stdin=named)


async def commit_all(cwd: Path, message: str) -> tuple[str, ...]:
    """Commit what is not; returns the files (none: there was nothing)."""
    await reset_index_flags(cwd)
    entries = await _status_entries(cwd)
    if not entries:
        return ()
    paths = tuple(sorted(path for _, path in entries))
    # What is staged as a whole is there already, and git knows no more of a file that is to go.
    unstaged = [path for state, path in entries if state[1] != " "]
    if unstaged:
        listed = "\0".join(sorted(unstaged)).encode("utf-8", "surrogateescape")
        await git(
            cwd, "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=listed
        )
    staged = await try_git(cwd, "diff", "--cached", "--quiet")
    if staged.code == 0:
        return ()
    text = printable(message).encode()
    await git(cwd, "commit", "--quiet", "--cleanup=verbatim", "--file=-", stdin=text)
    return paths


def printable(message: str) -> str:
    """A commit's message without what a terminal would obey: a model wrote parts of it."""
    return "".join(letter for letter in message if letter == "\n" or letter.isprintable())


async def discard_changes(cwd: Path) -> None:
    """Let the tree be what its last commit says; what git ignores stays."""
    if await uncommitted_files(cwd):
        await git(cwd, "reset", "--quiet", "--hard")
        await git(cwd, "clean", "--quiet", "--force", "-d")


async def restore_files(cwd: Path, commit: str, paths: Sequence[str]) -> None:
    """Let these files be what they were in ``commit``; those that it does not have are removed."""
    for path in paths:
        if (await try_git(cwd, "cat-file", "-e", f"{commit}:{path}")).ok:
            await git(cwd, "checkout", "--quiet", commit, "--", path)
        else:
            await git(cwd, "rm", "--quiet", "--force", "--ignore-unmatch", "--", path)
            gone = cwd / path
            if gone.is_file() or gone.is_symlink():
                gone.unlink()


@asynccontextmanager
async def worktree_lock(place: ProjectPaths) -> AsyncIterator[None]:
    """Hold the lock for creating and merging worktrees, against this and other processes.

    The lock is the kernel's: it ends with its process, however that ends.
    """
    worktrees_folder(place).mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(
        worktrees_folder(place) / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(handle)
