"""Granted files that changed on disk since they were read, by their digests.

See ``docs/reference/loop.md``.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

from msgspec import Struct

from cockpit.access.confined_paths import PathRefused
from cockpit.observe.project_snapshot import ProjectSnapshot


class FileRead(Struct, frozen=True):
    """A granted item, with the file's path and the SHA-256 of the whole file when it was read."""

    item: str
    path: str
    sha256: str


async def find_stale(ground: ProjectSnapshot, reads: Sequence[FileRead]) -> list[str]:
    """List the items whose file has other content now, in order.

    A file that cannot be read counts as stale: reading it again reports the error.
    """
    return await asyncio.to_thread(_stale, ground, reads)


def _stale(ground: ProjectSnapshot, reads: Sequence[FileRead]) -> list[str]:
    now: dict[str, str] = {}
    for read in reads:
        if read.path not in now:
            now[read.path] = _digest(ground, read.path)
    return [read.item for read in reads if now[read.path] != read.sha256]


def _digest(ground: ProjectSnapshot, path: str) -> str:
    try:
        with ground.confined.open_read(path) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (PathRefused, OSError):
        return ""
