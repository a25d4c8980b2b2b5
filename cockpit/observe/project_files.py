"""The files of a project: which there are, and what is in them, on the disk or at a revision.

On the disk these are the files that git tracks or would offer to track; without git, what lies under
the root apart from the usual generated directories. Symbolic links, submodules and unreadable files
are left out. Order is by path, so that output is the same everywhere.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cockpit.access.confined_paths import PathRefused
from cockpit.access.run_program import Finished, run_git
from cockpit.core.secrets import mask_key_blocks
from cockpit.observe.project_snapshot import Ground, SourceFailed

MAX_FILES = 100_000
"""Most files of a project that are listed."""

MAX_FILE_BYTES = 2_000_000
"""Files larger than this are not searched, and are read by lines only."""

_CHUNK_BYTES = 16_000_000
_LIST_BYTES = 64_000_000
_GENERATED = frozenset(
    {
        ".git",
        ".cockpit",
        ".hg",
        ".svn",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".venv",
        "venv",
        "__pycache__",
        "node_modules",
    }
)
_REGULAR = frozenset({"100644", "100755", "100664"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One file. ``oid`` is its blob at the revision, empty on the disk. ``size`` is in bytes."""

    path: str
    size: int
    oid: str = ""


async def is_repository(ground: Ground) -> bool:
    """Whether the project lies in a git work tree."""
    done = await run_git("rev-parse", "--is-inside-work-tree", cwd=ground.root)
    return done.ok and done.text.strip() == "true"


async def entries(ground: Ground, under: str = ".") -> list[Entry]:
    """The files under a directory, sorted by path.

    Raises :class:`SourceFailed` for a directory that is not there, ``PathRefused`` for one outside.
    """
    directory = ground.confined.relative(under)
    if ground.rev is not None:
        return await _at_revision(ground, ground.rev, directory)
    real = ground.confined.inside(directory)
    if not await asyncio.to_thread(real.is_dir):
        raise SourceFailed(f"there is no directory {directory!r} in the project")
    listed = await run_git(
        "ls-files", "-z", "-c", "-o", "--exclude-standard", "--", directory,
        cwd=ground.root, max_bytes=_LIST_BYTES,
    )  # fmt: skip
    if listed.ok:
        paths = {path for path in _decoded(listed.stdout).split("\0") if path}
        return await asyncio.to_thread(_stat, ground, paths)
    if listed.truncated or listed.timed_out:
        raise SourceFailed("the project has too many files to list")
    return await asyncio.to_thread(_walk, ground, directory)


async def blob(ground: Ground, rev: str, path: str) -> Entry:
    """The file at a revision. Raises :class:`SourceFailed` when it is none that can be read."""
    spelled = ground.confined.relative(path)
    found = await _ls_tree(ground, rev, spelled)
    if not found:
        raise SourceFailed(f"there is no file {spelled!r} at {rev[:12]}")
    mode, oid, size, _ = found[0]
    if mode not in _REGULAR:
        kind = {"120000": "a symbolic link", "160000": "a submodule"}.get(mode, "a directory")
        raise SourceFailed(f"{spelled!r} is {kind} at {rev[:12]}, not a regular file")
    return Entry(spelled, size, oid)


async def read_blob(ground: Ground, entry: Entry, most: int) -> bytes:
    """The bytes of a blob of at most ``most`` bytes."""
    done = await run_git("cat-file", "blob", entry.oid, cwd=ground.root, max_bytes=most)
    if not done.ok:
        raise SourceFailed(f"{entry.path!r} could not be read: {reason(done)}")
    return done.stdout


async def contents(
    ground: Ground, wanted: Sequence[Entry]
) -> AsyncIterator[list[tuple[str, bytes]]]:
    """The bytes of files of up to :data:`MAX_FILE_BYTES`, in chunks of about 16 MB, in order.

    Files that went away or cannot be read are left out; private key blocks are masked.
    """
    chunk: list[Entry] = []
    size = 0
    for entry in wanted:
        if entry.size > MAX_FILE_BYTES:
            continue
        if chunk and size + entry.size > _CHUNK_BYTES:
            yield await _read_chunk(ground, chunk)
            chunk, size = [], 0
        chunk.append(entry)
        size += entry.size
    if chunk:
        yield await _read_chunk(ground, chunk)


