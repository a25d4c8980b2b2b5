"""The permissions that Claude Code asked for in one run: several at once, each answered once.

See ``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.core.secrets import mask
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.permissions.ask_permission import PermissionAnswer, ask_permission
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.loop.permissions.withdrawal import STOPPED, TAKEN_BACK, Ending, Withdrawal
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions

Ask = Callable[[ToolRequest, Withdrawal], Awaitable[PermissionAnswer]]
"""Asks for a permission, which can be withdrawn."""

_CHANGES = frozenset(("edit", "delete", "move"))
ONLY_READS = "This role only reads: cockpit keeps no change that it makes."
_MOST_AT_ONCE = 64
_TOO_MANY = "cockpit answers at most 64 permissions at a time. Ask for fewer."
_MOST_REFUSED = 50


def ask_in_queue(store: Store, settings: RuntimeSettings, session_id: str, root: Path) -> Ask:
    """Return what asks for a permission of the session in the one queue, under the session's policy."""
    waiter = ChangeWaiter(store)

    async def ask(request: ToolRequest, withdrawn: Withdrawal) -> PermissionAnswer:
        session = await store.read(lambda connection: sessions.load(connection, session_id))
        return await ask_permission(
            store,
            settings,
            waiter,
            request,
            session_id=session_id,
            root=root,
            # The user may have narrowed it meanwhile.
            policy=session.policy,
            deadline_s=session.limits.get("deadline_s", settings.limits.deadline_s),
            withdrawn=withdrawn,
        )

    return ask


class _Waiting(Struct):
    task: asyncio.Task[None]
    withdrawn: Withdrawal = field(default_factory=Withdrawal)


class Permissions:
    """The permissions of one run, ``confined`` in our sandbox or not. ``ask`` decides; ``works`` is False for
    a role that only reads."""

    def __init__(self, ask: Ask, *, works: bool, confined: bool = False) -> None:
        self.unanswered = ""
        """What it asked for when a deadline passed; empty for nothing."""
        self.must_end = asyncio.Event()
        """Set when a deadline passed, or asking failed."""
        self.refused: list[str] = []
        """What it was refused, one line each."""
        self.failure: Exception | None = None
        """The error of a request that could not be asked; it ends the run."""
        self._ask, self._works, self._confined = ask, works, confined
        self._waiting: dict[str, _Waiting] = {}
        self._waited_s = 0.0
        self._since = 0.0

    def begin(
        self, key: str, request: ToolRequest, reply: Callable[[PermissionAnswer], None]
    ) -> None:
        """Ask for ``request``; ``reply`` gets the answer, unless it is withdrawn under ``key``."""
        if not self._works and request.kind in _CHANGES:
            self._refuse(request, ONLY_READS, reply)
        elif len(self._waiting) >= _MOST_AT_ONCE:
            self._refuse(request, _TOO_MANY, reply)
        elif key not in self._waiting:
            if not self._waiting:
                self._since = time.monotonic()
            withdrawn = Withdrawal()
            task = asyncio.ensure_future(self._decide(key, request, withdrawn, reply))
            self._waiting[key] = _Waiting(task, withdrawn)

    def withdraw(self, key: str) -> None:
        """Close the proposal of a request that the agent took back."""
        if waiting := self._waiting.get(key):
            waiting.withdrawn.withdraw(TAKEN_BACK)

    def waited_s(self) -> float:
        """Return the seconds in which at least one permission waited: they are not the agent's time."""
        running = time.monotonic() - self._since if self._waiting else 0.0
        return self._waited_s + running

    async def close(self, ending: Ending = STOPPED) -> None:
        """Withdraw what still waits; ``ending`` says why."""
        for waiting in self._waiting.values():
            waiting.withdrawn.withdraw(ending)
        tasks = [waiting.task for waiting in self._waiting.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _decide(
        self,
        key: str,
        request: ToolRequest,
        withdrawn: Withdrawal,
        reply: Callable[[PermissionAnswer], None],
    ) -> None:
        try:
            answer = await self._ask(replace(request, confined=self._confined), withdrawn)
        except Exception as error:
            self.failure = self.failure or error
            self.must_end.set()
            return
        finally:
            self._end(key)
        if not answer.allowed and answer.end != "withdrawn":
            self._note_refused(request)
        reply(answer)
        if answer.end == "expired":
            self.unanswered = self.unanswered or mask(request.title)
            self.must_end.set()

    def _end(self, key: str) -> None:
        self._waiting.pop(key, None)
        if not self._waiting:
            self._waited_s += time.monotonic() - self._since

    def _refuse(
        self, request: ToolRequest, words: str, reply: Callable[[PermissionAnswer], None]
    ) -> None:
        self._note_refused(request)
        reply(PermissionAnswer(False, words, None, "deny rules", "", "decided"))

    def _note_refused(self, request: ToolRequest) -> None:
        if len(self.refused) < _MOST_REFUSED:
            self.refused.append(mask(f"{request.tool}: {request.title}")[:200])
