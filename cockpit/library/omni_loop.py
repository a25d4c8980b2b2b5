"""The loop as a library: run a task from a Python program, follow it, and approve by a callback.

    from cockpit import OmniLoop

    loop = OmniLoop(model="offline")
    result = await loop.run("review topic", max_steps=8)
    print(result, loop.state.get_stats())

Sessions are those of the project's store: every screen and command shows them. Specified in
``docs/reference/library.md``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.access.reading_sandbox import use_reading_sandbox
from cockpit.access.user_presence import require_no_agent
from cockpit.act.sandbox.checkout_reader import CheckoutReader
from cockpit.config.load_settings import load_settings
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.project_paths import ProjectPaths, locate_project
from cockpit.library import approvals
from cockpit.library.loop_result import LoopResult, read_result
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.session_state.read_session_state import SessionState, read_session_state
from cockpit.loop.views.story import Storyteller
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.journal.details.proposals import ProposalCreated
from cockpit.store.journal.details.sessions import SessionWaiting
from cockpit.store.journal.follow import follow
from cockpit.store.journal.journal import Row
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session


class LoopEvent(Struct, frozen=True):
    """One row of the journal, and what it adds to the session's story."""

    seq: int
    """Its number in the journal; rises within a session."""
    at: str
    """When it was written: ISO 8601, UTC."""
    kind: str
    """The event type, such as ``wave.started``; ``docs/reference/journal.md`` lists all."""
    actor: str
    """Who caused it: ``person``, ``agent``, ``engine``, ``program``, ``policy:NAME``."""
    session_id: str
    wave_id: str
    detail: Mapping[str, Any]
    """The fields of this event type. What an agent or a file said in it is untrusted text."""
    text: str
    """What ``cockpit run`` prints for it; empty for most. Not cleaned for a terminal."""


def read_event(row: Row, teller: Storyteller) -> LoopEvent:
    """Return the event of a row; ``teller`` has told the rows of the session before it."""
    return LoopEvent(
        row.seq,
        row.at,
        row.action,
        row.actor,
        row.session_id,
        row.wave_id,
        row.body()["detail"],
        teller.tell(row),
    )


class LoopBusy(CockpitError):
    """The loop runs a task already."""

    code = "loop_busy"


class OmniLoopConfig(Struct, frozen=True):
    """The settings of a loop; what is None or left out comes from the user's and the project's settings."""

    project: str | Path = "."
    """A folder of the project."""
    model: str | None = None
    """``anthropic:NAME``, ``openai:NAME``, ``openai-compatible:NAME``, ``offline`` or ``script:FILE``."""
    policy: str | None = None
    """``ask``, ``reads``, ``trusted`` or ``all``: what is approved without asking."""
    agent: str = ""
    """An external agent that gets the tasks, by its name in the registry; empty: the built-in agent."""
    max_steps: int | None = None
    """Waves after which a session ends."""
    settings: dict[str, object] = field(default_factory=dict)
    """Other settings by their full name, such as ``{"[limits] max_cost": 2.5}``; see
    ``docs/reference/configuration.md``."""

    def flags(self, max_steps: int | None) -> dict[str, object]:
        """Return the settings by full name, as options of the command line give them."""
        named = {
            "[model] name": self.model,
            "[approval] policy": self.policy,
            "[limits] max_waves": self.max_steps if max_steps is None else max_steps,
        }
        given = {name: value for name, value in named.items() if value is not None and value != ""}
        return {**self.settings, **given}


