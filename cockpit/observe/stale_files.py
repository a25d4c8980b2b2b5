"""Which granted files have changed on the disk since they were read: by their digests, nothing else.

Source: RFC-003 §10.1 (candidate jobs); design of Observe (refresh).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.access.confined_paths import PathRefused
from cockpit.observe.project_snapshot import Ground


@dataclass(frozen=True, slots=True)
class Read:
    """A granted item as it was read: the file's path and the SHA-256 of the whole file then."""

    item: str
    path: str
    sha256: str


async def stale(ground: Ground, known: Sequence[Read]) -> list[str]:
    """The items whose file holds something else now, in order. One that cannot be read is stale: to
    read it again says why."""
    return await asyncio.to_thread(_stale, ground, known)


def _stale(ground: Ground, known: Sequence[Read]) -> list[str]:
    now: dict[str, str] = {}
    for read in known:
        if read.path not in now:
            now[read.path] = _digest(ground, read.path)
    return [read.item for read in known if now[read.path] != read.sha256]


def _digest(ground: Ground, path: str) -> str:
    try:
        with ground.confined.open_read(path) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (PathRefused, OSError):
        return ""
