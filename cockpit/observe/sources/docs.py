"""``docs:QUERY``: the sections of the project's documents that match the words best."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from itertools import pairwise

from cockpit.access.secret_files import is_sensitive
from cockpit.core.canonical_json import text_digest
from cockpit.core.text import pluralize
from cockpit.observe.count_tokens import estimate_bytes
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.preview_cost import Preview, estimate_preview
from cockpit.observe.project_files import list_files, read_contents
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sources.rank_texts import rank_texts
from cockpit.store.context.facts import Fact

SUFFIXES = (".md", ".markdown", ".rst", ".txt", ".adoc")
"""Files that are documents."""
MAX_DOCUMENTS = 2_000
MAX_SECTIONS = 5
"""Sections of one query."""
MAX_SECTION_LINES = 120

_HEADING = re.compile(r"#{1,6} \S|=+ \S")
_UNDERLINE = re.compile(r"([=\-~^\"'`*+#])\1{2,}\s*$")


@dataclass(frozen=True, slots=True)
class Section:
    """Lines ``first`` to ``last`` of a document, from one heading to the next."""

    path: str
    first: int
    last: int
    text: str


@dataclass(frozen=True, slots=True)
class DocsSource:
    """Searches documents by words."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """By searching; what is read for it is discarded."""
        sections = await _find_sections(item, ground)
        size = sum(len(section.text.encode("utf-8", "replace")) for section in sections)
        names = pluralize(len(sections), "section")
        return estimate_preview(item, estimate_bytes(size), note=names)

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact for each of the five best sections; its source names file and lines."""
        return [
            make_fact(
                ScopeItem(
                    "file", section.path, lines=(section.first, section.last), level=item.level
                ),
                section.text,
                reference=f"{section.path}: {section.text.splitlines()[0]}",
                outline="\n".join(section.text.splitlines()[:8]),
                provenance={
                    "path": section.path,
                    "rev": ground.rev,
                    "lines": [section.first, section.last],
                    "sha256": text_digest(section.text),
                },
                key=f"{section.path}:{section.first}-{section.last}",
                source_type="docs",
            )
            for section in await _find_sections(item, ground)
        ]


async def _find_sections(item: ScopeItem, ground: ProjectSnapshot) -> list[Section]:
    documents = [
        entry
        for entry in await list_files(ground)
        if entry.path.lower().endswith(SUFFIXES) and not is_sensitive(entry.path)
    ][:MAX_DOCUMENTS]
    sections: list[Section] = []
    async for chunk in read_contents(ground, documents):
        for path, content in chunk:
            sections += split_sections(path, content.decode("utf-8", "replace"))
    texts = [f"{part.path} {part.text}" for part in sections]
    best = await asyncio.to_thread(rank_texts, item.ref, texts, MAX_SECTIONS)
    if not best:
        raise SourceFailed(f"no document of the project mentions {item.ref!r}")
    return [sections[at] for at in best]


def split_sections(path: str, text: str) -> list[Section]:
    """Split a document at its headings, and longer sections after 120 lines."""
    lines = text.splitlines()
    starts = {0}
    for at, line in enumerate(lines):
        if _HEADING.match(line):
            starts.add(at)
        elif at and lines[at - 1].strip() and _UNDERLINE.fullmatch(line):
            starts.add(at - 1)
    sections: list[Section] = []
    ordered = [*sorted(starts), len(lines)]
    for begin, end in pairwise(ordered):
        for first in range(begin, end, MAX_SECTION_LINES):
            part = lines[first : min(first + MAX_SECTION_LINES, end)]
            if any(line.strip() for line in part):
                sections.append(Section(path, first + 1, first + len(part), "\n".join(part)))
    return sections
