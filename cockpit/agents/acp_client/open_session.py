"""Opening the session of an ACP agent: its process, its surroundings, and what is recorded of both.

See ``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import UNSET

from cockpit.access.confined_paths import Confined
from cockpit.access.token_scopes import AGENT_SCOPES
from cockpit.act.sandbox.variables import clean_environment
from cockpit.agents.acp_client.acp_session_context import SessionContext
from cockpit.agents.acp_client.agent_connection import (
    Abilities,
    AgentConnection,
    AgentGone,
    AgentRefused,
)
from cockpit.agents.acp_client.agent_session import AgentSession, Turn
from cockpit.agents.acp_client.session_updates import SessionUpdates
from cockpit.agents.confine.agent_sandbox import (
    AgentLaunch,
    launch_agent,
    relay_server,
    why_unconfined,
)
from cockpit.agents.registry.known_agents import Agent, KnownAgent
from cockpit.agents.runs.agent_command_line import agent_environment
from cockpit.agents.runs.run_folder import SERVER, RunFolder, open_run, our_server
from cockpit.agents.runs.run_rows import LONGEST_ERROR, complete_session, record_start
from cockpit.agents.runs.watch_checkouts import watch_checkouts
from cockpit.agents.streams.agent_journal import AgentJournal, AgentRun
from cockpit.agents.streams.stream_events import TokenUsage
from cockpit.core.errors import CockpitError
from cockpit.core.processes import process_name
from cockpit.core.secrets import mask
from cockpit.loop.permissions.withdrawal import STOP
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.loop.wave_context import Engine
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.agents import RunnerEnded
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session

_CANCEL_S = 1.5
"""Seconds that an agent without a user has to end its turn: its chain may be stopped at once."""
_TOKEN_S = 7 * 86_400.0
_AGAIN_S = 1.0
"""Seconds until an agent that did not start is started once more."""


def kept_sessions(engine: Engine, session_id: str) -> Path:
    """Return where the sessions of an agent in the sandbox are kept between its runs."""
    return engine.place.state / "agents" / session_id


@asynccontextmanager
async def open_agent_session(
    engine: Engine,
    agent: Agent,
    session_id: str,
    *,
    interactive: bool,
    scopes: frozenset[str] = AGENT_SCOPES,
) -> AsyncIterator[AgentSession]:
    """Start the agent of a session and open its session; the context's end ends the agent.

    Raises ``Stale`` when another process drives the session, ``AgentFailed``, ``LoginNeeded`` and
    ``ProgramMissing``. Each of the last three ends the session as failed.
    """
    store, settings = engine.store, engine.settings
    session = await store.read(lambda connection: sessions.load(connection, session_id))
    root = await asyncio.to_thread(Path(session.cwd or session.root).resolve)
    # Variables that the agent gets although they look like secrets.
    granted = (*agent.login.variables, *agent.acp.environment)
    runner = RunnerSettings(agent.name, agent.acp.command, env=granted)
    unconfined = _why_unconfined(engine, agent, runner)
    opened: AgentSession | None = None
    crashed = False
    async with open_run(
        store,
        engine.place,
        session,
        prompt="",
        scopes=scopes,
        lasts_s=_TOKEN_S,
        policy=session.policy,
        environment=settings.environment,
    ) as run_folder:
        try:
            number = await store.write(
                lambda tx: record_start(tx, session, runner, "acp", unconfined)
            )
            opened = _prepare_session(engine, agent, session, root, number, interactive)
            opened.context.is_confined = not unconfined
            if unconfined:
                note = opened.journal.note
                opened.watch_checkouts = partial(
                    watch_checkouts, engine.place, root, agent.title, note
                )
            async with (
                launch_agent(
                    engine.ground.sandbox,
                    runner,
                    lambda _: agent.acp.command,
                    run_folder.placeholder_values("", root, "", session_id),
                    agent_environment(agent, settings.environment, run_folder.variables),
                    root,
                    unconfined=unconfined,
                    needs=agent.sandbox,
                    kept=kept_sessions(engine, session_id),
                ) as launch,
                AsyncExitStack() as inner,
            ):
                opened.copy_sessions = launch.copy_sessions
                inner.push_async_callback(opened.close)
                connect = partial(_connect, opened, run_folder, launch, inner)
                connection, abilities = await _connect_or_retry(
                    connect, opened, is_confined=not unconfined
                )
                server = our_server(run_folder) if unconfined else relay_server()
                await opened.join(connection, abilities, [_acp_server(server)])
                watch = asyncio.create_task(_close_when_lost(run_folder.lost, connection))
                inner.callback(watch.cancel)
                yield opened
        except Exception:
            crashed = True
            raise
        finally:
            await asyncio.shield(_record_end(engine, session_id, agent, opened, crashed))


def _prepare_session(
    engine: Engine, agent: Agent, session: Session, root: Path, number: int, interactive: bool
) -> AgentSession:
    """Return the session of run ``number``, before its agent starts."""
    store, settings, sandbox = engine.store, engine.settings, engine.ground.sandbox
    session_id = session.session_id
    run = AgentRun(session_id, session.task_id, agent.name, root, number, captures=False)
    journal = AgentJournal(store, run, TokenUsage(cost_usd=session.cost_usd))
    context = SessionContext(
        store,
        settings,
        engine.change_waiter,
        agent,
        session_id,
        root,
        Confined(root),
        sandbox,
        clean_environment(settings.environment, sandbox.choices.variables),
        journal,
        SessionUpdates(journal, str(root), number),
        deadline_s=None if interactive else settings.limits.deadline_s,
    )
    return AgentSession(engine, context, run)


async def _connect(
    opened: AgentSession,
    run_folder: RunFolder,
    launch: AgentLaunch,
    stack: AsyncExitStack,
) -> tuple[AgentConnection, Abilities]:
    """Start the agent and exchange versions.

    ``stack`` closes the connection. Raises ``AgentGone`` and ``AgentRefused``.
    """
    context = opened.context
    agent = context.agent

    def on_start(pid: int) -> None:
        run_folder.record_process(pid)
        launch.begin(pid)

    connection = await AgentConnection.open(
        agent,
        launch.argv,
        cwd=context.root,
        environment=launch.environment,
        serve=opened.serve,
        on_update=opened.update,
        on_odd=opened.note_odd,
        on_start=on_start,
        files=launch.files,
    )
    stack.push_async_callback(connection.close)
    pid = process_name(connection.pid)
    await context.store.write(
        lambda tx: sessions.set_agent_process(tx, context.session_id, pid=pid)
    )
    try:
        return connection, await connection.initialize()
    except (AgentGone, AgentRefused):
        await connection.close()
        raise


async def _connect_or_retry(
    connect: Callable[[], Awaitable[tuple[AgentConnection, Abilities]]],
    opened: AgentSession,
    *,
    is_confined: bool,
) -> tuple[AgentConnection, Abilities]:
    """Start the agent, once more if it ends before its first answer: nothing has happened by then.

    Two that make the same new database in the user's home at once get in each other's way (Codex 0.169).
    In the sandbox each has a home of its own.
    """
    try:
        return await connect()
    except (AgentGone, AgentRefused) as error:
        if is_confined:
            raise
        await opened.journal.note(f"{error} It is started once more.")
    await asyncio.sleep(_AGAIN_S)
    return await connect()


async def _close_when_lost(lost: asyncio.Event, connection: AgentConnection) -> None:
    """End the agent when another process has taken the session."""
    await lost.wait()
    await connection.close()


def _why_unconfined(engine: Engine, agent: Agent, runner: RunnerSettings) -> str:
    why = why_unconfined(engine.ground.sandbox, runner, agent.sandbox or KnownAgent())
    if not why and agent.sandbox is None:
        return f"cockpit does not know what {agent.title} needs in the sandbox"
    return why


def _acp_server(server: Mapping[str, Any]) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in server["env"].items()]
    return {
        "name": SERVER,
        "command": server["command"],
        "args": list(server["args"]),
        "env": variables,
    }


async def _record_end(
    engine: Engine, session_id: str, agent: Agent, opened: AgentSession | None, crashed: bool
) -> None:
    turn = None if opened is None else opened.turn
    failed = crashed or (turn is not None and turn.reason == "failed")

    def write(tx: Tx) -> None:
        sessions.set_agent_process(tx, session_id, pid="")
        session = sessions.load(tx.connection, session_id)
        ended = RunnerEnded(
            runner=agent.name,
            status="crashed" if failed or session.status == "failed" else "finished",
            message=mask(turn.message if turn is not None else "")[:LONGEST_ERROR],
            exit_code=None,
            agent_session=session.agent_session,
            odd_lines=0 if opened is None else opened.journal.unreadable,
            tools=UNSET if opened is None else opened.journal.tools_ended,
            refused=UNSET if opened is None else tuple(opened.context.refused) or UNSET,
        )
        tx.journal(ended, session_id=session_id, result="error" if failed else "ok")

    await engine.store.write(write)


class AgentTooSlow(CockpitError):
    """The agent did not end its turn in its time."""

    code = "runner_crashed"


async def run_acp_prompt(
    engine: Engine,
    agent: Agent,
    session_id: str,
    prompt: str,
    *,
    scopes: frozenset[str],
    timeout_s: float,
) -> str:
    """Start the agent, give it ``prompt``, and end the session as its turn ended; returns why it failed.

    A permission that nobody decided in time ends the session as blocked, with what was asked. ``timeout_s``
    is the agent's own time, without that of waiting for the user. Cancelled, it cancels the turn and leaves
    the session stopped. Raises what :func:`~cockpit.agents.acp_client.open_session.open_agent_session`
    raises, and :class:`AgentTooSlow`.
    """
    async with open_agent_session(
        engine, agent, session_id, interactive=False, scopes=scopes
    ) as opened:
        opened.cancel_s = _CANCEL_S
        turn = asyncio.ensure_future(opened.run_prompt(prompt))
        try:
            if not await _wait(turn, opened, timeout_s):
                raise AgentTooSlow(
                    f"{agent.title} did not end its turn within {timeout_s:g} s and was ended."
                )
        finally:
            turn.cancel(STOP)
            await asyncio.gather(turn, return_exceptions=True)
        end = turn.result()
        late = opened.context.unanswered
        if not late:
            await opened.finish()
            failed = end.reason == "failed"
            return (end.message or f"{agent.title} failed.") if failed else ""
    words = f"It asked for {late!r}, and the deadline passed without a decision. It did not happen."
    await engine.store.write(lambda tx: complete_session(tx, session_id, "blocked", words))
    return ""


async def _wait(turn: asyncio.Future[Turn], opened: AgentSession, timeout_s: float) -> bool:
    """Wait for the turn's end; False when the agent's own time is used up."""
    begun = time.monotonic()
    while not turn.done():
        left = timeout_s + opened.context.waited_s() - (time.monotonic() - begun)
        if left <= 0:
            return False
        await asyncio.wait([turn], timeout=left)
    return True
