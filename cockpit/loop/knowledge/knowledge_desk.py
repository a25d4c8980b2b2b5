"""What the screen asks of the librarian: search, and add a passage to the next packet.

See ``docs/reference/knowledge.md``, on the screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.core.canonical_json import text_digest
from cockpit.core.errors import NotFound
from cockpit.loop.phases.propose_context_request import open_gateway, preview_record
from cockpit.loop.wave_context import Engine, WaveContext
from cockpit.observe.context_request import ContextRequest as GatewayRequest
from cockpit.observe.knowledge.passage import KINDS, Passage
from cockpit.observe.project_snapshot import SourceFailed
from cockpit.observe.sources.docs import item_of
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests, sessions, waves

MOST_PASSAGES = 20
"""Passages that the screen lists."""


@dataclass(frozen=True, slots=True)
class KnowledgeDesk:
    """The knowledge of an open project. The methods raise ``CockpitError`` with text for the user."""

    engine: Engine

    async def search(self, question: str) -> Sequence[Passage]:
        """Return the passages that answer a question, the best first."""
        librarian = self.engine.librarian
        passages = await librarian.find(question, kinds=KINDS, limit=MOST_PASSAGES)
        await librarian.follow_in_background()
        return passages

    async def add(self, session_id: str, passage: Passage) -> str:
        """Let the session's next wave read a passage through the gateway; returns the item.

        Raises :class:`NotFound` for a session without a wave yet.
        """
        store = self.engine.store
        session = store.read_now(lambda connection: sessions.load(connection, session_id))
        wave = store.read_now(lambda connection: waves.find_latest(connection, session_id))
        if wave is None:
            raise NotFound(
                "This session has no wave yet: send its first message, then add passages."
            )
        item = item_of(passage)
        context = WaveContext(self.engine, session, wave)
        (preview,) = await open_gateway(context).preview(
            GatewayRequest("knowledge", "What did the user add?", (item,), rev=session.rev)
        )
        if preview.refused:
            raise SourceFailed(f"{item} cannot be added: {preview.refused}.")
        request_id = f"q-{wave.wave_id}-added-{text_digest(str(item))[:10]}"

        def write(tx: Tx) -> None:
            context_requests.create(
                tx,
                request_id=request_id,
                session_id=session_id,
                wave_id=wave.wave_id,
                call_id="",
                purpose="the user added it from the knowledge search",
                question="What does this passage say?",
                escalation="",
                items=[preview_record(preview)],
                proposal_id=None,
                auto=True,
                decided_by="person",
            )

        await store.write(write)
        return str(item)
