"""Opening the session of an ACP agent: its process, its surroundings, and what is recorded of both.

See ``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import UNSET

from cockpit.access.confined_paths import Confined
from cockpit.access.token_scopes import AGENT_SCOPES, WORK_WRITE
from cockpit.act.sandbox.variables import clean_environment
from cockpit.agents.acp_client.acp_session_context import SessionContext
from cockpit.agents.acp_client.agent_connection import (
    Abilities,
    AgentConnection,
    AgentGone,
    AgentRefused,
)
from cockpit.agents.acp_client.agent_session import MOST_MESSAGE, AgentSession, fail_session
from cockpit.agents.acp_client.agent_variables import agent_environment
from cockpit.agents.acp_client.session_journal import SessionJournal
from cockpit.agents.confine.agent_sandbox import (
    AgentLaunch,
    confine_agent,
    relay_server,
    why_unconfined,
)
from cockpit.agents.registry.known_agents import Agent, KnownAgent
from cockpit.agents.runs.run_agent import count_runs
from cockpit.agents.runs.run_folder import (
    SERVER,
    RunFolder,
    cockpit_variables,
    create_run_folder,
    our_server,
    remove_run_folder,
)
from cockpit.agents.runs.watch_checkouts import watch_checkouts
from cockpit.agents.streams.journal_agent_stream import AgentRun
from cockpit.agents.streams.stream_events import TokenUsage
from cockpit.core.errors import Stale
from cockpit.core.processes import process_name
from cockpit.core.secrets import mask
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.loop.wave_context import Engine
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.agents import RunnerEnded, RunnerStarted
from cockpit.store.journal.details.sessions import (
    SessionStopped,
)
from cockpit.store.sessions import sessions
from cockpit.store.sessions.hold_session import hold_session
from cockpit.store.sessions.sessions import Session

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
    async with hold_session(store, session_id) as lost:
        run_folder = await create_run_folder(
            store,
            engine.place,
            session_id=session_id,
            task_id=session.task_id or "",
            prompt="",
            scopes=scopes,
            lasts_s=_TOKEN_S,
            policy=session.policy,
        )
        opened: AgentSession | None = None
        try:
            async with AsyncExitStack() as stack:
                ours = cockpit_variables(
                    run_folder,
                    settings.environment,
                    session_id=session_id,
                    task_id=session.task_id or "",
                    policy=session.policy,
                    works=WORK_WRITE in scopes,
                )
                environment = agent_environment(agent, settings.environment, ours)
                runner = RunnerSettings(agent.name, agent.acp.command, env=_granted(agent))
                unconfined = _why_unconfined(engine, agent, runner)
                number = await store.write(
                    lambda tx: _record_start(tx, session_id, agent, unconfined)
                )
                opened = _prepare_session(engine, agent, session, root, number, interactive)
                launch = None
                if unconfined:
                    note = opened.journal.note
                    opened.watch_checkouts = partial(
                        watch_checkouts, engine.place, root, agent.title, note
                    )
                else:
                    opened.context.is_confined = True
                    values = run_folder.placeholder_values("", root, "", session_id)
                    launch = await stack.enter_async_context(
                        confine_agent(
                            engine.ground.sandbox,
                            runner,
                            lambda _: agent.acp.command,
                            values,
                            environment,
                            root,
                            agent.sandbox,
                            kept_sessions(engine, session_id),
                        )
                    )
                    opened.copy_sessions = launch.copy_sessions
                stack.push_async_callback(opened.close)
                connect = partial(_connect, opened, run_folder, environment, launch, stack)
                connection, abilities = await _connect_or_retry(
                    connect, opened, is_confined=launch is not None
                )
                server = relay_server() if launch is not None else our_server(run_folder)
                await opened.join(connection, abilities, [_acp_server(server)])
                watch = asyncio.create_task(_close_when_lost(lost, connection))
                stack.callback(watch.cancel)
                yield opened
        except asyncio.CancelledError:
            await asyncio.shield(_stop_if_running(engine, session_id))
            raise
        except Stale:
            raise
        except Exception as error:
            code, words = getattr(error, "code", type(error).__name__), str(error)
            await store.write(lambda tx: fail_session(tx, session_id, code, words))
            raise
        finally:
            await asyncio.shield(_record_end(engine, session_id, agent, opened))
            await asyncio.shield(remove_run_folder(store, run_folder))


def _prepare_session(
    engine: Engine, agent: Agent, session: Session, root: Path, number: int, interactive: bool
) -> AgentSession:
    """Return the session of run ``number``, before its agent starts."""
    store, settings, sandbox = engine.store, engine.settings, engine.ground.sandbox
    session_id = session.session_id
    run = AgentRun(session_id, session.task_id, agent.name, root, number, captures=False)
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
        SessionJournal(store, run, TokenUsage(cost_usd=session.cost_usd)),
        deadline_s=None if interactive else settings.limits.deadline_s,
    )
    return AgentSession(engine, context, run)


async def _connect(
    opened: AgentSession,
    run_folder: RunFolder,
    environment: Mapping[str, str],
    launch: AgentLaunch | None,
    stack: AsyncExitStack,
) -> tuple[AgentConnection, Abilities]:
    """Start the agent, in the sandbox where ``launch`` has it, and exchange versions.

    ``stack`` closes the connection. Raises ``AgentGone`` and ``AgentRefused``.
    """
    context = opened.context
    agent = context.agent

    def on_start(pid: int) -> None:
        run_folder.record_process(pid)
        if launch is not None:
            launch.watched.begin(pid)

    connection = await AgentConnection.open(
        agent,
        agent.acp.command if launch is None else launch.argv,
        cwd=context.root,
        environment=environment if launch is None else launch.environment,
        serve=opened.serve,
        on_update=opened.update,
        on_odd=opened.journal.note_odd,
        on_start=on_start,
        files=() if launch is None else launch.files,
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


def _granted(agent: Agent) -> tuple[str, ...]:
    """List the variables that the agent gets although they look like secrets."""
    return (*agent.login.variables, *agent.acp.environment)


def _acp_server(server: Mapping[str, Any]) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in server["env"].items()]
    return {
        "name": SERVER,
        "command": server["command"],
        "args": list(server["args"]),
        "env": variables,
    }


def _record_start(tx: Tx, session_id: str, agent: Agent, unconfined: str) -> int:
    sessions.set_status(tx, session_id, "running")
    number = count_runs(tx.connection, session_id) + 1
    started = RunnerStarted(
        runner=agent.name,
        program=Path(agent.acp.command[0]).name,
        format="acp",
        task_id="",
        number=number,
        sandbox=unconfined or "bubblewrap",
    )
    tx.journal(started, session_id=session_id)
    return number


async def _record_end(
    engine: Engine, session_id: str, agent: Agent, opened: AgentSession | None
) -> None:
    turn = None if opened is None else opened.turn
    failed = turn is not None and turn.reason == "failed"

    def write(tx: Tx) -> None:
        sessions.set_agent_process(tx, session_id, pid="")
        session = sessions.load(tx.connection, session_id)
        ended = RunnerEnded(
            runner=agent.name,
            status="crashed" if failed or session.status == "failed" else "finished",
            message=mask(turn.message if turn is not None else "")[:MOST_MESSAGE],
            exit_code=None,
            agent_session=session.agent_session,
            odd_lines=0 if opened is None else opened.journal.odd,
            tools=UNSET if opened is None else opened.journal.tools_ended,
            refused=UNSET if opened is None else tuple(opened.context.refused) or UNSET,
        )
        tx.journal(ended, session_id=session_id, result="error" if failed else "ok")

    await engine.store.write(write)


async def _stop_if_running(engine: Engine, session_id: str) -> None:
    def write(tx: Tx) -> None:
        if sessions.load(tx.connection, session_id).status in ("running", "waiting"):
            detail = SessionStopped(reason="interrupted")
            sessions.set_status(tx, session_id, "stopped", actor="person", detail=detail)

    await engine.store.write(write)
