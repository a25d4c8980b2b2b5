"""``search:REGEX [in GLOB]``: lines that match, with their places."""

from __future__ import annotations

from msgspec import Struct

from cockpit.access.secret_files import is_sensitive
from cockpit.core.canonical_json import digest
from cockpit.core.text import pluralize
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.preview_cost import Preview, join_names, preview_facts, printable_path
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sources.text_search import SearchMatches, search_text
from cockpit.store.context.facts import Fact

WITHHELD = "[a line of a file that holds secrets]"

MAX_MATCHES = 400
"""Most matching lines of one search; the rest are counted."""


class SearchSource(Struct, frozen=True):
    """Searches the text files that git knows, or all when there is no git."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """By searching; the lines are measured and discarded."""
        result = await search_text(item.ref, ground, glob=item.glob, most=MAX_MATCHES)
        note = f"{pluralize(result.total, 'line')} in {pluralize(len(result.counts), 'file')}"
        return preview_facts(item, [_make_fact(item, ground, result)], note=note)

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact, also when nothing matches: ``path:line: text`` a line."""
        result = await search_text(item.ref, ground, glob=item.glob, most=MAX_MATCHES)
        return [_make_fact(item, ground, result)]


def _make_fact(item: ScopeItem, ground: ProjectSnapshot, result: SearchMatches) -> Fact:
    text = _text(item, result)
    by_file = [f"{printable_path(path)}: {count}" for path, count in result.counts.items()]
    return make_fact(
        item,
        text,
        outline="\n".join([*by_file[:100], *_more(len(by_file) - 100, "file")]),
        reference=(
            f"{item.ref!r} matches {pluralize(result.total, 'line')} in "
            f"{pluralize(len(result.counts), 'file')}"
            + (f": {join_names(list(result.counts))}" if result.counts else "")
        ),
        provenance={
            "regex": item.ref,
            "glob": item.glob,
            "rev": ground.rev,
            "matches": result.total,
            "files": len(result.counts),
            "sha256": digest(text),
        },
        key=f"{item.ref} in {item.glob or '**'}",
    )


def _text(item: ScopeItem, result: SearchMatches) -> str:
    lines = [
        f"{printable_path(path)}:{number}: {WITHHELD if is_sensitive(path) else text}"
        for path, hits in result.lines.items()
        for number, text in hits
    ]
    if not lines:
        return f"no line matches {item.ref!r}{f' in {item.glob}' if item.glob else ''}"
    return "\n".join([*lines, *_more(result.total - len(lines), "matching line")])


def _more(count: int, noun: str) -> list[str]:
    return [f"… {pluralize(count, f'more {noun}')}; narrow the search"] if count > 0 else []