class OmniLoop:
    """Runs tasks in a project, one at a time.

    Each :meth:`run` opens the project's store and closes it; within ``async with loop:`` it stays open.
    Without ``approve``, a run returns at the first proposal that the policy does not approve.
    """

    def __init__(
        self,
        config: OmniLoopConfig | None = None,
        *,
        approve: approvals.Callback | None = None,
        **options: Any,
    ) -> None:
        """``options`` are fields of :class:`OmniLoopConfig`; they override those of ``config``.

        Raises ``TypeError`` for an option that does not exist, and for an ``approve`` that cannot be called.
        """
        if approve is not None and not callable(approve):
            raise TypeError(
                f"approve is a function that answers requests, not {approve!r}. A policy is policy='all'."
            )
        self.config = replace(config or OmniLoopConfig(), **options)
        self.state = SessionState("")
        """What the last run has read and changed; updated when a run ends, and by :meth:`read_state`."""
        self.result: LoopResult | None = None
        """How the last run ended; None before that and while one runs."""
        self._approve = approve
        self._open: Runtime | None = None
        self._stack = AsyncExitStack()
        self._session = ""

    async def __aenter__(self) -> OmniLoop:
        self._open = await self._stack.enter_async_context(self._runtime(None))
        return self

    async def __aexit__(self, *error: object) -> None:
        self._open = None
        await self._stack.aclose()

    async def run(
        self, task: str, *, max_steps: int | None = None, session: str | None = None
    ) -> LoopResult:
        """Run ``task`` to its end and return how it ended; ``str(result)`` is the agent's last answer.

        Without a callback it never waits: at a proposal that the policy does not approve it returns with the
        status ``waiting``, the proposal, and how to go on. With ``session`` (an id, or ``last`` for that of
        the last run) the words continue that session. Cancel to stop within the wave; nothing is lost. Raises
        ``CockpitError`` where no session can start, the model's ``ModelError``, and what the callback raises.
        """
        async with aclosing(self.stream(task, max_steps=max_steps, session=session)) as events:
            async for _ in events:
                continue
        assert self.result is not None  # noqa: S101 - a stream that ended without an error has set it
        return self.result

    async def stream(
        self, task: str, *, max_steps: int | None = None, session: str | None = None
    ) -> AsyncGenerator[LoopEvent]:
        """Run ``task`` as :meth:`run` does, and yield each event in order, once, while it happens.

        Then ``self.result`` says how it ended. To leave the iteration early, within
        ``contextlib.aclosing(loop.stream(…))``, stops the session; it can be continued.
        """
        if not isinstance(task, str):
            raise TypeError(f"A task is text, not {type(task).__name__}.")
        if self._session:
            raise LoopBusy(
                f"This loop runs {self._session}. Make another OmniLoop for another task; a stream that you"
                " leave early ends where contextlib.aclosing closes it."
            )
        self.result, self._session = None, "a task"
        try:
            async with (
                self._runtime(max_steps) as runtime,
                aclosing(self._run(runtime, task, max_steps, session)) as events,
            ):
                async for event in events:
                    yield event
        finally:
            self._session = ""

    async def read_state(self) -> SessionState:
        """Read what the current or last session has done so far."""
        async with self._runtime(None) as runtime:
            return await self._update_state(runtime, self._session or self.state.session_id)

    @asynccontextmanager
    async def _runtime(self, max_steps: int | None) -> AsyncGenerator[Runtime]:
        if self._open is not None:
            yield self._open
            return
        place, settings = await asyncio.to_thread(self._prepare, max_steps)
        async with open_runtime(place, settings) as runtime:
            yield runtime

    def _prepare(self, max_steps: int | None) -> tuple[ProjectPaths, RuntimeSettings]:
        """Find the project and load its settings, once who started this program is known."""
        use_reading_sandbox(CheckoutReader())
        environment = dict(os.environ)
        if self._approve is not None:
            approvals.require_program_of_user("to approve by a callback", environment)
        flags = self.config.flags(max_steps)
        policy = flags.get("[approval] policy") or environment.get("COCKPIT_APPROVE") or "ask"
        if policy != "ask":
            require_no_agent(f"the approval policy {policy}")
        folder = Path(self.config.project).expanduser()
        if not folder.is_dir():
            raise NotFound(f"There is no folder {folder} to take for a project.")
        place = locate_project(folder)
        settings = load_settings(place.folder, env=environment, flags=self.config.flags(max_steps))
        return place, settings.runtime

    async def _run(
        self, runtime: Runtime, task: str, max_steps: int | None, session: str | None
    ) -> AsyncGenerator[LoopEvent]:
        before = await runtime.store.read(journal.last_seq)
        session_id = await self._begin(runtime, task, max_steps, session)
        self._session = session_id
        teller, seq = Storyteller(hints=False, agents=bool(self.config.agent)), before
        batches: asyncio.Queue[list[journal.Row]] = asyncio.Queue()
        work = asyncio.create_task(runtime.run(session_id, interactive=False))
        decides = asyncio.create_task(self._decide(runtime, session_id, before))
        others = [
            asyncio.create_task(_collect(runtime, session_id, before, batches)),
            decides,
        ]
        batch: asyncio.Task[list[journal.Row]] | None = None
        try:
            while not work.done():
                batch = asyncio.create_task(batches.get())
                await asyncio.wait({work, batch, *others}, return_when=asyncio.FIRST_COMPLETED)
                for beside in others:
                    if beside.done():
                        beside.result()  # raises, or a proposal waits
                if not batch.done():
                    break
                for row in batch.result():
                    seq = row.seq
                    yield read_event(row, teller)
            if not decides.done():
                work.result()
        finally:
            ending = [work, *others, *([batch] if batch is not None else [])]
            for each in ending:
                each.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
            if not decides.cancelled() and decides.exception() is None:
                await runtime.store.write(_wait_for(decides.result()))
            await self._update_state(runtime, session_id)
            self.result = await runtime.store.read(lambda c: read_result(c, session_id))
        while rest := await runtime.store.read(
            partial(journal.rows, after=seq, session_id=session_id)
        ):
            for row in rest:
                seq = row.seq
                yield read_event(row, teller)

    async def _begin(
        self, runtime: Runtime, task: str, max_steps: int | None, session: str | None
    ) -> str:
        if session is None:
            if self.config.agent:
                return await runtime.start_agent(self.config.agent, task, interactive=False)
            limits = runtime.engine.settings.limits
            if max_steps is not None:
                limits = replace(limits, max_waves=max_steps)
            return await runtime.start(task, interactive=False, limits=limits)
        session_id = self.state.session_id if session == "last" else session
        if not session_id:
            raise NotFound(
                "This loop has run no session yet: run one, or name a session by its id."
            )
        stored = await runtime.store.read(lambda c: sessions.load(c, session_id))
        if max_steps is not None:
            await runtime.change(
                session_id, limits=replace(runtime.engine.settings.limits, max_waves=max_steps)
            )
        if task:
            await runtime.say(stored.session_id, task)
        return stored.session_id

    async def _decide(self, runtime: Runtime, session_id: str, after: int) -> Proposal:
        """Ask the callback about each proposal that waits, those of before first; without one return it."""

        async def settle(proposal_id: str) -> Proposal | None:
            proposal = await runtime.store.read(lambda c: proposals.load(c, proposal_id))
            if proposal.status != "pending" or self._approve is None:
                return proposal if proposal.status == "pending" else None
            await approvals.settle(runtime, proposal, self._approve)
            return None

        for earlier in await runtime.store.read(
            lambda c: proposals.select_for_session(c, session_id)
        ):
            if (waits := await settle(earlier.proposal_id)) is not None:
                return waits
        async for rows in follow(runtime.store, after=after, session_id=session_id):
            for row in rows:
                if isinstance(row.detail, ProposalCreated) and (
                    waits := await settle(row.detail.proposal_id)
                ):
                    return waits
        raise AssertionError("a journal is followed until its reader is cancelled")

    async def _update_state(self, runtime: Runtime, session_id: str) -> SessionState:
        self.state = await runtime.store.read(lambda c: read_session_state(c, session_id))
        return self.state


def _wait_for(proposal: Proposal) -> Callable[[Tx], Session]:
    """Let the session wait, rather than be stopped: only the decision is missing."""
    detail = SessionWaiting(for_="proposal", why=proposal.title)
    return lambda tx: sessions.set_status(tx, proposal.session_id, "waiting", detail=detail)


async def _collect(
    runtime: Runtime, session_id: str, after: int, batches: asyncio.Queue[list[journal.Row]]
) -> None:
    """Queue the rows of the session as they are written."""
    async for rows in follow(runtime.store, after=after, session_id=session_id):
        batches.put_nowait(rows)


def run_sync(
    task: str,
    *,
    max_steps: int | None = None,
    approve: approvals.Callback | None = None,
    **options: Any,
) -> LoopResult:
    """Run ``task`` to its end in a program without an event loop; ``options`` as for :class:`OmniLoop`.

    Raises what :meth:`OmniLoop.run` raises, and ``RuntimeError`` within a running event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        loop = OmniLoop(approve=approve, **options)
        return asyncio.run(loop.run(task, max_steps=max_steps))
    raise RuntimeError(
        "An event loop runs here, as in a notebook. Write `await OmniLoop(…).run(task)` in place of"
        " `run_sync(task, …)`."
    )
