"""Running an outside agent for one session: started, listened to, journalled, ended.

What it says of its end decides, and only that: a run without a finish counts as crashed. Source: design
of work, "The runner of a session is configurable".
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cockpit.access.token_scopes import AGENT_SCOPES, WORK_WRITE
from cockpit.agents.agent_command import build_argv, build_environment, placeholders_in
from cockpit.agents.agent_process import AgentProcess, run_agent_process
from cockpit.agents.bounded_lines import LONGEST_LINE
from cockpit.agents.final_status import read_status
from cockpit.agents.journal_stream import AgentRun, StreamJournal
from cockpit.agents.run_folder import (
    RunFolder,
    cockpit_variables,
    create_run_folder,
    remove_run_folder,
)
from cockpit.agents.session_lease import hold_session
from cockpit.agents.stream_events import Finish, UnreadableLine, UsageUpdate
from cockpit.agents.stream_formats import open_stream
from cockpit.core.errors import Stale
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.secrets import mask
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.agents import RunnerEnded, RunnerStarted
from cockpit.store.journal.details.sessions import SessionCompleted, SessionFailed, SessionStopped
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import sessions

Status = Literal["finished", "crashed", "stopped", "limit"]
_SAID = 2_000


@dataclass(frozen=True, slots=True)
class RunnerOutcome:
    """How a run ended.

    ``text`` is the agent's last message; ``reason`` says what went wrong when it did not finish.
    ``tokens`` and ``cost_usd`` are this run's; ``exit_code`` is negative when a signal ended it.
    """

    status: Status
    text: str
    tokens: int
    cost_usd: float | None
    exit_code: int
    reason: str = ""


async def run_agent(
    store: Store,
    place: ProjectPaths,
    runner: RunnerSettings,
    *,
    session_id: str,
    prompt: str,
    worktree: Path,
    task_id: str | None,
    stop: asyncio.Event | None = None,
    environment: Mapping[str, str] | None = None,
    policy: str = "ask",
    scopes: frozenset[str] = AGENT_SCOPES,
    max_tokens: int | None = None,
) -> RunnerOutcome:
    """Have the agent do what ``prompt`` says in ``worktree``, and put the session where it ended.

    ``stop`` ends it; ``environment`` is what it gets after cleaning; ``policy`` what its hooks allow
    without a person; ``scopes`` what its token opens; ``max_tokens`` ends it when it has spent
    more that no cache gave.
    Cancelled, it ends the agent and leaves the session stopped. Raises ``Stale`` when another process
    has the session, ``RunnerTrouble`` and ``ProgramMissing`` for a command that cannot be run.
    """
    async with hold_session(store, session_id) as lost:
        given = await create_run_folder(
            store,
            place,
            session_id=session_id,
            task_id=task_id or "",
            prompt=prompt,
            scopes=scopes,
            lasts_s=runner.timeout_s,
        )
        run = _Run(store, runner, session_id, task_id, worktree, WORK_WRITE in scopes)
        try:
            around = environment or {}
            variables = cockpit_variables(
                given, around, task_id=task_id or "", policy=policy, works=WORK_WRITE in scopes
            )
            env = build_environment(runner, around, variables)
            return await run.through(given, prompt, env, stop, lost, max_tokens)
        except asyncio.CancelledError:
            await asyncio.shield(run.stopped())
            raise
        except Stale:
            raise
        except Exception as error:
            await run.failed(getattr(error, "code", type(error).__name__), str(error))
            raise
        finally:
            await asyncio.shield(remove_run_folder(store, given))


def count_runs(connection: sqlite3.Connection, session_id: str) -> int:
    """How often an agent was started for the session."""
    (count,) = connection.execute(
        "SELECT count(*) FROM journal WHERE session_id=? AND action=?",
        (session_id, str(Action.RUNNER_STARTED)),
    ).fetchone()
    return int(count)


class _Run:
    """One run of the agent."""

    def __init__(
        self,
        store: Store,
        runner: RunnerSettings,
        session_id: str,
        task_id: str | None,
        worktree: Path,
        works: bool,
    ) -> None:
        self._store = store
        self._runner = runner
        self._session_id = session_id
        self._task_id = task_id
        self._worktree = worktree
        self._works = works

    async def through(
        self,
        given: RunFolder,
        prompt: str,
        env: Mapping[str, str],
        stop: asyncio.Event | None,
        lost: asyncio.Event,
        max_tokens: int | None,
    ) -> RunnerOutcome:
        """Start it, take in what it tells, and conclude."""
        runner, task = self._runner, self._task_id or ""
        argv = build_argv(runner, given.values(prompt, self._worktree, task, self._session_id))
        placed = placeholders_in(runner)
        number = await self._store.write(self._started)
        part = AgentRun(
            self._session_id,
            self._task_id,
            runner.name,
            self._worktree,
            number,
            captures=self._works and "hooks" not in placed,
        )
        telling, stream, spent_all = (
            StreamJournal(self._store, part),
            open_stream(runner.format),
            False,
        )
        enough = asyncio.Event()

        async def take(line: str | None) -> None:
            nonlocal spent_all
            if line is None:
                await telling.take(
                    UnreadableLine(f"a line of more than {LONGEST_LINE} bytes: passed over")
                )
                return
            for told in stream.take(line):
                await telling.take(told)
                if isinstance(told, UsageUpdate) and max_tokens and told.spent.fresh > max_tokens:
                    spent_all = True
                    enough.set()

        stdin = None if placed & {"prompt", "prompt_file"} else prompt.encode("utf-8", "replace")
        finish: Finish | None = None
        try:
            talked = await run_agent_process(
                argv,
                cwd=self._worktree,
                env=env,
                stdin=stdin,
                timeout_s=runner.timeout_s,
                max_bytes=runner.max_output_mb * 1024 * 1024,
                off=[event for event in (stop, lost, enough) if event is not None],
                began=given.mark,
                take=take,
            )
            finish = stream.close(talked.code)
        finally:
            await asyncio.shield(telling.close(finish))
        if lost.is_set():
            raise Stale(f"Session {self._session_id} was taken over by another process.")
        limit = f"The limit of {max_tokens:,} tokens is reached." if spent_all else ""
        outcome = self._outcome(talked, finish, telling, limit)
        await self._store.write(lambda tx: self._ended(tx, outcome, telling))
        return outcome

    def _outcome(
        self, talked: AgentProcess, finish: Finish | None, telling: StreamJournal, limit: str
    ) -> RunnerOutcome:
        text = finish.text if finish is not None and finish.ok else ""
        status: Status
        # One that told its finish and then hangs has finished.
        if finish is not None and finish.ok and (talked.code == 0 or talked.why == "timeout"):
            status, reason = "finished", ""
        elif limit:
            status, reason = "limit", limit
        elif talked.why == "called_off":
            status, reason = "stopped", "interrupted"
        else:
            status, reason = "crashed", self._wrong(talked, finish)
        return RunnerOutcome(
            status, text, telling.spent.tokens, telling.spent.cost_usd, talked.code, reason
        )

    def _wrong(self, talked: AgentProcess, finish: Finish | None) -> str:
        name, limits = f"Runner {self._runner.name}", self._runner
        said = f" It said: {finish.text}" if finish is not None and not finish.ok else ""
        if talked.why == "timeout":
            words = f"{name} did not end within {limits.timeout_s:g} s and was ended."
        elif talked.why == "output":
            words = f"{name} wrote more than {limits.max_output_mb} MiB and was ended."
        elif talked.code < 0:
            words = f"{name} was ended by signal {-talked.code}."
        elif finish is not None and finish.ok:
            words = f"{name} ended with exit code {talked.code} after its finish."
        else:
            words = f"{name} ended with exit code {talked.code} and without a finish."
        errors = talked.errors.splitlines()[-3:]
        more = f" Its last words: {' / '.join(errors)}" if errors and not said else ""
        return mask(f"{words}{said}{more}")[:_SAID]

    def _started(self, tx: Tx) -> int:
        sessions.set_status(tx, self._session_id, "running")
        number = count_runs(tx.connection, self._session_id) + 1
        started = RunnerStarted(
            runner=self._runner.name,
            program=Path(self._runner.command[0]).name,
            format=self._runner.format,
            task_id=self._task_id or "",
            number=number,
        )
        tx.journal(started, session_id=self._session_id)
        return number

    def _ended(self, tx: Tx, outcome: RunnerOutcome, telling: StreamJournal) -> None:
        ended = RunnerEnded(
            runner=self._runner.name,
            status=outcome.status,
            message=outcome.reason,
            exit_code=outcome.exit_code,
            agent_session=telling.agent_session,
            odd_lines=telling.odd,
        )
        wrong = outcome.status == "crashed"
        tx.journal(
            ended,
            session_id=self._session_id,
            result="error" if wrong else "ok",
            error_code="runner_crashed" if wrong else "",
        )
        status, summary = read_status(outcome.text)
        match outcome.status:
            case "finished":
                self._complete(tx, status, summary)
            case "limit":
                self._complete(tx, "limit", outcome.reason)
            case "stopped":
                self._stop(tx)
            case _:
                self._fail(tx, "runner_crashed", outcome.reason)

    def _complete(self, tx: Tx, status: str, summary: str) -> None:
        completed = SessionCompleted(status=status, summary=summary)
        result = {"status": status, "summary": summary}
        sessions.set_status(tx, self._session_id, "completed", detail=completed, result=result)

    def _fail(self, tx: Tx, code: str, message: str) -> None:
        sessions.set_status(
            tx,
            self._session_id,
            "failed",
            error_code=code,
            detail=SessionFailed(message=message),
            result={"status": "failed", "summary": message},
        )

    def _stop(self, tx: Tx) -> None:
        why = SessionStopped(reason="interrupted")
        sessions.set_status(tx, self._session_id, "stopped", actor="person", detail=why)

    async def stopped(self) -> None:
        """The session is stopped and can be taken up again."""
        await self._store.write(self._stop)

    async def failed(self, code: str, words: str) -> None:
        """The agent could not be run at all, or not be listened to."""
        await self._store.write(lambda tx: self._fail(tx, code, words[:_SAID]))
