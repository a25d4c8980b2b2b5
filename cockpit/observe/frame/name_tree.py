"""The names of a project's files in a few lines: depth two, and the largest folders below.

See ``docs/reference/loop.md``, the frame.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from cockpit.access.secret_files import is_sensitive
from cockpit.core.secrets import mask
from cockpit.core.text import pluralize
from cockpit.observe.count_tokens import count_tokens
from cockpit.observe.preview_cost import printable_path

_LONGEST_NAME = 60
"""Characters of a name."""
_ROOT_NAMES, _NAMES, _DEEP_NAMES = 40, 16, 12
"""Names of one line: of the root, of its folders, and of those below them."""
_MOST_MISFITS = 6
"""Folders in a row that have no room, after which no smaller one is tried."""


class _Folder(Struct):
    """A folder of tracked files."""

    files: list[str] = field(default_factory=list)
    folders: dict[str, _Folder] = field(default_factory=dict)
    count: int = 0
    """Files in it and below."""


def draw_tree(paths: Sequence[str] | None, room: int, *, is_tracked: bool) -> list[str]:
    """Return lines that name files, in at most ``room`` tokens: the root's, those of its folders, and then
    those of the largest folders below."""
    if paths is None:
        return ["the files could not be listed"]
    root = _build_tree(paths)
    title = pluralize(root.count, "tracked file" if is_tracked else "file")
    room -= count_tokens(f"{title}\n")
    drawn: dict[str, str] = {}
    misfits = 0
    # The root, then its folders, then those below; the larger first.
    queue: list[tuple[int, int, str, _Folder]] = [(0, 0, "", root)]
    while root.count and queue and misfits < _MOST_MISFITS:
        depth, _, path, folder = heapq.heappop(queue)
        most = (_ROOT_NAMES, _NAMES)[depth] if depth < 2 else _DEEP_NAMES
        while len(folder.folders) == 1 and not folder.files and path:
            name, folder = next(iter(folder.folders.items()))
            path = f"{path}{name}/"
        line = _draw_folder(path, folder, most)
        cost = count_tokens(f"{line}\n")
        if cost > room:
            line = _draw_folder(path, folder, most // 4)
            cost = count_tokens(f"{line}\n")
        if cost > room:
            misfits += 1
            continue
        misfits = 0
        room -= cost
        drawn[path] = line
        for name, below in folder.folders.items():
            if not is_sensitive(f"{path}{name}/x"):
                heapq.heappush(queue, (min(depth + 1, 2), -below.count, f"{path}{name}/", below))
    return [title, *(drawn[path] for path in sorted(drawn))]


def _build_tree(paths: Sequence[str]) -> _Folder:
    root = _Folder()
    for path in paths:
        *places, name = path.split("/")
        folder = root
        folder.count += 1
        for place in places:
            below = folder.folders.get(place)
            if below is None:
                below = folder.folders[place] = _Folder()
            folder = below
            folder.count += 1
        folder.files.append(name)
    return root


def _draw_folder(path: str, folder: _Folder, most: int) -> str:
    names = list(_name_entries(path, folder))
    shown = names[:most]
    if len(names) > most:
        shown.append(f"… {len(names) - most:,} more")
    return f"{_spell(path) or './'}: {', '.join(shown)}"


def _name_entries(path: str, folder: _Folder) -> Iterator[str]:
    """Yield the names in a folder: folders with the number of their files, then files; hidden ones last."""
    for name, below in sorted(folder.folders.items(), key=lambda each: _rank(each[0])):
        if not is_sensitive(f"{path}{name}/x"):
            yield f"{_spell(name)}/ {below.count:,}"
    for name in sorted(folder.files, key=_rank):
        if not is_sensitive(f"{path}{name}"):
            yield _spell(name)


def _rank(name: str) -> tuple[bool, str]:
    return name.startswith("."), name


def _spell(name: str) -> str:
    shown = printable_path(name)
    if len(shown) <= _LONGEST_NAME:
        return shown
    return mask(shown)[: _LONGEST_NAME - 1] + "…"
