"""Git for worktrees: without signatures, and one process at a time.

It changes only worktrees and branches of cockpit. See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

from msgspec import Struct

from cockpit.access.run_program import Finished, run_git
from cockpit.core.errors import CockpitError, MachineFault, read_machine_fault
from cockpit.core.project_paths import ProjectPaths

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
GENERATED_NAMES = frozenset(
    [
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".coverage"),
        *("node_modules", ".venv", "venv", ".tox", ".nox", ".DS_Store", ".gradle", ".idea"),
    ]
)
"""Leftovers of programs that are not committed even where nothing ignores them."""
_LOCK_POLL_S = 0.05
_TIMEOUT_S = 300.0

MOST_PATCH = 256 * 1024
"""Bytes of a patch that are kept; roles are shown fewer."""


class WorktreeError(CockpitError):
    """A worktree cannot be created, merged or removed; the message says why and what to do."""

    code = "worktree"


def worktrees_folder(place: ProjectPaths) -> Path:
    """Return the folder of all worktrees, outside the checkout."""
    return place.state / "worktrees"


async def try_git(cwd: Path, *args: str, stdin: bytes | None = None) -> Finished:
    """Run ``git ARGS`` in ``cwd``, with an identity of cockpit where the user has none.

    Raises :class:`MachineFault` where the machine had no room for it.
    """
    ended = await run_git(*_QUIET, *args, cwd=cwd, timeout_s=_TIMEOUT_S, stdin=stdin)
    if not ended.ok and any(words in ended.error_text for words in _NO_IDENTITY):
        ended = await run_git(
            *_QUIET, *args, cwd=cwd, timeout_s=_TIMEOUT_S, stdin=stdin, env=_FALLBACK_IDENTITY
        )
    _refuse_fault(ended, args)
    return ended


def _refuse_fault(ended: Finished, args: Sequence[str]) -> None:
    """Raise :class:`MachineFault` where git failed by the machine: its answer says nothing then."""
    if not ended.ok and read_machine_fault(ended.error_text):
        raise MachineFault(f"git {_verb(args)} failed: {ended.reason}. Make room, then resume.")


async def git(cwd: Path, *args: str, stdin: bytes | None = None) -> str:
    """As :func:`try_git`: its output. Raises :class:`WorktreeError` with git's own last words."""
    ended = await try_git(cwd, *args, stdin=stdin)
    if not ended.ok:
        raise WorktreeError(f"git {args[0]} in {cwd} failed: {ended.reason}")
    return ended.text


async def shared_git(cwd: Path, *args: str) -> str:
    """Run git with a repository that the user has named, on another machine or in another folder.

    Raises :class:`WorktreeError`.
    """
    ended = await run_git(
        *_QUIET, *args, cwd=cwd, timeout_s=_TIMEOUT_S, env={"GIT_PROTOCOL_FROM_USER": "1"}
    )
    _refuse_fault(ended, args)
    if not ended.ok:
        raise WorktreeError(f"git {_verb(args)} failed: {ended.reason}")
    return ended.text


def _verb(args: Sequence[str]) -> str:
    return next((word for word in args if not word.startswith("-")), "")


