"""``receipt:W.P``, ``handoff:TASK``, ``wip:TASK``, ``note:QUERY``: what the store has, read back.

A packet drops what has no room; nothing of it is lost. See ``docs/reference/loop.md``, context requests.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from cockpit.core.canonical_json import text_digest
from cockpit.core.failure_lines import clip_middle
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.preview_cost import Preview, preview_facts
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sources.stored_records import (
    find_handoff,
    find_result,
    find_wip,
)
from cockpit.store.context.facts import Fact

T = TypeVar("T")

MAX_CHARS = 120_000
"""Characters of one record; the middle of a longer one is left out."""
MAX_MATCHES = 5
"""Notes of one query."""


class RecordSource(Struct, frozen=True):
    """Reads one record of the store by its name."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """By reading it."""
        return preview_facts(item, await self.fetch(item, ground))

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact with the whole record."""
        return [_make_record_fact(item, await _read_record(item, ground))]


async def _read_record(item: ScopeItem, ground: ProjectSnapshot) -> str:
    def find(connection: sqlite3.Connection, session_id: str) -> str | None:
        match item.kind:
            case "receipt":
                wave, _, place = item.ref.partition(".")
                return find_result(connection, session_id, int(wave), int(place))
            case "handoff":
                return find_handoff(connection, item.ref)
            case _:
                return find_wip(connection, item.ref)

    text = await _query(ground, find)
    if text is None:
        missing = {
            "receipt": f"wave {item.ref.partition('.')[0]} of this session has no such call",
            "handoff": f"{item.ref} has no handoff yet",
            "wip": f"{item.ref} has no work in progress",
        }
        raise SourceFailed(missing[item.kind])
    return clip_middle(text, MAX_CHARS)


async def _query(ground: ProjectSnapshot, find: Callable[[sqlite3.Connection, str], T]) -> T:
    records = ground.records
    if records is None:
        raise SourceFailed("the store of a session is needed to read it")
    return await records.store.read(lambda connection: find(connection, records.session_id))


def _make_record_fact(item: ScopeItem, text: str, *, source_type: str | None = None) -> Fact:
    first = text.splitlines()[0] if text else ""
    return make_fact(
        item,
        text,
        reference=f"{item.kind} {item.ref}: {first[:120]}",
        outline="\n".join(text.splitlines()[:12]),
        provenance={"record": f"{item.kind}:{item.ref}", "sha256": text_digest(text)},
        key=f"{item.kind}:{item.ref}",
        source_type=source_type,
    )
