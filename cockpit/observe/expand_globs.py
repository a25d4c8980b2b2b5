"""``file:GLOB``: one item to approve, many files to read.

A glob matches only files that :mod:`.project_files` lists: it never reaches a file that git ignores, or
through a link that leads out. A file whose name is the glob's text is read as that file. See
``docs/reference/loop.md``.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from cockpit.access.confined_paths import PathRefused
from cockpit.observe.path_globs import matches_glob
from cockpit.observe.project_files import FileEntry, find_blob, list_files
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import ScopeItem

_SIGNS = frozenset("*?[")


async def match_glob(item: ScopeItem, ground: ProjectSnapshot) -> list[FileEntry] | None:
    """List the files that a ``file:`` glob matches; None for an item that is not a glob.

    Raises :class:`SourceFailed` if it matches none, and ``PathRefused`` if it leads out of the project.
    """
    if item.kind != "file" or not _SIGNS & set(item.ref):
        return None
    if await _is_file(item.ref, ground):
        return None
    ground.confined.relative(_fixed(item.ref))
    listed = await list_files(ground)
    files = await asyncio.to_thread(
        lambda: [entry for entry in listed if matches_glob(entry.path, item.ref)]
    )
    if not files:
        raise SourceFailed(f"no file of the project matches {item.ref!r}")
    return files


async def expand_item(item: ScopeItem, ground: ProjectSnapshot) -> list[ScopeItem]:
    """Expand an approved item to itself, or to the glob's files with its lines and level."""
    files = await match_glob(item, ground)
    return [item] if files is None else [replace(item, ref=entry.path) for entry in files]


async def _is_file(path: str, ground: ProjectSnapshot) -> bool:
    try:
        if ground.rev is not None:
            return bool(await find_blob(ground, ground.rev, path))
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
