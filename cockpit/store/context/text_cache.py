"""The texts of facts that this process has read: what a fact says never changes.

A session's packet repeats most of the packet before. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from cockpit.store.context import facts
from cockpit.store.context.facts import FactText

MOST_CHARACTERS = 4_000_000
"""Characters that are kept; beyond, all are forgotten."""

T = TypeVar("T")
Look = Callable[[sqlite3.Connection], T]


class TextCache:
    """Texts by fact id. ``read`` runs a look at the store, as :meth:`Store.read_now` does."""

    def __init__(self) -> None:
        self._texts: dict[str, FactText] = {}
        self._size = 0

    def forget(self) -> None:
        """Read all texts again."""
        self._texts, self._size = {}, 0

    def load(
        self, read: Callable[[Look[dict[str, FactText]]], dict[str, FactText]], ids: Iterable[str]
    ) -> dict[str, FactText]:
        """Return the texts of facts by id, reading those that are not here.

        Ids that are not stored are left out.
        """
        kept = self._texts
        wanted = list(dict.fromkeys(ids))
        missing = [fact_id for fact_id in wanted if fact_id not in kept]
        if not missing:
            return {fact_id: kept[fact_id] for fact_id in wanted}
        by_id = {fact_id: kept[fact_id] for fact_id in wanted if fact_id in kept}
        added = read(lambda connection: facts.load_texts(connection, missing))
        self._keep(added)
        return {**by_id, **added}

    def find(self, ids: Sequence[str]) -> dict[str, FactText] | None:
        """Return the texts of facts by id, if all are here."""
        kept = self._texts
        if any(fact_id not in kept for fact_id in ids):
            return None
        return {fact_id: kept[fact_id] for fact_id in ids}

    def _keep(self, added: dict[str, FactText]) -> None:
        size = sum(
            len(text.full) + len(text.outline or "") + len(text.reference)
            for text in added.values()
        )
        if self._size + size > MOST_CHARACTERS:
            self.forget()
        if size <= MOST_CHARACTERS:
            self._texts.update(added)
            self._size += size
