"""``tree:DIR``: which files there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from cockpit.core.canonical_json import digest
from cockpit.core.text import pluralize
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.preview_cost import Preview, preview_facts, printable_path
from cockpit.observe.project_files import FileEntry, list_files
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import ScopeItem
from cockpit.store.context.facts import Fact

MAX_PATHS = 2_000
"""Most paths of one listing."""


class TreeSource(Struct, frozen=True):
    """Lists files below a directory."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """By listing, without opening a file; the listing is discarded."""
        files = await _list_nonempty(item, ground)
        fact = _make_fact(item, ground, files)
        return preview_facts(item, [fact], note=pluralize(len(files), "file"))

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact: a path a line, the first 2,000; its outline counts files by directory."""
        return [_make_fact(item, ground, await _list_nonempty(item, ground))]


def _make_fact(item: ScopeItem, ground: ProjectSnapshot, files: Sequence[FileEntry]) -> Fact:
    directory = ground.confined.relative(item.ref)
    names = [printable_path(entry.path) for entry in files]
    lines = names[:MAX_PATHS]
    if len(names) > MAX_PATHS:
        lines.append(f"… {len(names) - MAX_PATHS} more files; ask for a directory below")
    return make_fact(
        ScopeItem("tree", directory, level=item.level),
        "\n".join(lines),
        outline=_by_directory(names, directory),
        reference=f"{directory}: {pluralize(len(names), 'file')}",
        provenance={
            "path": directory,
            "rev": ground.rev,
            "files": len(names),
            "sha256": digest(names),
        },
        key=directory,
    )


async def _list_nonempty(item: ScopeItem, ground: ProjectSnapshot) -> list[FileEntry]:
    files = await list_files(ground, item.ref)
    if not files:
        raise SourceFailed(f"{item.ref!r} contains no files")
    return files


def _by_directory(names: list[str], directory: str) -> str:
    depth = 0 if directory == "." else directory.count("/") + 1
    counts: Counter[str] = Counter()
    for name in names:
        parts = name.split("/")[:-1]
        counts["/".join(parts[: depth + 2]) or "."] += 1
    lines = [f"{place}/ {pluralize(count, 'file')}" for place, count in sorted(counts.items())]
    return "\n".join([*lines[:200], *([f"… {len(lines) - 200} more"] if len(lines) > 200 else [])])
