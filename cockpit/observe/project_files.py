"""The files of a project and their contents, on disk or at a revision.

On disk these are the files that git tracks or would offer to track; without git, all files below the
root except in the usual generated directories. Symbolic links, submodules and unreadable files are
left out. Files are sorted by path, so that output is the same everywhere.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.access.confined_paths import PathRefused
from cockpit.access.run_program import ProgramMissing, run_git
from cockpit.core.secrets import mask_key_blocks
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed

MAX_FILES = 100_000
"""The most files of a project that are listed."""

MAX_FILE_BYTES = 2_000_000
"""Larger files are not searched, and only some of their lines can be read."""

_CHUNK_BYTES = 16_000_000
_LIST_BYTES = 64_000_000
_FEW_FILES = 50
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


class FileEntry(Struct, frozen=True):
    """One file. ``oid`` is its blob at the revision, empty on disk; ``size`` is in bytes."""

    path: str
    size: int
    oid: str = ""


async def list_files(
    ground: ProjectSnapshot, under: str = ".", *, keep: Callable[[str], bool] | None = None
) -> list[FileEntry]:
    """List the files below a directory, sorted by path; ``keep`` says of a path whether it is wanted.

    Raises :class:`SourceFailed` for a missing directory, ``PathRefused`` for one outside the project.
    """
    directory = ground.confined.relative(under)
    if ground.rev is not None:
        listed = await _at_revision(ground, ground.rev, directory)
        return [entry for entry in listed if keep is None or keep(entry.path)]
    if not ground.confined.inside(directory).is_dir():
        raise SourceFailed(f"there is no directory {directory!r} in the project")
    done = await run_git(
        "ls-files", "-z", "-c", "-o", "--exclude-standard", "--", directory,
        cwd=ground.root, max_bytes=_LIST_BYTES,
    )  # fmt: skip
    if done.ok:
        paths = {path for path in _decoded(done.stdout).split("\0") if path}
        wanted = paths if keep is None else set(filter(keep, paths))
        if len(wanted) <= _FEW_FILES:  # a change of threads takes longer
            return _stat(ground, wanted)
        return await asyncio.to_thread(_stat, ground, wanted)
    if done.timed_out:
        raise SourceFailed(
            "git took too long to list the files: the project is very large, or a pipe stands where git reads"
            " a file (such as .gitignore)"
        )
    if done.truncated:
        raise SourceFailed("the project has too many files to list")
    return await asyncio.to_thread(_walk, ground, directory, keep)


async def list_tracked(ground: ProjectSnapshot) -> list[str]:
    """List the paths that git tracks, at the revision or in the checkout, sorted; no file is looked at.

    Without git, those of all files. Raises :class:`SourceFailed`, and what ``run_git`` raises.
    """
    listing = "ls-files -z -c" if ground.rev is None else f"ls-tree -r -z --name-only {ground.rev}"
    try:
        done = await run_git(*listing.split(), cwd=ground.root, max_bytes=_LIST_BYTES)
    except ProgramMissing:
        done = None
    if done is not None and done.ok:
        paths = {path for path in _decoded(done.stdout).split("\0") if path}
    elif done is not None and (done.timed_out or done.truncated or ground.rev is not None):
        raise SourceFailed(f"the files cannot be listed: {done.reason}")
    else:
        paths = await asyncio.to_thread(_walk_paths, ground.root, ".")
    return sorted(paths, key=os.fsencode)[:MAX_FILES]


async def list_files_with(ground: ProjectSnapshot, text: str) -> list[FileEntry]:
    """List the files that contain ``text``, and perhaps some that do not, sorted by path.

    git reads the files: it does so with all processors, and before any of their names is looked at here.
    """
    where = () if ground.rev is None else (ground.rev,)
    untracked = ("--untracked",) if ground.rev is None else ()
    done = await run_git(
        "grep", "-z", "-l", "-a", "-F", "--no-color", "--no-recurse-submodules", *untracked,
        "-e", text, *where, cwd=ground.root, max_bytes=_LIST_BYTES,
    )  # fmt: skip
    if done.code not in (0, 1) or done.timed_out or done.truncated:
        return await list_files(ground)
    names = {name for name in _decoded(done.stdout).split("\0") if name}
    if ground.rev is None:
        return await asyncio.to_thread(_stat, ground, names)
    if not names:
        return []
    listed = await list_files(ground)
    return [entry for entry in listed if f"{ground.rev}:{entry.path}" in names]


async def find_blob(ground: ProjectSnapshot, rev: str, path: str) -> FileEntry:
    """Find a file at a revision. Raises :class:`SourceFailed` if it is missing or not a regular file."""
    spelled = ground.confined.relative(path)
    rows = await _ls_tree(ground, rev, spelled)
    if not rows:
        raise SourceFailed(f"there is no file {spelled!r} at {rev[:12]}")
    mode, oid, size, _ = rows[0]
    if mode not in _REGULAR:
        kind = {"120000": "a symbolic link", "160000": "a submodule"}.get(mode, "a directory")
        raise SourceFailed(f"{spelled!r} is {kind} at {rev[:12]}, not a regular file")
    return FileEntry(spelled, size, oid)


async def read_blob(ground: ProjectSnapshot, entry: FileEntry, most: int) -> bytes:
    """Read a blob of at most ``most`` bytes."""
    done = await run_git("cat-file", "blob", entry.oid, cwd=ground.root, max_bytes=most)
    if not done.ok:
        raise SourceFailed(f"{entry.path!r} could not be read: {done.reason}")
    return done.stdout


async def read_contents(
    ground: ProjectSnapshot, entries: Sequence[FileEntry]
) -> AsyncIterator[list[tuple[str, bytes]]]:
    """Read files of up to :data:`MAX_FILE_BYTES`, in order, in chunks of about 16 MB.

    Files that are gone or unreadable are left out; private key blocks are masked.
    """
    chunk: list[FileEntry] = []
    size = 0
    for entry in entries:
        if entry.size > MAX_FILE_BYTES:
            continue
        if chunk and size + entry.size > _CHUNK_BYTES:
            yield await _read_chunk(ground, chunk)
            chunk, size = [], 0
        chunk.append(entry)
        size += entry.size
    if chunk:
        yield await _read_chunk(ground, chunk)


async def _at_revision(ground: ProjectSnapshot, rev: str, directory: str) -> list[FileEntry]:
    rows = await _ls_tree(ground, rev, directory, recurse=True)
    if not rows and directory != ".":
        raise SourceFailed(f"there is no directory {directory!r} at {rev[:12]}")
    listed = [FileEntry(path, size, oid) for mode, oid, size, path in rows if mode in _REGULAR]
    return sorted(listed, key=_order)[:MAX_FILES]


async def _ls_tree(
    ground: ProjectSnapshot, rev: str, path: str, *, recurse: bool = False
) -> list[tuple[str, str, int, str]]:
    """Mode, object id, size (0 for what is not a blob) and path."""
    flags = ("-r",) if recurse else ()
    where = () if path == "." else ("--", path)
    done = await run_git(
        "ls-tree", "-z", "-l", *flags, rev, *where, cwd=ground.root, max_bytes=_LIST_BYTES
    )
    if not done.ok:
        raise SourceFailed(f"the files at {rev[:12]} cannot be listed: {done.reason}")
    rows: list[tuple[str, str, int, str]] = []
    for row in _decoded(done.stdout).split("\0"):
        meta, tab, name = row.partition("\t")
        if tab:
            mode, _, oid, size = meta.split()
            rows.append((mode, oid, int(size) if size.isdigit() else 0, name))
    return rows


async def _read_chunk(ground: ProjectSnapshot, chunk: list[FileEntry]) -> list[tuple[str, bytes]]:
    if chunk[0].oid:
        files = await _read_blobs(ground, chunk)
    else:
        files = await asyncio.to_thread(_read_files, ground, chunk)
    return [(path, _without_keys(content)) for path, content in files]


def _without_keys(content: bytes) -> bytes:
    """Mask private key blocks now: their single lines cannot be recognised later."""
    if b"PRIVATE KEY-----" not in content:
        return content
    text = content.decode("utf-8", "surrogateescape")
    return mask_key_blocks(text).encode("utf-8", "surrogateescape")


async def _read_blobs(ground: ProjectSnapshot, chunk: list[FileEntry]) -> list[tuple[str, bytes]]:
    stdin = "".join(f"{entry.oid}\n" for entry in chunk).encode()
    done = await run_git(
        "cat-file", "--batch", cwd=ground.root, stdin=stdin, timeout_s=60.0,
        max_bytes=sum(entry.size + 100 for entry in chunk),
    )  # fmt: skip
    if not done.ok:
        raise SourceFailed(f"files could not be read from git: {done.reason}")
    files: list[tuple[str, bytes]] = []
    at = 0
    for entry in chunk:
        line_end = done.stdout.index(b"\n", at)
        header = done.stdout[at:line_end].split()
        at = line_end + 1
        if len(header) == 3:
            size = int(header[2])
            files.append((entry.path, done.stdout[at : at + size]))
            at += size + 1
    return files


def _read_files(ground: ProjectSnapshot, chunk: list[FileEntry]) -> list[tuple[str, bytes]]:
    files: list[tuple[str, bytes]] = []
    for entry in chunk:
        try:
            with ground.confined.open_read(entry.path) as file:
                files.append((entry.path, file.read(MAX_FILE_BYTES + 1)))
        except (PathRefused, OSError):
            continue  # listed a moment ago, gone or unreadable now: not a file to search
    return files


def _stat(ground: ProjectSnapshot, paths: set[str]) -> list[FileEntry]:
    entries: list[FileEntry] = []
    for path in paths:
        try:
            status = os.lstat(ground.root / path)
        except OSError:
            continue  # tracked but deleted
        if stat.S_ISREG(status.st_mode):
            entries.append(FileEntry(path, status.st_size))
    return sorted(entries, key=_order)[:MAX_FILES]


def _walk(
    ground: ProjectSnapshot, directory: str, keep: Callable[[str], bool] | None = None
) -> list[FileEntry]:
    paths = _walk_paths(ground.root, directory)
    return _stat(ground, paths if keep is None else set(filter(keep, paths)))


def _walk_paths(root: Path, directory: str) -> set[str]:
    paths: set[str] = set()
    for place, folders, files in os.walk(root / directory):
        folders[:] = sorted(name for name in folders if name not in _GENERATED)
        below = Path(place).relative_to(root).as_posix()
        paths.update(name if below == "." else f"{below}/{name}" for name in files)
        if len(paths) >= MAX_FILES:
            break
    return paths


def _order(entry: FileEntry) -> bytes:
    return os.fsencode(entry.path)


def _decoded(output: bytes) -> str:
    return os.fsdecode(output)
