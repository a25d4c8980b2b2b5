"""Completions of ``@``: the project's files, listed once and searched off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice

from cockpit.access.run_program import run_git
from cockpit.core.project_paths import ProjectPaths

MAX_FILES = 50_000
"""The most files that are offered."""

_LIST_BYTES = 64_000_000


class FileCompletions:
    """The files that git tracks or would offer to track."""

    def __init__(self, place: ProjectPaths) -> None:
        self._place = place
        self._listing: asyncio.Task[list[tuple[str, str]]] | None = None

    async def warm(self) -> None:
        """List the files before anything is completed."""
        await self._list()

    async def find(self, text: str, most: int) -> list[str]:
        """Return paths that contain ``text``, whatever its case: those that start with it first, then
        short ones."""
        files = await self._list()
        return await asyncio.to_thread(_select, files, text.casefold(), most)

    async def _list(self) -> list[tuple[str, str]]:
        if self._listing is None:
            self._listing = asyncio.create_task(self._read())
        try:
            return await asyncio.shield(self._listing)
        except Exception:
            self._listing = None  # what failed now may succeed the next time
            raise

    async def _read(self) -> list[tuple[str, str]]:
        if not self._place.git:
            return []
        finished = await run_git(
            "ls-files", "-z", "--cached", "--others", "--exclude-standard",
            cwd=self._place.root, max_bytes=_LIST_BYTES,
        )  # fmt: skip
        return await asyncio.to_thread(_order, finished.text)


def _order(listed: str) -> list[tuple[str, str]]:
    """Each path and its caseless form, the shortest first and equally long ones by name."""
    paths = sorted([path for path in listed.split("\0") if path][:MAX_FILES])
    paths.sort(key=len)
    return [(path, path.casefold()) for path in paths]


def _select(files: list[tuple[str, str]], text: str, most: int) -> list[str]:
    def ranked() -> Iterator[str]:
        yield from (path for path, folded in files if folded.startswith(text))
        yield from (
            path for path, folded in files if text in folded and not folded.startswith(text)
        )

    return list(islice(ranked(), most))
