"""What all parts of one ACP session share. See ``docs/reference/agents.md``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.access.confined_paths import Confined
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.agents.acp_client.session_updates import SessionUpdates
from cockpit.agents.registry.known_agents import Agent
from cockpit.agents.streams.agent_journal import AgentJournal
from cockpit.core.secrets import mask
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.permissions.ask_context import (
    FileRequest,
    ReadAnswer,
    ask_to_read,
    ensure_turn_wave,
)
from cockpit.loop.permissions.ask_permission import PermissionAnswer, ask_permission
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.loop.permissions.withdrawal import Withdrawal
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions

_MOST_REFUSED = 50


class SessionContext(Struct):
    """One session of an agent while it runs."""

    store: Store
    settings: RuntimeSettings
    change_waiter: ChangeWaiter
    agent: Agent
    session_id: str
    root: Path
    """The worktree that it works in, real and absolute."""
    confined: Confined
    sandbox: Sandbox
    environment: Mapping[str, str]
    """The variables of commands in its terminals."""
    journal: AgentJournal
    updates: SessionUpdates
    is_confined: bool = False
    """Whether the agent runs in our sandbox."""
    deadline_s: float | None = None
    """Seconds that a permission waits for a decision; None: until there is one."""
    withdrawn: Withdrawal = field(default_factory=Withdrawal)
    """Takes back what the turn asked for when it ends."""
    refusals: list[tuple[str, str]] = field(default_factory=list)
    """What of this turn the user rejected, and what they said."""
    was_refused: bool = False
    """Whether something that the agent asked for in this turn was not allowed."""
    refused: list[str] = field(default_factory=list)
    """What the agent was refused in this run, one line each."""
    wave_id: str = ""
    """The wave that the facts of this turn belong to; empty before the first."""
    unanswered: str = ""
    """What it asked for when a deadline passed; empty for nothing."""
    _waiting: int = 0
    _waiting_since: float = 0.0
    _waited: float = 0.0

    def waited_s(self) -> float:
        """Return the seconds in which at least one permission waited for the user."""
        return self._waited + (time.monotonic() - self._waiting_since if self._waiting else 0.0)

    async def ask_to_read(self, request: FileRequest) -> ReadAnswer:
        """Ask the user, or the session's policy, for a file that the agent wants to read."""
        await self.journal.end_message()
        session = await self.store.read(
            lambda connection: sessions.load(connection, self.session_id)
        )
        wave_id = await self.turn_wave()
        with self._count_waiting():
            answer = await ask_to_read(
                self.store,
                self.settings,
                self.change_waiter,
                request,
                session_id=self.session_id,
                wave_id=wave_id,
                root=self.root,
                policy=session.policy,
                deadline_s=self.deadline_s,
                withdrawn=self.withdrawn,
            )
        if not answer.allowed:
            self._note_refusal(
                f"read {request.path}", "fs/read_text_file", answer.end, answer.words
            )
        return answer

    async def turn_wave(self) -> str:
        """Return the wave that the facts of this turn belong to."""
        if not self.wave_id:
            before = self.wave_id
            wave_id = await self.store.write(
                lambda tx: ensure_turn_wave(tx, self.session_id, before)
            )
            self.wave_id = self.wave_id or wave_id
        return self.wave_id

    @contextmanager
    def _count_waiting(self) -> Iterator[None]:
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._waited += time.monotonic() - self._waiting_since

    def _note_refusal(self, title: str, tool: str, end: str, words: str) -> None:
        if end != "withdrawn" and len(self.refused) < _MOST_REFUSED:
            self.refused.append(mask(f"{tool}: {title}")[:200])
        if end == "expired":
            self.unanswered = self.unanswered or mask(title)[:200]
        self.was_refused = True
        if end == "decided" and words:
            self.refusals.append((title or tool, words))

    async def ask(self, request: ToolRequest) -> PermissionAnswer:
        """Ask the user, or the policy that the session has now, for what the agent wants to do."""
        await self.journal.end_message()
        session = await self.store.read(
            lambda connection: sessions.load(connection, self.session_id)
        )
        with self._count_waiting():
            answer = await ask_permission(
                self.store,
                self.settings,
                self.change_waiter,
                replace(request, confined=self.is_confined),
                session_id=self.session_id,
                root=self.root,
                policy=session.policy,
                deadline_s=self.deadline_s,
                withdrawn=self.withdrawn,
            )
        if not answer.allowed:
            self._note_refusal(request.title, request.tool, answer.end, answer.words)
        return answer
