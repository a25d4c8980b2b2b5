"""An outside agent's session: its proposals stand in the one queue, under its own name.

Each call that needs the loop is a wave that the agent decided (:mod:`cockpit.decide.external_agent`), and the
wave after it takes in what a person granted. One thing is proposed at a time, as in every session; the
agent may do other work while it waits. Source: RFC-09 (single gateway); design of the faces, MCP.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cockpit.act.tools import parse_call
from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import CockpitError, NotFound
from cockpit.decide.external_agent import PREFIX, OutsideModel
from cockpit.decide.model import ToolCall
from cockpit.loop.session_loop import SUBMITTED, run_session
from cockpit.loop.wave_context import Engine
from cockpit.mcp.call_answers import Answer, answered
from cockpit.store.context import profiles
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import events, messages, proposals, sessions
from cockpit.store.sessions.sessions import Session

CALLED = "outside.called"


class StillWaiting(CockpitError):
    """The agent proposes again while a person has not decided on its last proposal."""

    code = "still_waiting"


@dataclass(frozen=True, slots=True)
class Client:
    """Who is at the other end: the namespace that the server derived, and what it calls itself."""

    namespace: str
    name: str


class Outside:
    """The loop as one client sees it. Every method runs where the engine runs."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.session_id = ""
        self._seat = OutsideModel(client.name)
        self._running: asyncio.Task[Session] | None = None
        self._turn = asyncio.Lock()

    async def ask(
        self, engine: Engine, name: str, arguments: Mapping[str, Any], wait_s: float
    ) -> Answer:
        """Make a call of the loop's, and wait for its decision up to ``wait_s`` seconds.

        Raises ``MalformedCall`` and :class:`StillWaiting`; then nothing was proposed.
        """
        given = canonical_json(dict(arguments))
        parse_call(name, given)
        async with self._turn:
            waiting = await engine.store.read(lambda found: _undecided(found, self.session_id))
            if self._busy() or waiting:
                raise StillWaiting(
                    f"{waiting or 'Your last call'} still waits for a person, and one thing is"
                    " proposed at a time. Do other work, or call again with its proposal_id alone."
                )
            self._seat.take(ToolCall("call", name, given))
            self.session_id = await engine.store.write(lambda tx: self._called(tx, engine))
            self._start(engine)
        return await self._answer(engine, wait_s)

    async def again(self, engine: Engine, proposal_id: str, wait_s: float) -> Answer:
        """What became of an earlier call, by its proposal; waits up to ``wait_s`` seconds.

        A proposal of this namespace is also found after its server was started anew.
        """

        session = await engine.store.read(lambda found: self._own(found, proposal_id))
        async with self._turn:
            if session.session_id != self.session_id:
                if self._busy():
                    raise StillWaiting("Another proposal of yours still waits for a person.")
                self.session_id = session.session_id
                self._seat = OutsideModel(session.model.removeprefix(PREFIX))
            if not self._busy() and session.status != "completed":
                self._start(engine)
        return await self._answer(engine, wait_s, proposal_id)

    def _busy(self) -> bool:
        return self._running is not None and not self._running.done()

    def _start(self, engine: Engine) -> None:
        seated = replace(engine, models={self._seat.name: self._seat})
        self._running = asyncio.create_task(run_session(seated, self.session_id, interactive=False))

    async def _answer(self, engine: Engine, wait_s: float, proposal_id: str = "") -> Answer:
        """The call's result; pending when it is proposed and not decided within ``wait_s``."""
        running, session_id = self._running, self.session_id
        if running is not None:
            proposed = asyncio.create_task(
                engine.pulse.until(
                    lambda: engine.store.read_now(lambda found: _undecided(found, session_id))
                )
            )
            try:
                await asyncio.wait({running, proposed}, return_when=asyncio.FIRST_COMPLETED)
                if not running.done():
                    await asyncio.wait({running}, timeout=wait_s)
            finally:
                proposed.cancel()
                await asyncio.gather(proposed, return_exceptions=True)
            if running.done():
                running.result()
        settled = not self._busy()
        return await engine.store.read(
            lambda found: answered(found, session_id, proposal_id, settled=settled)
        )

    def _own(self, connection: sqlite3.Connection, proposal_id: str) -> Session:
        session_id = proposals.load(connection, proposal_id).session_id
        session = sessions.load(connection, session_id) if session_id else None
        if (
            session is None
            or session.task_type != sessions.EXTERNAL_AGENT
            or session.target.get("namespace") != self.client.namespace
        ):
            raise NotFound(f"{proposal_id} is not a proposal of {self.client.namespace}.")
        return session

    def _called(self, tx: Tx, engine: Engine) -> str:
        """The event that brings the wave of this call; the first one makes the session."""
        if self.session_id:
            session = sessions.load(tx.connection, self.session_id)
            _ingest(tx, session, tx.ids.new("call"), CALLED, {})
            return session.session_id
        session = _created(tx, engine, self.client, self._seat.name)
        opening = {"text": session.words, "scope_items": [], "included": False}
        _ingest(tx, session, "task", SUBMITTED, opening)
        return session.session_id


def _created(tx: Tx, engine: Engine, client: Client, model: str) -> Session:
    settings, words = engine.settings, f"{client.name} works here from outside and asks over MCP."
    made = sessions.create(
        tx,
        task_type=sessions.EXTERNAL_AGENT,
        title=f"{client.name}, from outside",
        words=words,
        target={"client": client.name, "namespace": client.namespace},
        model=model,
        policy=settings.policy,
        interactive=False,
        root=engine.place.root,
        rev=None,
        profile_id=profiles.ensure_default(tx, settings.token_budget).profile_id,
        limits={"deadline_s": settings.limits.deadline_s},
        project=engine.repo or engine.place.root.name,
        branch="",
        actor=client.namespace,
    )
    messages.complete(tx, session_id=made.session_id, role="notice", text=words)
    return made


def _ingest(tx: Tx, session: Session, identity: str, kind: str, payload: Mapping[str, Any]) -> None:
    events.ingest(
        tx,
        source=session.source,
        source_event_id=identity,
        event_type=kind,
        payload=dict(payload),
        trace_id=session.trace_id,
    )


def _undecided(connection: sqlite3.Connection, session_id: str) -> str | None:
    row = connection.execute(
        "SELECT proposal_id FROM proposals WHERE session_id=? AND status='pending' LIMIT 1",
        (session_id,),
    ).fetchone()
    return None if row is None else str(row[0])