async def commit_of(cwd: Path, revision: str) -> str | None:
    """The id of the commit that ``revision`` names, or None."""
    ended = await try_git(cwd, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    return ended.text.strip() or None if ended.ok else None


async def is_ancestor(cwd: Path, older: str, newer: str) -> bool:
    """Whether ``older`` is ``newer`` or lies behind it."""
    return (await try_git(cwd, "merge-base", "--is-ancestor", older, newer)).ok


class CommitDifference(Struct, frozen=True):
    """How two commits differ."""

    paths: tuple[str, ...]
    """The files as they are named in the second commit, in git's order."""
    names: tuple[str, ...]
    """The files, sorted, under both names where one was renamed."""
    patch: bytes
    """The output of ``git diff``, cut after :data:`MOST_PATCH` bytes."""


async def changed_files(cwd: Path, base: str, tip: str = "HEAD") -> tuple[str, ...]:
    """The files that differ between two commits; under both names where one was renamed."""
    return (await compare_commits(cwd, base, tip)).names


async def compare_commits(cwd: Path, base: str, tip: str = "HEAD") -> CommitDifference:
    """Compare two commits. Raises :class:`WorktreeError`."""
    ended = await try_git(cwd, "diff", "--raw", "--patch", "-z", base, tip)
    entries, end, patch = ended.stdout.partition(b"\0\0")
    whole = ended.ok or bool(ended.truncated and end)  # the list of files is, at least
    if not whole:
        raise WorktreeError(f"git diff in {cwd} failed: {ended.reason}")
    return CommitDifference(*_parse_entries(entries), patch[:MOST_PATCH])


def _parse_entries(entries: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parse the entries of ``git diff --raw -z`` into ``paths`` and ``names`` of a difference."""
    text = entries.rstrip(b"\0").decode("utf-8", "backslashreplace")
    fields = iter(text.split("\0") if text else ())
    paths, names = [], set()
    for field in fields:
        path = next(fields)
        names.add(path)
        if field.rpartition(" ")[2].startswith("R"):
            path = next(fields)
            names.add(path)
        paths.append(path)
    return tuple(paths), tuple(sorted(names))


async def uncommitted_files(cwd: Path) -> tuple[str, ...]:
    """The files in ``cwd`` that no commit holds as they are; what programs leave behind is not one."""
    return tuple(sorted(show_name(path) for _, path in await _status_entries(cwd)))


def show_name(path: str) -> str:
    """Return a file's name as text: to git it is bytes, and those that are no UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


async def _status_entries(cwd: Path) -> list[tuple[str, str]]:
    """As :func:`uncommitted_files`, each with git's two status letters."""
    listed = await _list_names(
        cwd, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"
    )
    entries = []
    for entry in listed:
        state, path = entry[:2], entry[3:]
        left = state == "??" and (
            path.endswith(("/", ".pyc")) or not GENERATED_NAMES.isdisjoint(path.split("/"))
        )
        if path and not left:
            entries.append((state, path))
    return entries


async def _list_names(cwd: Path, *words: str) -> list[str]:
    """Return git's output of names that end with NUL. Raises :class:`WorktreeError`."""
    ended = await try_git(cwd, *words)
    if not ended.ok:
        raise WorktreeError(f"git {words[0]} in {cwd} failed: {ended.reason}")
    return os.fsdecode(ended.stdout).split("\0")


async def reset_index_flags(cwd: Path) -> None:
    """Let git look at every file of a tree of cockpit's own: what ran there can have told it not to."""
    listed = await _list_names(cwd, "ls-files", "-v", "-z")
    assumed = [entry[2:] for entry in listed if entry[:1].islower()]
    skipped = [entry[2:] for entry in listed if entry[:1] in ("s", "S")]
    question = ("config", "--type=bool", "core.sparseCheckout")
    if skipped and (await try_git(cwd, *question)).text == "true\n":
        skipped = []  # files that the user keeps off the disk
    for flag, paths in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)):
        if paths:
            named = "\0".join(paths).encode("utf-8", "surrogateescape")
            await git(cwd, "update-index", flag, "-z", "--stdin", stdin=named)


async def commit_all(cwd: Path, message: str, *, author: str = "") -> tuple[str, ...]:
    """Commit what is not; returns the files (none: there was nothing).

    ``author`` is ``NAME <EMAIL>``; without it the one who commits.
    """
    await reset_index_flags(cwd)
    entries = await _status_entries(cwd)
    if not entries:
        return ()
    paths = tuple(sorted(show_name(path) for _, path in entries))
    # What is staged as a whole is there already, and git knows no more of a file that is to go.
    unstaged = [path for state, path in entries if state[1] != " "]
    if unstaged:
        listed = "\0".join(sorted(unstaged)).encode("utf-8", "surrogateescape")
        await git(
            cwd, "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=listed
        )
    text = printable(message).encode()
    by = (f"--author={author}",) if author else ()
    words = ("commit", "--quiet", "--cleanup=verbatim", "--file=-", *by)
    ended = await try_git(cwd, *words, stdin=text)
    if ended.ok:
        return paths
    # Files that only looked changed leave nothing to commit, which git reports as an error.
    if (await try_git(cwd, "diff", "--cached", "--quiet")).code == 0:
        return ()
    raise WorktreeError(f"git commit in {cwd} failed: {ended.reason}")


def printable(message: str) -> str:
    """A commit's message without what a terminal would obey: a model wrote parts of it."""
    return "".join(letter for letter in message if letter == "\n" or letter.isprintable())


async def discard_changes(cwd: Path) -> None:
    """Let the tree be what its last commit says; what git ignores stays."""
    if await uncommitted_files(cwd):
        # In this order: on a full disk git has room to write only once something is removed.
        await git(cwd, "clean", "--quiet", "--force", "-d")
        await git(cwd, "reset", "--quiet", "--hard")


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


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, asyncio.Lock]] = WeakKeyDictionary()
"""Who is next for the lock of a folder, within one event loop."""


@asynccontextmanager
async def worktree_lock(place: ProjectPaths) -> AsyncIterator[None]:
    """Hold the lock for creating and merging worktrees, against this and other processes.

    The lock is the kernel's: it ends with its process, however that ends. Within an event loop the next one
    in line asks for it, the others sleep until it is their turn: a thousand tasks that want it cost what one
    does each.
    """
    folder = worktrees_folder(place)
    turns = _turns.setdefault(asyncio.get_running_loop(), {})
    async with turns.setdefault(folder, asyncio.Lock()):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
