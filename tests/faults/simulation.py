"""A simulation of days with cockpit: sessions, a user, a backlog, faults and deaths, all from one seed.

The loop, the store and the files are the real ones. The model, the user, the clock, the ids and what goes
wrong are played from the seed, one step after the other: the same seed gives the same journal, byte for byte.
Every edit adds a line of its own, so a line that is missing or there twice tells what was lost or done twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
import shutil
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from faults.session_trials import Verdict

from cockpit.backlog import service
from cockpit.core.clock import CountingIds, format_time
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import locate_project
from cockpit.decide.model import Done, ModelError, ModelEvent, Prompt, TextDelta, ToolCall, Usage
from cockpit.loop.runtime import Runtime, runtime_over
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.store.backlog import tasks
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import outbox, proposals, sessions

MODEL = "played"
END = "# end\n"
OPEN_SESSIONS = 4
"""Sessions that may be unfinished at a time."""
LEASE_S = 90_000.0
"""Seconds after which nobody holds a lease that was not renewed, were the clock set back a day meanwhile."""
_TURN_S = 30.0


class VirtualClock:
    """A clock that moves only when the simulation moves it. It may be set back; monotonic time goes on."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
        self._monotonic = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass, and wake who slept until then."""
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
        due = [entry for entry in self._sleepers if entry[0] <= self._monotonic]
        self._sleepers = [entry for entry in self._sleepers if entry not in due]
        for _, sleeper in due:
            if not sleeper.done():
                sleeper.set_result(None)

    def jump(self, seconds: float) -> None:
        """Set the wall clock to another time, as a person or a server does; no time passes."""
        self._now += timedelta(seconds=seconds)

    async def sleep(self, seconds: float) -> None:
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._monotonic + seconds, sleeper))
        await sleeper


class FailingStatements(sqlite3.Connection):
    """Fails from one statement on: as often as the disk fails, or for good where the process dies."""

    left: int | None = None
    """Statements until the first that fails; None: none fails."""
    failures = 0
    """How many fail then."""

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        kind = type(self)
        if kind.left is not None:
            if kind.left <= 0 and kind.failures > 0:
                kind.failures -= 1
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
                raise error
            kind.left -= 1
        return super().execute(sql, *arguments)


class PlayedModel:
    """Reads its session's file, adds lines to it, makes mistakes, and comes to an end."""

    name = MODEL

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.lines = 0
        """Lines that it has asked to add, in all sessions."""
        self.in_haste = False
        """Whether it finishes what it has begun and begins nothing."""

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Answer with one of the things that an agent does."""
        path = str(prompt.target.get("path") or _path_in(prompt))
        in_view = any(fact.source_ref == f"file:{path}" for fact in prompt.facts)
        chance = self._chance.random()
        if self.in_haste:
            chance = 1.0
        if chance < 0.04:
            raise ModelError("network", "The line is dead, says the seed.")
        yield TextDelta(f"I think about {path}.")
        yield self._call(prompt, path, in_view, chance)
        yield Done(Usage(100, 10, 0, 0.0), "tool")

    def _call(self, prompt: Prompt, path: str, in_view: bool, chance: float) -> ToolCall:
        identity = f"call-{prompt.wave}-1"
        if chance < 0.08:
            return ToolCall(identity, "edit_file", '{"path": ')
        if chance < 0.11:
            return _tool_call(identity, "no_such_tool", path=path)
        if not in_view and chance < 0.9:
            items = [f"file:{path}", *([f"file:{path}.missing"] if chance < 0.2 else [])]
            return _tool_call(
                identity, "request_context", purpose="add", question="what is there?", scope=items
            )
        if chance < 0.85:
            self.lines += 1
            line = f"line {self.lines}\n"
            return _tool_call(identity, "edit_file", path=path, old=END, new=line + END)
        return _tool_call(identity, "finish", status="done", summary=f"{path} has its lines.")


def _path_in(prompt: Prompt) -> str:
    words = " ".join([prompt.system, *(message.text for message in prompt.messages)])
    return next(
        word for word in words.split() if word.startswith("file-") and word.endswith(".txt")
    )


def _tool_call(identity: str, name: str, **arguments: Any) -> ToolCall:
    return ToolCall(identity, name, json.dumps(arguments))


class Simulation:
    """One seed's world: a project in ``folder``, its store, and who acts in it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._chance = random.Random(seed)
        self._folder = folder
        self._root = folder / "project"
        self._clock = VirtualClock()
        self._ids = CountingIds()
        self._model = PlayedModel(random.Random(seed + 1))
        self._begun = 0
        self._open: list[str] = []
        self.deaths = 0
        self.faults = 0

        class Connection(FailingStatements):
            pass

        self._connection = Connection

    async def run(self, steps: int) -> Verdict:
        """Take ``steps`` steps, let everything come to its end, and judge what is there then."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._root.mkdir(parents=True)
        os.environ["COCKPIT_STATE_DIR"] = str(self._folder / "state")
        taken = 0
        while taken < steps:
            async with self._process() as runtime:
                with contextlib.suppress(_Death):
                    while taken < steps:
                        taken += 1
                        await self._step(runtime)
        self._model.in_haste = True
        self._connection.left = None
        for _ in range(3):
            async with self._process() as runtime:
                await self._finish(runtime)
        return self._judge()

    def digest(self) -> str:
        """Digest the journal and the files: the same for the same seed."""
        place = locate_project(self._root)
        summed = hashlib.sha256()
        with contextlib.closing(sqlite3.connect(place.database)) as connection:
            for row in connection.execute("SELECT * FROM journal ORDER BY seq"):
                summed.update(repr(row).encode())
        for path in sorted(self._root.glob("*.txt")):
            summed.update(path.name.encode() + path.read_bytes())
        return summed.hexdigest()

    @contextlib.asynccontextmanager
    async def _process(self) -> AsyncIterator[Runtime]:
        """A process of cockpit, from its start to its end or its death."""
        self._connection.left = None
        place = locate_project(self._root)
        place.prepare()
        settings = RuntimeSettings(
            user_dir=self._folder / "user", limits=Limits(max_waves=12, deadline_s=3600)
        )
        store = Store.open(place.database, self._clock, self._ids, factory=self._connection)
        try:
            async with runtime_over(store, place, settings) as runtime:
                runtime.engine.models[MODEL] = self._model
                yield runtime
        finally:
            self._connection.left = None
            store.close()

    async def _step(self, runtime: Runtime) -> None:
        self._clock.advance(self._chance.choice((0.001, 1, 60)))
        steps = (
            (30, self._go_on), (6, self._start), (6, self._change_backlog), (3, self._say),
            (2, self._fail_once), (1, self._die), (1, self._move_clock), (1, self._pass_deadline),
        )  # fmt: skip
        (step,) = self._chance.choices([step for _, step in steps], [odds for odds, _ in steps])
        try:
            await step(runtime)
        except CockpitError as error:
            if error.code == "store_busy":
                raise
        except ModelError:
            return

    async def _start(self, runtime: Runtime) -> None:
        if len(self._open) >= OPEN_SESSIONS:
            return
        self._begun += 1
        path = f"file-{self._begun}.txt"
        (self._root / path).write_text(END)
        policy = self._chance.choice(("all", "ask"))
        self._open.append(
            await runtime.start(
                f"implement lines in {path} now", model=MODEL, policy=policy, interactive=False
            )
        )

    async def _go_on(self, runtime: Runtime) -> None:
        """Let a session run until it ends, waits for the user, or fails; then decide what waits."""
        if not self._open:
            return
        session_id = self._chance.choice(self._open)
        await self._run(runtime, session_id, self._decide)

    async def _run(self, runtime: Runtime, session_id: str, decide: Any) -> None:
        running = asyncio.create_task(runtime.run(session_id))
        try:
            async with asyncio.timeout(_TURN_S):
                while not running.done():
                    waiting = await self._waiting(runtime, running, session_id)
                    if waiting is not None and not await decide(runtime, waiting):
                        break
        finally:
            running.cancel()
            ended = (await asyncio.gather(running, return_exceptions=True))[0]
            self._note_end(runtime, session_id)
        if isinstance(ended, BaseException) and not isinstance(
            ended, asyncio.CancelledError | CockpitError | ModelError
        ):
            raise ended

    async def _waiting(
        self, runtime: Runtime, running: asyncio.Task[Any], session_id: str
    ) -> str | None:
        """Wait until the session waits for a decision; returns the proposal, or None when it ended."""
        while not running.done():
            with contextlib.suppress(CockpitError):
                session = runtime.store.read_now(lambda c: sessions.load(c, session_id))
                if session.status == "waiting":
                    for proposal in runtime.store.read_now(
                        lambda c: proposals.select_for_session(c, session_id)
                    ):
                        # One past its deadline expires: the user is too late, however fast both are.
                        is_due = proposal.expires_at is not None and (
                            proposal.expires_at <= format_time(self._clock.now())
                        )
                        if proposal.status == "pending" and not is_due:
                            return proposal.proposal_id
            await asyncio.sleep(0.001)
        return None

    async def _decide(self, runtime: Runtime, proposal_id: str) -> bool:
        """Decide as users do; returns whether the session goes on at once."""
        chance = self._chance.random()
        if chance < 0.75:
            await runtime.approve(proposal_id)
        elif chance < 0.85:
            await runtime.reject(proposal_id, reason="not like this")
        elif chance < 0.95:
            await runtime.discuss(proposal_id, words="why this?")
        else:
            return False
        return True

    async def _say(self, runtime: Runtime) -> None:
        if self._open:
            await runtime.say(self._chance.choice(self._open), "Mind the commas.")

    async def _change_backlog(self, runtime: Runtime) -> None:
        known = runtime.store.read_now(tasks.select)
        if len(known) < 3 or self._chance.random() < 0.2:
            title = f"Task {len(known) + 1}"
            await runtime.store.write(lambda tx: service.create_task(tx, title, by="person"))
            return
        task = self._chance.choice(known)
        status = self._chance.choice(("in_progress", "done", "todo"))
        await runtime.store.write(
            lambda tx: service.set_status(tx, task.task_id, status, by="person")
        )

    async def _fail_once(self, runtime: Runtime) -> None:
        """Let one statement of what comes next fail."""
        self.faults += 1
        self._connection.failures = 1
        self._connection.left = self._chance.randrange(400)
        try:
            await self._go_on(runtime)
        finally:
            self._connection.left = None

    async def _die(self, runtime: Runtime) -> None:
        """Let every statement from some moment on fail: nothing that this process does is stored then."""
        self.deaths += 1
        self._connection.failures = 1_000_000
        self._connection.left = self._chance.randrange(400)
        with contextlib.suppress(CockpitError):
            await self._go_on(runtime)
        raise _Death

    async def _move_clock(self, runtime: Runtime) -> None:
        self._clock.jump(self._chance.choice((-86_400, -3600, -1, 3600)))

    async def _pass_deadline(self, runtime: Runtime) -> None:
        self._clock.advance(4000)

    def _note_end(self, runtime: Runtime, session_id: str) -> None:
        with contextlib.suppress(CockpitError):
            session = runtime.store.read_now(lambda c: sessions.load(c, session_id))
            if session.status == "completed" and session_id in self._open:
                self._open.remove(session_id)

    async def _finish(self, runtime: Runtime) -> None:
        """Let every session come to its end; the user approves everything."""

        async def approve(runtime: Runtime, proposal_id: str) -> bool:
            await runtime.approve(proposal_id)
            return True

        for session_id in tuple(self._open):
            for _ in range(20):
                if session_id not in self._open:
                    break
                # The lease of one that died here names this process, which lives: it runs out.
                self._clock.advance(LEASE_S)
                await runtime.change(session_id, limits=Limits(max_waves=1000))
                with contextlib.suppress(CockpitError, ModelError):
                    await runtime.say(session_id, "Come to an end.")
                    await self._run(runtime, session_id, approve)

    def _judge(self) -> Verdict:
        verdict = Verdict()
        place = locate_project(self._root)
        with Store.open(place.database) as store:
            verified = store.read_now(verify_chain.verify)
            if not verified.ok:
                verdict.lost.append(f"the journal does not verify: {verified}")
            verdict.stranded += [f"{session_id} has not ended" for session_id in self._open]
            for session in store.read_now(lambda c: sessions.select_recent(c, 100_000)):
                actions = store.read_now(
                    lambda c, session=session: outbox.select_for_session(c, session.session_id)
                )
                for action in actions:
                    self._judge_action(action, verdict)
        return verdict

    def _judge_action(self, action: outbox.OutboxAction, verdict: Verdict) -> None:
        if action.action_type != "edit_file":
            return
        text = (self._root / str(action.payload["path"])).read_text()
        line = str(action.payload["new"]).removesuffix(END)
        times = text.splitlines(keepends=True).count(line)
        if times > 1:
            verdict.doubled.append(f"{line.strip()!r} is there {times} times")
        if (times == 1) != (action.phase == "confirmed"):
            verdict.lost.append(f"{line.strip()!r}: {times} times, action {action.phase}")
        if action.phase in ("queued", "dispatched", "uncertain"):
            verdict.stranded.append(f"{line.strip()!r} is {action.phase}")


class _Death(BaseException):
    """The process of cockpit died."""