def reason(done: Finished) -> str:
    """Why a git command failed, in one line."""
    if done.timed_out:
        return "git took too long"
    if done.truncated:
        return "its output is too large"
    lines = [line.strip() for line in done.error_text.splitlines() if line.strip()]
    text = next((line for line in lines if line.startswith(("fatal:", "error:"))), "")
    return (text or (lines[-1] if lines else f"git ended with {done.code}")).split(": ", 1)[-1]


async def _at_revision(ground: Ground, rev: str, directory: str) -> list[Entry]:
    found = await _ls_tree(ground, rev, directory, recurse=True)
    if not found and directory != ".":
        raise SourceFailed(f"there is no directory {directory!r} at {rev[:12]}")
    listed = [Entry(path, size, oid) for mode, oid, size, path in found if mode in _REGULAR]
    return sorted(listed, key=_order)[:MAX_FILES]


async def _ls_tree(
    ground: Ground, rev: str, path: str, *, recurse: bool = False
) -> list[tuple[str, str, int, str]]:
    """Mode, object id, size (0 for what is no blob) and path."""
    flags = ("-r",) if recurse else ()
    where = () if path == "." else ("--", path)
    done = await run_git(
        "ls-tree", "-z", "-l", *flags, rev, *where, cwd=ground.root, max_bytes=_LIST_BYTES
    )
    if not done.ok:
        raise SourceFailed(f"the files at {rev[:12]} cannot be listed: {reason(done)}")
    found: list[tuple[str, str, int, str]] = []
    for row in _decoded(done.stdout).split("\0"):
        meta, tab, name = row.partition("\t")
        if tab:
            mode, _, oid, size = meta.split()
            found.append((mode, oid, int(size) if size.isdigit() else 0, name))
    return found


async def _read_chunk(ground: Ground, chunk: list[Entry]) -> list[tuple[str, bytes]]:
    if chunk[0].oid:
        found = await _read_blobs(ground, chunk)
    else:
        found = await asyncio.to_thread(_read_files, ground, chunk)
    return [(path, _without_keys(content)) for path, content in found]


def _without_keys(content: bytes) -> bytes:
    """Single lines of a private key could not be told from other text later."""
    if b"PRIVATE KEY-----" not in content:
        return content
    text = content.decode("utf-8", "surrogateescape")
    return mask_key_blocks(text).encode("utf-8", "surrogateescape")


async def _read_blobs(ground: Ground, chunk: list[Entry]) -> list[tuple[str, bytes]]:
    stdin = "".join(f"{entry.oid}\n" for entry in chunk).encode()
    done = await run_git(
        "cat-file", "--batch", cwd=ground.root, stdin=stdin, timeout_s=60.0,
        max_bytes=sum(entry.size + 100 for entry in chunk),
    )  # fmt: skip
    if not done.ok:
        raise SourceFailed(f"files could not be read from git: {reason(done)}")
    found: list[tuple[str, bytes]] = []
    at = 0
    for entry in chunk:
        line_end = done.stdout.index(b"\n", at)
        header = done.stdout[at:line_end].split()
        at = line_end + 1
        if len(header) == 3:
            size = int(header[2])
            found.append((entry.path, done.stdout[at : at + size]))
            at += size + 1
    return found


def _read_files(ground: Ground, chunk: list[Entry]) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in chunk:
        try:
            with ground.confined.open_read(entry.path) as file:
                found.append((entry.path, file.read(MAX_FILE_BYTES + 1)))
        except (PathRefused, OSError):
            continue  # listed a moment ago, gone or unreadable now: not a file to search
    return found


def _stat(ground: Ground, paths: set[str]) -> list[Entry]:
    found: list[Entry] = []
    for path in paths:
        try:
            status = os.lstat(ground.root / path)
        except OSError:
            continue  # tracked but deleted
        if stat.S_ISREG(status.st_mode):
            found.append(Entry(path, status.st_size))
    return sorted(found, key=_order)[:MAX_FILES]


def _walk(ground: Ground, directory: str) -> list[Entry]:
    paths: set[str] = set()
    for place, folders, files in os.walk(ground.root / directory):
        folders[:] = sorted(name for name in folders if name not in _GENERATED)
        below = Path(place).relative_to(ground.root).as_posix()
        paths.update(name if below == "." else f"{below}/{name}" for name in files)
        if len(paths) >= MAX_FILES:
            break
    return _stat(ground, paths)


def _order(entry: Entry) -> bytes:
    return os.fsencode(entry.path)


def _decoded(output: bytes) -> str:
    return os.fsdecode(output)
