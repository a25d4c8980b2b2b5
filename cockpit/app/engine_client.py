"""What the screen asks of the engine: the person's words and decisions, and nothing else.

``cockpit.loop.runtime.Runtime`` is it. What happens then is read from the journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.loop.views.packet_inspection import Difference, Explanation
    from cockpit.store.context.pins import Pin
    from cockpit.store.db.database import Store


class Engine(Protocol):
    """The engine behind the screen. Every method raises ``CockpitError`` with words for a person."""

    @property
    def store(self) -> Store: ...

    @property
    def place(self) -> ProjectPaths: ...

    async def start(
        self,
        words: str,
        *,
        model: str | None = None,
        policy: str | None = None,
        interactive: bool = True,
    ) -> str:
        """Make a session of the person's words; returns its id."""
        ...

    async def default_model(self) -> str:
        """The full name of the model that a new session would get."""
        ...

    async def run(self, session_id: str, *, interactive: bool | None = None) -> object:
        """Drive waves until the session is done or waits for words. Cancelling interrupts it."""
        ...

    async def say(self, session_id: str, text: str) -> None:
        """The person's words for the session's next wave."""
        ...

    async def approve(
        self, proposal_id: str, *, shown_digest: str, narrowed: Sequence[str] | None = None
    ) -> None: ...

    async def discuss(self, proposal_id: str, *, shown_digest: str, words: str = "") -> None: ...

    async def reject(self, proposal_id: str, *, shown_digest: str, reason: str = "") -> None: ...

    async def editable(self, proposal_id: str) -> tuple[str, str]:
        """The text of an action that the person may edit, and a suffix for the editor's file."""
        ...

    async def edit(self, proposal_id: str, *, shown_digest: str, text: str) -> str:
        """Propose the person's version instead; returns the new proposal's id."""
        ...

    async def explain(
        self, session_id: str, ordinal: int | None = None, *, band: str = ""
    ) -> Explanation:
        """The verdicts on the facts of a wave, by default of the newest that has a packet, or on those
        of one band."""
        ...

    async def packet_diff(self, session_id: str, before: int, after: int) -> Difference:
        """What changed in the packet between two waves."""
        ...

    async def pin(self, session_id: str, fact_id: str) -> Pin:
        """Keep a fact from the next wave on."""
        ...

    async def unpin(self, session_id: str, fact_id: str) -> Pin:
        """Let a fact go again, from the next wave on."""
        ...

    async def feedback(self, wave_id: str, verdict: str, words: str = "") -> object:
        """The person's verdict on a wave: ``good`` or ``bad``."""
        ...

    async def change(
        self,
        session_id: str,
        *,
        policy: str | None = None,
        model: str | None = None,
        task_type: str | None = None,
    ) -> object: ...

    async def complete(self, kind: str, prefix: str) -> list[tuple[str, str]]:
        """Completions as (text, hint). ``kind`` is ``/`` for commands and ``@`` for files; both
        ``prefix`` and the answers carry that sign."""
        ...


Keys = Mapping[str, str | Sequence[str]]
"""The user's ``[keys]``: an action's id to the key or keys that do it."""
