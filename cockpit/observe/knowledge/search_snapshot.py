"""Search a revision of the project, which no index on disk is of.

See ``docs/reference/knowledge.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.observe.knowledge.chunk_document import kind_of_file
from cockpit.observe.knowledge.index_store import KnowledgeIndex
from cockpit.observe.knowledge.passage import Passage
from cockpit.observe.knowledge.refresh_index import MAX_BYTES, is_document
from cockpit.observe.knowledge.search_index import search_passages
from cockpit.observe.project_files import list_files, read_contents

if TYPE_CHECKING:
    from cockpit.observe.project_snapshot import ProjectSnapshot

MAX_AT_REVISION = 2_000
"""Documents of a revision that are searched."""


async def find_in_snapshot(
    ground: ProjectSnapshot, query: str, *, kinds: Sequence[str], limit: int, threshold: float = 0.0
) -> tuple[Passage, ...]:
    """Search the documents of a snapshot by keywords, in an index that lives as long as the search.

    Raises ``SourceFailed`` where the files cannot be listed.
    """
    entries = [
        entry
        for entry in await list_files(ground)
        if is_document(entry.path) and entry.size <= MAX_BYTES and kind_of_file(entry.path) in kinds
    ]
    index = await asyncio.to_thread(KnowledgeIndex.open, None)
    try:
        async for files in read_contents(ground, entries[:MAX_AT_REVISION]):
            await asyncio.to_thread(_index_files, index, files)
        return await asyncio.to_thread(
            search_passages, index, query, kinds=kinds, limit=limit, threshold=threshold
        )
    finally:
        index.close()


def _index_files(index: KnowledgeIndex, files: Sequence[tuple[str, bytes]]) -> None:
    for path, content in files:
        kind = kind_of_file(path)
        if kind is not None and b"\0" not in content:
            index.put_document(kind, path, "", content.decode("utf-8", "replace"))
