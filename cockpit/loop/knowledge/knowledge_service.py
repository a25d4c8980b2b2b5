"""What the screen asks of the librarian: search, and add a passage to the next packet.

See ``docs/reference/knowledge.md``, on the screen.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cockpit.core.canonical_json import text_digest
from cockpit.core.errors import NotFound
from cockpit.loop.knowledge.librarian import IndexState, Librarian
from cockpit.loop.phases.propose_context_request import open_gateway, preview_record
from cockpit.loop.wave_context import Engine, WaveContext
from cockpit.observe.context_request import ContextRequest as GatewayRequest
from cockpit.observe.knowledge.passage import Passage
from cockpit.observe.project_snapshot import SourceFailed
from cockpit.observe.sources.docs import item_of
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests, sessions, waves

MOST_PASSAGES = 20
"""Passages that the screen lists."""
MOST_DOCUMENTS = 500
"""Documents of a kind that the screen lists."""


class KnowledgeService(Struct, frozen=True):
    """The knowledge of an open project. The methods raise ``CockpitError`` with text for the user."""

    engine: Engine

    async def search(self, question: str) -> Sequence[Passage]:
        """Return the passages that answer a question, the best first."""
        librarian = self._librarian()
        passages = await librarian.find(question, limit=MOST_PASSAGES)
        await librarian.follow_in_background()
        return passages

    async def read_state(self) -> IndexState:
        """Return what the index contains and how fresh it is."""
        return await self._librarian().read_state()

    async def list_documents(self, kind: str) -> Sequence[tuple[str, int]]:
        """Return documents of a kind, each with its number of chunks, the first by name."""
        return await self._librarian().list_documents(kind, MOST_DOCUMENTS)

    async def refresh(self) -> None:
        """Bring the index up to date, and follow files from then on."""
        librarian = self._librarian()
        await librarian.refresh()
        await librarian.follow_in_background()

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
                purpose="the user added it from the knowledge search",
                question="What does this passage say?",
                items=[preview_record(preview)],
                decided_by="person",
            )

        await store.write(write)
        return str(item)

    def _librarian(self) -> Librarian:
        librarian = self.engine.librarian
        librarian.is_beside_screen = True
        return librarian
