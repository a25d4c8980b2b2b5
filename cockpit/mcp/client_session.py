"""An external agent's session: its proposals wait in the same queue as any other, under its own name.

Each call that needs the loop is a wave that the agent decided (see
:mod:`cockpit.decide.external_agent_model`); the wave after it reads what the user granted. As in every
session, one proposal waits at a time; the agent may do other work meanwhile. See ``docs/reference/mcp.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from cockpit.act.model_tools import TOOL_RECORDS, parse_call
from cockpit.act.own_tools.check_arguments import parse_added_call
from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import CockpitError, NotFound
from cockpit.decide.external_agent_model import PREFIX, ExternalAgentModel
from cockpit.decide.model import ToolCall
from cockpit.loop.session_loop import TASK_SUBMITTED, run_session
from cockpit.loop.wave_context import Engine
from cockpit.mcp.call_result import CallResult, load_call_result
from cockpit.store.context import profiles
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import events, messages, proposals, sessions
from cockpit.store.sessions.sessions import Session

CALLED = "outside.called"


def _check_call(
    connection: sqlite3.Connection, engine: Engine, name: str, arguments_json: str
) -> None:
    """Raise ``MalformedCall`` for arguments that the tool does not take."""
    if name not in TOOL_RECORDS and engine.added is not None:
        usable = engine.added.catalog.read_usable(connection)
        definition = next((each for each in usable if each.name == name), None)
        if definition is not None:
            parse_added_call(definition, arguments_json)
            return
    parse_call(name, arguments_json)


class StillWaiting(CockpitError):
    """The agent proposes again before the user decided on its last proposal."""

    code = "still_waiting"


class ClientSession:
    """The loop for one client.

    ``namespace`` is the principal that the server derived; ``client_name`` is what the client calls
    itself. The session is created with the first call.
    """

    def __init__(self, namespace: str, client_name: str) -> None:
        self.session_id = ""
        self._namespace = namespace
        self._client_name = client_name
        self._model = ExternalAgentModel(client_name)
        self._run: asyncio.Task[Session] | None = None
        self._lock = asyncio.Lock()

    async def call(
        self, engine: Engine, name: str, arguments: Mapping[str, Any], wait_s: float
    ) -> CallResult:
        """Make a call of the loop, and wait up to ``wait_s`` seconds for the decision.

        Raises ``MalformedCall`` and :class:`StillWaiting`; then nothing was proposed.
        """
        arguments_json = canonical_json(dict(arguments))
        await engine.store.read(
            lambda connection: _check_call(connection, engine, name, arguments_json)
        )
        async with self._lock:
            pending = await engine.store.read(
                lambda connection: _pending_proposal(connection, self.session_id)
            )
            if self._is_running() or pending:
                raise StillWaiting(
                    f"{pending or 'Your last call'} still waits for the user, and only one proposal can"
                    " wait. Do other work, or call again with its proposal_id alone."
                )
            self._model.take(ToolCall("call", name, arguments_json))
            self.session_id = await engine.store.write(lambda tx: self._record_call(tx, engine))
            self._start(engine)
        return await self._await_result(engine, wait_s)

    async def follow_up(self, engine: Engine, proposal_id: str, wait_s: float) -> CallResult:
        """Return the result of an earlier call by its proposal; wait up to ``wait_s`` seconds.

        Works for every proposal of this principal, also after the server restarted. Raises ``NotFound``
        and :class:`StillWaiting`.
        """

        session = await engine.store.read(
            lambda connection: self._load_own_session(connection, proposal_id)
        )
        async with self._lock:
            if session.session_id != self.session_id:
                if self._is_running():
                    raise StillWaiting("Another proposal of yours still waits for the user.")
                self.session_id = session.session_id
                self._model = ExternalAgentModel(session.model.removeprefix(PREFIX))
            if not self._is_running() and session.status != "completed":
                self._start(engine)
        return await self._await_result(engine, wait_s, proposal_id)

    async def stop(self) -> None:
        """Interrupt what runs for the client, and wait for it; its proposals stay in the queue."""
        if self._run is not None:
            self._run.cancel()
            await asyncio.wait([self._run])

    def _is_running(self) -> bool:
        return self._run is not None and not self._run.done()

    def _start(self, engine: Engine) -> None:
        with_model = replace(engine, models={self._model.name: self._model})
        self._run = asyncio.create_task(run_session(with_model, self.session_id, interactive=False))

    async def _await_result(
        self, engine: Engine, wait_s: float, proposal_id: str = ""
    ) -> CallResult:
        """The call's result; ``pending`` if it is proposed and not decided within ``wait_s``."""
        run, session_id = self._run, self.session_id
        if run is not None:
            proposed = asyncio.create_task(
                engine.change_waiter.wait_for(
                    lambda: engine.store.read_now(
                        lambda connection: _pending_proposal(connection, session_id)
                    )
                )
            )
            try:
                await asyncio.wait({run, proposed}, return_when=asyncio.FIRST_COMPLETED)
                if not run.done():
                    await asyncio.wait({run}, timeout=wait_s)
            finally:
                proposed.cancel()
                await asyncio.gather(proposed, return_exceptions=True)
            if run.done():
                run.result()
        idle = not self._is_running()
        return await engine.store.read(
            lambda connection: load_call_result(connection, session_id, proposal_id, idle=idle)
        )

    def _load_own_session(self, connection: sqlite3.Connection, proposal_id: str) -> Session:
        session_id = proposals.load(connection, proposal_id).session_id
        session = sessions.load(connection, session_id) if session_id else None
        if (
            session is None
            or session.task_type != sessions.EXTERNAL_AGENT
            or session.target.get("namespace") != self._namespace
        ):
            raise NotFound(f"{proposal_id} is not a proposal of {self._namespace}.")
        return session

    def _record_call(self, tx: Tx, engine: Engine) -> str:
        """Ingest the event that starts this call's wave; the first call creates the session."""
        if self.session_id:
            session = sessions.load(tx.connection, self.session_id)
            _ingest(tx, session, tx.ids.new("call"), CALLED, {})
            return session.session_id
        session = self._create_session(tx, engine)
        opening = {"text": session.words, "scope_items": [], "included": {}}
        _ingest(tx, session, "task", TASK_SUBMITTED, opening)
        return session.session_id

    def _create_session(self, tx: Tx, engine: Engine) -> Session:
        settings = engine.settings
        text = f"{self._client_name} is an external agent that works over MCP."
        session = sessions.create(
            tx,
            task_type=sessions.EXTERNAL_AGENT,
            title=f"{self._client_name}, external agent",
            words=text,
            target={"client": self._client_name, "namespace": self._namespace},
            model=self._model.name,
            policy=settings.policy,
            interactive=False,
            root=engine.place.root,
            rev=None,
            profile_id=profiles.ensure_default(tx, settings.token_budget).profile_id,
            limits={"deadline_s": settings.limits.deadline_s},
            project=engine.repo or engine.place.root.name,
            branch="",
            actor=self._namespace,
        )
        messages.complete(tx, session_id=session.session_id, role="notice", text=text)
        return session


def _ingest(tx: Tx, session: Session, identity: str, kind: str, payload: Mapping[str, Any]) -> None:
    events.ingest(
        tx,
        source=session.source,
        source_event_id=identity,
        event_type=kind,
        payload=dict(payload),
        trace_id=session.trace_id,
    )


def _pending_proposal(connection: sqlite3.Connection, session_id: str) -> str | None:
    row = connection.execute(
        "SELECT proposal_id FROM proposals WHERE session_id=? AND status='pending' LIMIT 1",
        (session_id,),
    ).fetchone()
    return None if row is None else str(row[0])
