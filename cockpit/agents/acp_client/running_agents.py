"""The ACP agents that one runtime drives: opened at their first message, kept until the runtime ends.

See ``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from cockpit.access.run_program import ProgramMissing
from cockpit.agents.acp_client.agent_session import AgentSession
from cockpit.agents.acp_client.open_session import kept_sessions, open_agent_session
from cockpit.agents.registry.installed_agents import find_installation
from cockpit.agents.registry.known_agents import Agent, load_agents
from cockpit.agents.streams.reads_before import MOST_READ_BEFORE, take_over_reads
from cockpit.core.errors import IllegalTransition
from cockpit.learn.resume_text import briefing
from cockpit.loop.external_agent_interface import AgentChoice, AgentEntry
from cockpit.loop.planner.estimate_session import begin_estimate, find_price
from cockpit.loop.wave_context import Engine
from cockpit.store.backlog import handoffs, tasks
from cockpit.store.context import profiles
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionWaiting
from cockpit.store.sessions import messages, sessions
from cockpit.store.sessions.sessions import RUNNER_PREFIX, Session

TASK_TYPE = "agent"
"""The task type of a session that the user has with an external agent."""
TRANSPORT = "acp"
_MOST_TITLE = 80
_END = (
    "End your last message with a line `STATUS: done` once the task is done, or `STATUS: blocked` with the"
    " reason where it cannot be done."
)
"""Without the screen a session with a task of the backlog is done only by these words."""


class RunningAgents:
    """The agents of one runtime, as :class:`~cockpit.loop.external_agent_interface.ExternalAgents`.

    ``on_turns_end`` gets the session whenever its agent has no message left. ``choose_folder`` gets the
    agent's name and where the user wants it; without it all work in the checkout.
    """

    def __init__(
        self,
        on_turns_end: Callable[[Engine, str], Awaitable[object]] | None = None,
        choose_folder: Callable[[Engine, str, str], Awaitable[Path | None]] | None = None,
    ) -> None:
        self._open: dict[str, _OpenAgent] = {}
        self._on_turns_end = on_turns_end
        self._choose_folder = choose_folder

    async def list_agents(self, engine: Engine) -> Sequence[AgentEntry]:
        """Return the agents of the registry, those that are installed first. Starts none."""
        return await asyncio.to_thread(_list_agents, engine)

    async def choose_folder(self, engine: Engine, agent: str, where: str) -> Path | None:
        """Return where the agent works. Raises ``AgentInvalid``, ``ProgramMissing`` and ``WorktreeError``."""
        known_agent = await asyncio.to_thread(_find_agent, engine, agent)
        environment = engine.settings.environment
        installation = await asyncio.to_thread(find_installation, known_agent, environment)
        if not installation.program:
            raise ProgramMissing(known_agent.acp.command[0], _how_to_install(known_agent))
        if self._choose_folder is None:
            return None
        return await self._choose_folder(engine, known_agent.name, where)

    async def create(
        self,
        engine: Engine,
        agent: str,
        words: str,
        *,
        policy: str,
        interactive: bool,
        cwd: Path,
        branch: str,
        task_id: str | None = None,
        target: Mapping[str, str] | None = None,
        alone: bool = False,
    ) -> str:
        """Store a new session. Raises ``AgentInvalid`` for an agent that is not known.

        With ``task_id`` its first message ends with the task's briefing. Raises ``NotFound`` for an unknown
        task.
        """
        known_agent = await asyncio.to_thread(_find_agent, engine, agent)
        model = f"{RUNNER_PREFIX}{known_agent.name}"
        price = await find_price(engine.settings, model)

        def write(tx: Tx) -> str:
            if alone and sessions.works_agent_in(tx.connection, str(cwd), tx.clock.now()):
                return ""
            profile = profiles.ensure_default(tx, engine.settings.token_budget)
            task = None if task_id is None else tasks.load(tx.connection, task_id)
            title = " ".join((words or (task.title if task else "")).split())[:_MOST_TITLE]
            title = title or known_agent.title
            message = words.strip()
            if task is not None:
                brief = briefing(task, handoffs.select_before(tx.connection, task.task_id))
                message = "\n\n".join(filter(None, (message, brief, "" if interactive else _END)))
            session = sessions.create(
                tx,
                task_type=TASK_TYPE,
                title=title,
                words=words,
                target=dict(target or {}),
                model=model,
                policy=policy,
                interactive=interactive,
                root=engine.place.root,
                rev=None,
                profile_id=profile.profile_id,
                limits={},
                project=engine.repo or engine.place.root.name,
                branch=branch,
                task_id=task_id,
                agent=known_agent.name,
                transport=TRANSPORT,
                cwd=cwd,
            )
            begin_estimate(tx, session, price)
            if message:
                messages.complete(tx, session_id=session.session_id, role="person", text=message)
            if cwd != engine.place.root:
                text = (
                    f"{known_agent.name} works in a worktree of its own, {cwd}, on branch {branch}."
                )
                messages.complete(tx, session_id=session.session_id, role="notice", text=text)
            return session.session_id

        return await sessions.store_new(engine.store, write)

    async def run(self, engine: Engine, session_id: str, *, interactive: bool | None) -> Session:
        """Send the user's messages until none is left."""
        session = await engine.store.read(lambda connection: sessions.load(connection, session_id))
        if interactive is not None and interactive != session.interactive:
            await engine.store.write(
                lambda tx: sessions.change(tx, session_id, interactive=interactive)
            )
        stays = session.interactive if interactive is None else interactive
        opened = await self._get(engine, session, stays)
        try:
            await opened.run_until_idle()
            if self._on_turns_end is not None:
                await self._on_turns_end(engine, session_id)
            if not stays:
                await opened.finish()
            elif not opened.is_open:
                await opened.wait()
                await self.close(session_id)
            else:
                await opened.wait()
        except asyncio.CancelledError:
            await asyncio.shield(opened.stop())
            raise
        except Exception:
            await self.close(session_id)
            raise
        finally:
            if not stays:
                await asyncio.shield(self.close(session_id))
        return await engine.store.read(lambda connection: sessions.load(connection, session_id))

    async def choose(self, engine: Engine, session_id: str, kind: str, value: str) -> None:
        """Choose a value in the agent, which is opened for it."""
        session = await engine.store.read(lambda connection: sessions.load(connection, session_id))
        await (await self._get(engine, session, True)).choose(kind, value)

    def choices(self, session_id: str) -> Sequence[AgentChoice]:
        """Return what can be chosen; nothing while the agent is not open."""
        entry = self._open.get(session_id)
        if entry is None or entry.session is None:
            return ()
        return tuple(
            AgentChoice(
                choice.kind,
                choice.name,
                choice.current,
                tuple((each.id, each.name) for each in choice.choices or ()),
            )
            for choice in entry.session.updates.choices.values()
        )

    def commands(self, session_id: str) -> Sequence[tuple[str, str]]:
        """Return the agent's commands; none while it is not open."""
        entry = self._open.get(session_id)
        if entry is None or entry.session is None:
            return ()
        return tuple((each.name, each.text) for each in entry.session.updates.commands)

    async def fork(self, engine: Engine, session_id: str) -> str:
        """Fork the agent's session and store a session for it; both work in the same folder."""
        session = await engine.store.read(lambda connection: sessions.load(connection, session_id))
        opened = await self._get(engine, session, True)
        forked = await opened.fork()

        def write(tx: Tx) -> str:
            created = sessions.create(
                tx,
                task_type=session.task_type,
                title=f"{session.title} (fork)",
                words=session.words,
                target=session.target,
                model=session.model,
                policy=session.policy,
                interactive=session.interactive,
                root=Path(session.root),
                rev=None,
                profile_id=session.profile_id,
                limits={},
                project=engine.repo or engine.place.root.name,
                branch=session.branch,
                task_id=session.task_id,
                agent=session.agent,
                transport=session.transport,
                cwd=Path(session.cwd),
                agent_session=forked,
            )
            detail = SessionWaiting(for_="person", why="forked")
            sessions.set_status(tx, created.session_id, "waiting", detail=detail)
            return created.session_id

        created = await engine.store.write(write)
        await asyncio.to_thread(opened.copy_sessions, kept_sessions(engine, created))
        return created

    async def reads_before(
        self, engine: Engine, task_id: str, scope: Sequence[str]
    ) -> tuple[Sequence[str], str]:
        """Return what external agents read for a task, and words that name it."""
        room = MOST_READ_BEFORE - len(scope)
        root = engine.place.root
        taken = await take_over_reads(engine.store, task_id, root, scope, room)
        return taken.items, taken.text

    async def close(self, session_id: str | None = None) -> None:
        """End the agent of a session, or of all of them."""
        names = list(self._open) if session_id is None else [session_id]
        entries = [entry for name in names if (entry := self._open.pop(name, None)) is not None]
        await asyncio.gather(*(entry.close() for entry in entries))

    async def _get(self, engine: Engine, session: Session, stays: bool) -> AgentSession:
        entry = self._open.get(session.session_id)
        if entry is not None and (entry.session is None or not entry.session.is_open):
            await self.close(session.session_id)
            entry = None
        if entry is None:
            if not session.agent or session.transport != TRANSPORT:
                raise IllegalTransition(
                    f"{session.session_id} is not a session with an ACP agent that cockpit drives."
                )
            agent = await asyncio.to_thread(_find_agent, engine, session.agent)
            entry = self._open[session.session_id] = _OpenAgent()
            try:
                await entry.open(engine, agent, session.session_id, stays)
            except BaseException:
                self._open.pop(session.session_id, None)
                raise
        if entry.session is None:
            raise IllegalTransition(f"The agent of {session.session_id} is being opened.")
        return entry.session


