"""``docs:QUERY``, ``note:QUERY`` and ``knowledge:QUERY``: the passages of the index that answer best.

See ``docs/reference/loop.md``, scope items, and ``docs/reference/knowledge.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cockpit.core.canonical_json import text_digest
from cockpit.core.text import pluralize
from cockpit.observe.knowledge.passage import FILE_KINDS, KINDS, LIMIT, THRESHOLD, Passage
from cockpit.observe.knowledge.search_snapshot import find_in_snapshot
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.preview_cost import Preview, preview_facts
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import ScopeItem
from cockpit.store.context.facts import Fact

_OUTLINE_LINES = 8


class KnowledgeSource(Struct, frozen=True):
    """Searches the documents of some kinds."""

    kinds: Sequence[str]
    what: str
    """The documents, for the message that nothing matches."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """By searching."""
        passages = await self._find(item, ground)
        names = ", ".join(place_of(passage) for passage in passages[:3])
        note = f"{pluralize(len(passages), 'passage')}: {names}"
        return preview_facts(item, _make_facts(item, passages, ground), note=note)

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact for each passage; its source names file and lines."""
        return _make_facts(item, await self._find(item, ground), ground)

    async def _find(self, item: ScopeItem, ground: ProjectSnapshot) -> tuple[Passage, ...]:
        knowledge = ground.knowledge
        if ground.rev is None and knowledge is not None:
            passages = await knowledge.find(item.ref, kinds=self.kinds)
        else:
            # The index is of the files on disk: what a revision says is read from it.
            limit, threshold = LIMIT, THRESHOLD
            passages = ()
            others = tuple(kind for kind in self.kinds if kind not in FILE_KINDS)
            if knowledge is not None:
                limit, threshold = knowledge.limit, knowledge.threshold
                passages = await knowledge.find(item.ref, kinds=others)
            files = tuple(kind for kind in self.kinds if kind in FILE_KINDS)
            if files:
                passages += await find_in_snapshot(
                    ground, item.ref, kinds=files, limit=limit, threshold=threshold
                )
            passages = tuple(sorted(passages, key=lambda passage: -passage.score)[:limit])
        if not passages:
            raise SourceFailed(f"{self.what} {item.ref!r}")
        return passages


class StoredNotes(KnowledgeSource, frozen=True):
    """Searches what the store says; needs a session's store."""

    async def _find(self, item: ScopeItem, ground: ProjectSnapshot) -> tuple[Passage, ...]:
        if ground.knowledge is None:
            raise SourceFailed("the store of a session is needed to read it")
        return await KnowledgeSource._find(self, item, ground)


DOCS = KnowledgeSource(FILE_KINDS, "no document of the project answers")
NOTES = StoredNotes(("note", "handoff"), "no note, handoff or work in progress says anything about")
KNOWLEDGE = KnowledgeSource(KINDS, "nothing in the knowledge index answers")


def place_of(passage: Passage) -> str:
    """Return where a passage stands, as users read it: ``docs/setup.md:12-30``."""
    return f"{passage.ref}:{passage.start}-{passage.end}"


def item_of(passage: Passage, level: str = "full") -> ScopeItem:
    """Return the scope item that reads a passage again."""
    if passage.kind in FILE_KINDS:
        return ScopeItem("file", passage.ref, lines=(passage.start, passage.end), level=level)
    kind, _, name = passage.ref.partition(":")
    return (
        ScopeItem(kind, name, level=level) if name else ScopeItem("note", passage.ref, level=level)
    )


def _make_facts(
    item: ScopeItem, passages: Sequence[Passage], ground: ProjectSnapshot
) -> list[Fact]:
    return [make_passage_fact(passage, ground, level=item.level) for passage in passages]


def make_passage_fact(passage: Passage, ground: ProjectSnapshot, *, level: str = "full") -> Fact:
    """Make a fact of a passage; its provenance has the lines and the digest of the text."""
    is_file = passage.kind in FILE_KINDS
    lines = passage.text.splitlines() or [""]
    name = {"path": passage.ref, "rev": ground.rev} if is_file else {"record": passage.ref}
    return make_fact(
        item_of(passage, level),
        passage.text,
        reference=f"{passage.ref}: {passage.title or lines[0]}",
        outline="\n".join(lines[:_OUTLINE_LINES]),
        provenance={
            **name,
            "lines": [passage.start, passage.end],
            "sha256": text_digest(passage.text),
        },
        key=f"{passage.ref}:{passage.start}-{passage.end}",
        source_type="docs" if is_file else "note",
    )
