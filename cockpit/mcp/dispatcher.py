"""The desk: one call of one client comes in, a JSON value or words about what to do goes out.

Reads run on a reader's thread, writes in a durable transaction, and the loop's calls where the engine
runs: the protocol never waits for any of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import PROPOSE, READ
from cockpit.backlog.tools.work_tool import Tier
from cockpit.core.clock import format_time
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.mcp.callers import Guest
from cockpit.mcp.engine_thread import EngineThread
from cockpit.mcp.loop_tools import (
    PacketOf,
    ProposeAction,
    ProposeProfileChange,
    Proposing,
    RequestContext,
    checked,
)
from cockpit.mcp.packet_text import packet_of, paged
from cockpit.mcp.tool_schema import read_arguments, schema_of
from cockpit.store.db.database import Store

if TYPE_CHECKING:
    from cockpit.loop.wave_context import Engine
    from cockpit.mcp.call_answers import Answer
    from cockpit.mcp.client_session import Outside

TIERS: tuple[Tier, ...] = ("core", "standard", "all")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the desk serves it: ``tier`` is the smallest set that it is in, ``parameters`` the
    record that its arguments are read into."""

    name: str
    tier: Tier
    description: str
    parameters: type[Any]
    run: Callable[[Desk, Guest, Any], Awaitable[Any]]

    @property
    def schema(self) -> dict[str, Any]:
        return schema_of(self.parameters)


class Desk:
    """Everything that calls need. Made where the protocol's event loop runs; end it with ``close``."""

    def __init__(self, store: Store, place: ProjectPaths, settings: RuntimeSettings) -> None:
        self.store = store
        self.answer_tokens = settings.answer_tokens
        self.engine = EngineThread(store, place, unattended(settings))
        self._seats: dict[tuple[str, str, str], Outside] = {}

    async def call(self, tool: Tool, guest: Guest, arguments: Mapping[str, Any] | None) -> Any:
        """What the tool answers, as a JSON value. Raises ``CockpitError`` with words for the agent."""
        return await tool.run(self, guest, read_arguments(tool.name, tool.parameters, arguments))

    async def caller(self, guest: Guest) -> Caller:
        """Who the guest is now. Raises ``TokenRefused``."""
        now = format_time(self.store.clock.now())
        return await self.store.read(lambda connection: guest.caller(connection, now))

    async def propose(self, guest: Guest, name: str, asked: Proposing) -> dict[str, Any]:
        """A call of the loop's, or what became of an earlier one."""
        caller = await self.caller(guest)
        caller.require(PROPOSE, "propose anything")
        checked(name, asked)

        async def there(engine: Engine) -> Answer:
            seat = self._seat(caller, guest)
            if asked.proposal_id:
                return await seat.again(engine, asked.proposal_id, asked.wait_s)
            return await seat.ask(engine, name, asked.call(), asked.wait_s)

        return _told(await self.engine.do(there), getattr(asked, "offset", 0))

    def session_of(self, caller: Caller, guest: Guest) -> str:
        """The guest's session, '' before it has proposed anything."""
        seat = self._seats.get((caller.namespace, guest.name, guest.line))
        return "" if seat is None else seat.session_id

    def _seat(self, caller: Caller, guest: Guest) -> Outside:
        """The guest's seat at the loop: the same one for every call on the same line."""
        from cockpit.mcp.client_session import Client, Outside

        key = (caller.namespace, guest.name, guest.line)
        if key not in self._seats:
            self._seats[key] = Outside(Client(caller.namespace, guest.name))
        return self._seats[key]

    async def close(self) -> None:
        """End what runs for clients; what they proposed stays in the queue."""
        await self.engine.close()


def unattended(settings: RuntimeSettings) -> RuntimeSettings:
    """The settings under which outside agents work: nothing of theirs passes without a person.

    Whoever starts the server writes its environment, and that is the agent: what would approve by
    itself is not read from there.
    """
    rules = replace(settings.adaptation, auto="never")
    return replace(settings, policy="ask", adaptation=rules)


async def _request_context(desk: Desk, guest: Guest, asked: RequestContext) -> Any:
    return await desk.propose(guest, "request_context", asked)


async def _propose_action(desk: Desk, guest: Guest, asked: ProposeAction) -> Any:
    return await desk.propose(guest, asked.action or "propose_action", asked)


async def _propose_profile_change(desk: Desk, guest: Guest, asked: ProposeProfileChange) -> Any:
    return await desk.propose(guest, "propose_profile_change", asked)


async def _packet(desk: Desk, guest: Guest, asked: PacketOf) -> Any:
    caller = await desk.caller(guest)
    caller.require(READ, "read packets")
    own = desk.session_of(caller, guest)

    def look(connection: sqlite3.Connection) -> dict[str, Any]:
        return packet_of(connection, asked, own)

    return await desk.store.read(look)


LOOP_TOOLS = (
    Tool(
        "request_context",
        "core",
        "Ask to read. A person sees items and cost first; pending: ask again.",
        RequestContext,
        _request_context,
    ),
    Tool(
        "propose_action",
        "standard",
        "Propose an edit, a command, a gh call or a commit. A person sees exactly what would happen; "
        "approved, cockpit does it once. Pending: call again with its proposal_id.",
        ProposeAction,
        _propose_action,
    ),
    Tool(
        "propose_profile_change",
        "standard",
        "Propose to shift what packets pay attention to, for some waves. A person decides.",
        ProposeProfileChange,
        _propose_profile_change,
    ),
    Tool(
        "get_orientation_packet",
        "standard",
        "What a wave of the loop knew: your session's newest packet, or another's.",
        PacketOf,
        _packet,
    ),
)
"""The loop's own. There is no tool that approves, in any tier."""


def _told(answer: Answer, offset: int) -> dict[str, Any]:
    found: dict[str, Any] = {"status": answer.status, "result": answer.told}
    if answer.proposal_id:
        found["proposal_id"] = answer.proposal_id
    if answer.status in ("pending", "working"):
        found["next"] = "Go on with other work; ask again with this proposal_id alone."
    given = [{"source": given.source, "text": given.text} for given in answer.given]
    return {**found, **paged("facts", given, offset)} if given else found
