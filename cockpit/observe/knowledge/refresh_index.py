"""Bring the index up to date with the project's files: what is new, changed or gone since the last time.

Files are compared by size and times, then by digest: a file that only looks changed is not cut again. Paths
are confined to the project, and nothing that git ignores is read. See ``docs/reference/knowledge.md``.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.access.secret_files import is_sensitive
from cockpit.core.project.project_trust import PROJECT_SKILLS
from cockpit.observe.knowledge.chunk_document import kind_of_file
from cockpit.observe.knowledge.index_store import (
    KnowledgeIndex,
    prepare_document,
)
from cockpit.observe.knowledge.passage import FILE_KINDS
from cockpit.observe.project_files import list_files
from cockpit.observe.project_snapshot import ProjectSnapshot

MAX_DOCUMENTS = 20_000
"""Files of one project that are indexed, the first by path."""
MAX_BYTES = 1_000_000
"""Larger files are not indexed."""
STEP_S = 0.002
"""Seconds of work after which a refresh lets other threads go first."""
SHORT_REST_S = 0.0002
"""Seconds for which it does."""
LONG_REST_S = 0.004
"""Seconds for which it does beside a screen, whose frames need the interpreter several times each."""
_FRESH_NS = 100_000_000
"""A file that changed this shortly before it was read is read again: its times may not change once more."""


class StoredDocument(Struct, frozen=True):
    """A document that is not a file: a note, a handoff, or the lines of a skill."""

    kind: str
    ref: str
    title: str
    text: str


class Refreshed(Struct, frozen=True):
    """What a refresh did."""

    looked_at: int = 0
    """Files that could be documents."""
    changed: int = 0
    """Documents that were indexed, newly or again."""
    dropped: int = 0
    is_complete: bool = True
    """False when the project has more documents than are indexed."""


def is_document(path: str) -> bool:
    """Whether a file of this name is indexed. Skills are not: a session gets those that its task needs."""
    is_of_skill = any(path.startswith(f"{folder}/") for folder in PROJECT_SKILLS)
    return kind_of_file(path) is not None and not is_of_skill and not is_sensitive(path)


async def refresh_files(
    index: KnowledgeIndex, ground: ProjectSnapshot, *, rest_s: float = SHORT_REST_S
) -> Refreshed:
    """Index what changed in the whole project, in a thread and in small steps with rests in between.

    Raises ``SourceFailed`` where the files cannot be listed, and
    :class:`~cockpit.observe.knowledge.index_store.IndexUnusable`.
    """
    # Before the files: what another process adds to both meanwhile is then not taken for gone.
    indexed = await asyncio.to_thread(index.list_stamps, FILE_KINDS)
    listed = await list_files(ground, keep=is_document)
    paths = [entry.path for entry in listed if entry.size <= MAX_BYTES]
    return await asyncio.to_thread(_refresh, index, ground.confined, indexed, paths, rest_s)


def _refresh(
    index: KnowledgeIndex,
    confined: Confined,
    indexed: Mapping[tuple[str, str], str],
    paths: Sequence[str],
    rest_s: float,
) -> Refreshed:
    """Index what changed among ``paths``, all documents of the project, since ``indexed``. Blocks."""
    within = paths[:MAX_DOCUMENTS]
    current = set(within)
    gone = [key for key in indexed if key[1] not in current]
    changed = 0
    pause_at = time.monotonic() + STEP_S
    for path in within:
        outcome = _index_file(index, confined, path, indexed)
        changed += bool(outcome)
        if outcome is None:
            for kind in FILE_KINDS:
                if (kind, path) in indexed:
                    index.drop_document(kind, path)
        if time.monotonic() >= pause_at:
            time.sleep(rest_s)  # the event loop's thread is waiting for the interpreter
            pause_at = time.monotonic() + STEP_S
    dropped = sum(index.drop_document(*key) for key in gone)
    return Refreshed(len(paths), changed, dropped, len(within) == len(paths))


def refresh_paths(
    index: KnowledgeIndex, ground: ProjectSnapshot, paths: Iterable[str]
) -> Refreshed:
    """Index again the files at ``paths``, as a watcher reports them. Blocks.

    The caller leaves out files that git ignores. Raises
    :class:`~cockpit.observe.knowledge.index_store.IndexUnusable`.
    """
    named = sorted({path for path in paths if is_document(path)})
    changed = dropped = 0
    for path in named:
        outcome = _index_file(index, ground.confined, path, {})
        changed += outcome is True
        dropped += outcome is None and any(index.drop_document(kind, path) for kind in FILE_KINDS)
    return Refreshed(len(named), changed, dropped)


def refresh_stored(
    index: KnowledgeIndex, kinds: Sequence[str], documents: Iterable[StoredDocument]
) -> Refreshed:
    """Make the documents of ``kinds`` exactly these. Blocks."""
    indexed = index.list_digests(kinds)
    current: set[tuple[str, str]] = set()
    changed = 0
    for document in documents:
        ready = prepare_document(document.kind, document.ref, document.title, document.text)
        current.add(ready.key)
        if indexed.get(ready.key) != ready.digest:
            changed += index.put_ready(ready, "stored")
    dropped = sum(index.drop_document(*key) for key in indexed if key not in current)
    return Refreshed(len(current), changed, dropped)


def _index_file(
    index: KnowledgeIndex,
    confined: Confined,
    path: str,
    indexed: Mapping[tuple[str, str], str],
) -> bool | None:
    """Index a file; returns whether its text changed, None for one that is not a document (any more)."""
    kind = kind_of_file(path)
    if kind is None:
        return None
    try:
        status = os.lstat(confined.root / path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        stamp = f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"
        if indexed.get((kind, path)) == stamp:
            return False
        with confined.open_read(path) as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, PathRefused):
        return None  # gone or unreadable since it was listed: no document now
    if b"\0" in content or len(content) > MAX_BYTES:
        return None
    if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) < _FRESH_NS:
        stamp = ""
    return index.put_document(kind, path, "", content.decode("utf-8", "replace"), stamp=stamp)
