"""A search by an agent outside, which the journal records. See ``docs/reference/knowledge.md``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cockpit.core.errors import CockpitError
from cockpit.loop.wave_context import Engine
from cockpit.observe.knowledge.passage import KINDS
from cockpit.observe.sources.docs import place_of
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import ContextFetched, FetchedItem


class KnowledgeOff(CockpitError):
    """The user has switched searches without a question to them off."""

    code = "knowledge_off"


async def search_for_agent(
    engine: Engine,
    query: str,
    *,
    kinds: Sequence[str] | None,
    limit: int | None,
    actor: str,
    session_id: str,
) -> list[dict[str, Any]]:
    """Search for an agent and journal what it was given; returns passages as records.

    What it gets is what cockpit's own search would give a session. Raises :class:`KnowledgeOff` where the
    user allows no search without a decision.
    """
    librarian = engine.librarian
    if not librarian.settings.enable_rag:
        raise KnowledgeOff(
            "The user has switched searches off ([knowledge] enable_rag). Ask with request_context and"
            " the item docs:QUERY, which the user decides."
        )
    passages = await librarian.find(query, kinds=kinds or KINDS, limit=limit)

    def write(tx: Tx) -> None:
        items = tuple(FetchedItem(item=f"docs:{place_of(each)}", facts=1) for each in passages)
        count = len(items)
        detail = ContextFetched(request_id="", items=items, facts=count, new=count, tokens=0)
        tx.journal(detail, actor=actor, session_id=session_id)

    await engine.store.write(write)
    return [
        {
            "source": place_of(passage),
            "kind": passage.kind,
            "title": passage.title,
            "score": passage.score,
            "text": passage.text,
        }
        for passage in passages
    ]