class _OpenAgent:
    """An agent that is open: its context lives in a task of its own, so any task may close it."""

    def __init__(self) -> None:
        self.session: AgentSession | None = None
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self, engine: Engine, agent: Agent, session_id: str, stays: bool) -> None:
        """Open the agent. Raises what :func:`open_agent_session` raises."""
        opened: asyncio.Future[AgentSession] = asyncio.get_running_loop().create_future()

        async def hold() -> None:
            try:
                async with open_agent_session(
                    engine, agent, session_id, interactive=stays
                ) as session:
                    if not opened.done():
                        opened.set_result(session)
                    await self._closing.wait()
            except Exception as error:
                if opened.done():
                    raise
                opened.set_exception(error)

        self._task = asyncio.create_task(hold(), name=f"agent of {session_id}")
        try:
            self.session = await asyncio.shield(opened)
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            raise

    async def close(self) -> None:
        """End the agent and wait for its end."""
        self._closing.set()
        if self._task is not None:
            await asyncio.shield(asyncio.gather(self._task, return_exceptions=True))


def _list_agents(engine: Engine) -> list[AgentEntry]:
    agents = load_agents(engine.settings.user_dir).agents.values()
    environment = engine.settings.environment
    chosen = engine.settings.agent
    entries = [
        AgentEntry(
            agent.name,
            agent.title,
            bool(find_installation(agent, environment).program),
            agent.name == chosen,
        )
        for agent in agents
    ]
    return sorted(entries, key=lambda entry: (not entry.is_installed, entry.name))


def _how_to_install(agent: Agent) -> str:
    line = " ".join(agent.acp.install.split())  # of a file: it stands in a line of ours
    how = f" Install it with `{line}`." if line else ""
    return f"{agent.title} is not installed: not found on PATH.{how}"


def _find_agent(engine: Engine, name: str) -> Agent:
    return load_agents(engine.settings.user_dir).find(name)
