"""``file:GLOB``: one item that a person approves, many files that are read.

Only files that the project lists (:mod:`.listing`) are meant: what git ignores is never reached by a
glob, and no link leads out. A file that is called like the glob is itself.
Source: RFC-003 §10.1 (candidate jobs).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from cockpit.access.confined_paths import PathRefused
from cockpit.observe.path_globs import matches
from cockpit.observe.project_files import Entry, blob, entries
from cockpit.observe.project_snapshot import Ground, SourceFailed
from cockpit.observe.scope_items import ScopeItem

_SIGNS = frozenset("*?[")


async def meant(item: ScopeItem, ground: Ground) -> list[Entry] | None:
    """The files that a ``file:`` glob means, by path; None for an item that is no glob.

    Raises :class:`SourceFailed` where it means none, and ``PathRefused`` for one that leads out.
    """
    if item.kind != "file" or not _SIGNS & set(item.ref):
        return None
    if await _is_file(item.ref, ground):
        return None
    ground.confined.relative(_fixed(item.ref))
    found = [entry for entry in await entries(ground) if matches(entry.path, item.ref)]
    if not found:
        raise SourceFailed(f"no file of the project matches {item.ref!r}")
    return found


async def expand(item: ScopeItem, ground: Ground) -> list[ScopeItem]:
    """The items that an approved item stands for: itself, or a glob's files with its lines and level."""
    found = await meant(item, ground)
    return [item] if found is None else [replace(item, ref=entry.path) for entry in found]


async def _is_file(path: str, ground: Ground) -> bool:
    try:
        if ground.rev is not None:
            return bool(await blob(ground, ground.rev, path))
        return await asyncio.to_thread(ground.confined.inside(path).is_file)
    except (SourceFailed, PathRefused):
        return False


def _fixed(glob: str) -> str:
    """The directories before the first wildcard."""
    parts = glob.split("/")
    fixed = [
        part for at, part in enumerate(parts) if not any(_SIGNS & set(p) for p in parts[: at + 1])
    ]
    return "/".join(fixed) or "."
