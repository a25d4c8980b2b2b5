"""``tree:DIR``: which files there are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from cockpit.core.canonical_json import digest
from cockpit.core.text import pluralize
from cockpit.observe.count_tokens import estimate_bytes
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.preview_cost import Preview, estimated, shown_path
from cockpit.observe.project_files import Entry, entries
from cockpit.observe.project_snapshot import Ground, SourceFailed
from cockpit.observe.scope_items import ScopeItem
from cockpit.store.context.facts import Fact

MAX_PATHS = 2_000
"""Most paths of one listing."""


@dataclass(frozen=True, slots=True)
class TreeSource:
    """Lists files below a directory."""

    async def preview(self, item: ScopeItem, ground: Ground) -> Preview:
        """By listing, without opening a file."""
        found = await _found(item, ground)
        size = sum(len(entry.path) + 1 for entry in found[:MAX_PATHS])
        return estimated(item, estimate_bytes(size), note=pluralize(len(found), "file"))

    async def fetch(self, item: ScopeItem, ground: Ground) -> list[Fact]:
        """One fact: a path a line, the first 2,000; its outline counts files by directory."""
        found = await _found(item, ground)
        directory = ground.confined.relative(item.ref)
        names = [shown_path(entry.path) for entry in found]
        lines = names[:MAX_PATHS]
        if len(names) > MAX_PATHS:
            lines.append(f"… {len(names) - MAX_PATHS} more files; ask for a directory below")
        return [
            make_fact(
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
        ]


async def _found(item: ScopeItem, ground: Ground) -> list[Entry]:
    found = await entries(ground, item.ref)
    if not found:
        raise SourceFailed(f"{item.ref!r} holds no files")
    return found


def _by_directory(names: list[str], directory: str) -> str:
    depth = 0 if directory == "." else directory.count("/") + 1
    counts: Counter[str] = Counter()
    for name in names:
        parts = name.split("/")[:-1]
        counts["/".join(parts[: depth + 2]) or "."] += 1
    lines = [f"{place}/ {pluralize(count, 'file')}" for place, count in sorted(counts.items())]
    return "\n".join([*lines[:200], *([f"… {len(lines) - 200} more"] if len(lines) > 200 else [])])
