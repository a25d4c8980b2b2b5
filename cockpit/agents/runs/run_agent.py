"""Running an external agent in one session: started, journalled, and ended.

Only the agent's own reported end counts as finished; a run without it has crashed. See
``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import UNSET, Struct

from cockpit.access.token_scopes import AGENT_SCOPES, WORK_WRITE
from cockpit.act.sandbox.bubblewrap import Sandbox, detect
from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.agents.confine.agent_sandbox import AgentLaunch, confine_agent, why_unconfined
from cockpit.agents.runs.agent_command_line import build_argv, build_environment, placeholders_in
from cockpit.agents.runs.agent_process import LONGEST_LINE, AgentProcess, run_agent_process
from cockpit.agents.runs.run_folder import (
    RunFolder,
    cockpit_variables,
    create_run_folder,
    remove_run_folder,
)
from cockpit.agents.runs.spending_limit import SpendingLimit
from cockpit.agents.runs.watch_checkouts import watch_checkouts
from cockpit.agents.stdio.answer_schema import AnswerForm, schema_text
from cockpit.agents.stdio.claude_dialogue import ClaudeDialogue
from cockpit.agents.stdio.permissions import Ask, Permissions
from cockpit.agents.streams.final_status import read_status
from cockpit.agents.streams.journal_agent_stream import AgentRun, StreamJournal
from cockpit.agents.streams.stream_events import Finish, UnreadableLine
from cockpit.agents.streams.stream_formats import Stream, open_stream
from cockpit.core.errors import Stale
from cockpit.core.failure_lines import pick_failure_lines
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.secrets import mask
from cockpit.core.text import end_sentence
from cockpit.loop.permissions.ask_permission import PermissionAnswer
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.loop.permissions.withdrawal import AGENT_ENDED, STOPPED, Withdrawal
from cockpit.loop.planner.follow_session import learn_session
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.agents import RunnerEnded, RunnerNoted, RunnerStarted
from cockpit.store.journal.details.sessions import SessionCompleted, SessionFailed, SessionStopped
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import sessions
from cockpit.store.sessions.hold_session import hold_session

Status = Literal["finished", "crashed", "stopped", "limit", "unanswered"]
_MOST_WAITING_S = 7 * 86_400.0
_MAX_MESSAGE = 2_000
_LAST_LINES = 3
"""Lines of a program's errors that its end tells, after two that say what failed."""


class RunnerOutcome(Struct, frozen=True):
    """How a run ended."""

    status: Status
    text: str
    """The agent's last message."""
    tokens: int
    """Tokens of this run."""
    cost_usd: float | None
    exit_code: int
    """Negative: the number of the signal that ended it."""
    reason: str = ""
    """Why the run did not finish."""


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
    must_count: bool = False,
    choices: SandboxChoices | None = None,
    ask: Ask | None = None,
    form: AnswerForm = "status",
) -> RunnerOutcome:
    """Run the agent with ``prompt`` in ``worktree``, and end the session as the run ended.

    ``stop`` ends the run. ``environment`` is cleaned before the agent gets it. ``policy`` is what its
    hooks allow without the user, ``scopes`` what its token allows. ``max_tokens`` limits the tokens
    that no cache provided; with ``must_count`` an agent that reports none is refused. The session's own
    ``max_cost`` limits what its runs cost. ``ask`` decides the permissions that an agent with a protocol asks
    for; without it all are refused. ``form`` is that of its last answer. Cancelled, it ends
    the agent and leaves the session stopped. Raises ``Stale`` when another process holds the session,
    ``RunnerError`` and ``ProgramMissing`` for a command that cannot run.
    """
    async with hold_session(store, session_id) as lost:
        run_folder = await create_run_folder(
            store,
            place,
            session_id=session_id,
            task_id=task_id or "",
            prompt=prompt,
            scopes=scopes,
            # Waiting for the user is not the agent's time.
            lasts_s=runner.timeout_s + (_MOST_WAITING_S if runner.protocol else 0),
            # What a protocol asks for is decided in the queue; hooks only deny.
            policy="ask" if runner.protocol else policy,
            asks=bool(runner.protocol),
        )
        sandbox = await detect(environment or {}, choices)
        works = WORK_WRITE in scopes
        run = _Run(store, place, runner, session_id, task_id, worktree, works, sandbox)
        try:
            base_environment = environment or {}
            variables = cockpit_variables(
                run_folder,
                base_environment,
                session_id=session_id,
                task_id=task_id or "",
                # What a protocol asks for is decided in the queue; hooks only deny.
                policy="ask" if runner.protocol else policy,
                works=works,
            )
            env = build_environment(runner, base_environment, variables)
            session = await store.read(lambda connection: sessions.load(connection, session_id))
            limit = SpendingLimit(
                runner.name,
                max_tokens=max_tokens,
                max_cost=session.limits.get("max_cost"),
                spent=session.cost_usd or 0.0,
                spent_tokens=session.input_tokens + session.output_tokens - session.cached_tokens,
                must_count=must_count,
            )
            return await run.run(run_folder, prompt, env, stop, lost, limit, ask or _refuse, form)
        except asyncio.CancelledError:
            await asyncio.shield(run.stop_session())
            raise
        except Stale:
            raise
        except Exception as error:
            await run.fail_session(getattr(error, "code", type(error).__name__), str(error))
            raise
        finally:
            await asyncio.shield(remove_run_folder(store, run_folder))


async def _refuse(request: ToolRequest, withdrawn: Withdrawal) -> PermissionAnswer:
    """Answer a permission that cannot be asked for."""
    words = "This run has no user to ask for permissions."
    return PermissionAnswer(False, words, None, "deny rules", "", "decided")


def count_runs(connection: sqlite3.Connection, session_id: str) -> int:
    """Return how often an agent was started for the session."""
    (count,) = connection.execute(
        "SELECT count(*) FROM journal WHERE session_id=? AND action=?",
        (session_id, str(Action.RUNNER_STARTED)),
    ).fetchone()
    return int(count)


async def _journal_line(
    journal: StreamJournal, stream: Stream, limit: SpendingLimit, line: str | None
) -> None:
    """Journal the events of a line of the agent's output; None is a line that was too long."""
    if line is None:
        message = f"a line of more than {LONGEST_LINE} bytes: skipped"
        await journal.record(UnreadableLine(message))
        return
    for event in stream.feed(line):
        await journal.record(event)
        await limit.check(event)
    limit.check_format(stream)


class _Run:
    """One run of the agent."""

    def __init__(
        self,
        store: Store,
        place: ProjectPaths,
        runner: RunnerSettings,
        session_id: str,
        task_id: str | None,
        worktree: Path,
        works: bool,
        sandbox: Sandbox,
    ) -> None:
        self._store = store
        self._place = place
        self._runner = runner
        self._session_id = session_id
        self._task_id = task_id
        self._worktree = worktree
        self._works = works
        self._sandbox = sandbox

    async def run(
        self,
        run_folder: RunFolder,
        prompt: str,
        env: Mapping[str, str],
        stop: asyncio.Event | None,
        lost: asyncio.Event,
        limit: SpendingLimit,
        ask: Ask,
        form: AnswerForm,
    ) -> RunnerOutcome:
        """Start the agent, journal its stream, and record the end."""
        if limit.reason:
            spent = RunnerOutcome("limit", "", 0, None, 0, limit.reason)
            await self._store.write(lambda tx: self._complete(tx, "limit", limit.reason))
            return spent
        runner, task_id = self._runner, self._task_id or ""
        values = run_folder.placeholder_values(
            prompt, self._worktree, task_id, self._session_id, schema_text(form)
        )
        argv = build_argv(runner, values, env.get("PATH"))
        placeholders = placeholders_in(runner)
        unconfined = why_unconfined(self._sandbox, runner)
        number = await self._store.write(lambda tx: self._record_start(tx, unconfined))
        run = AgentRun(
            self._session_id,
            self._task_id,
            runner.name,
            self._worktree,
            number,
            captures=self._works and "hooks" not in placeholders,
        )
        journal = StreamJournal(self._store, run)
        dialogue = permissions = None
        if runner.protocol:
            permissions = Permissions(ask, works=self._works, confined=not unconfined)
            dialogue = ClaudeDialogue(prompt, permissions, cwd=str(self._worktree))
        stream: Stream = dialogue or open_stream(runner.format, runner.command)

        must_end = None if permissions is None else permissions.must_end
        events = (stop, lost, limit.reached, must_end)
        stdin = (
            None if placeholders & {"prompt", "prompt_file"} else prompt.encode("utf-8", "replace")
        )
        finish: Finish | None = None
        ending = STOPPED
        notes: list[str] = []
        try:
            async with self._confine(values, env, unconfined) as launch:
                if launch is not None:
                    notes = launch.notes

                def on_start(pid: int) -> None:
                    run_folder.record_process(pid)
                    if launch is not None:
                        launch.watched.begin(pid)

                process = await run_agent_process(
                    argv if launch is None else launch.argv,
                    cwd=self._worktree,
                    env=env if launch is None else launch.environment,
                    stdin=stdin,
                    timeout_s=runner.timeout_s,
                    max_bytes=runner.max_output_mb * 1024 * 1024,
                    stop_events=[event for event in events if event is not None],
                    on_start=on_start,
                    on_line=partial(_journal_line, journal, stream, limit),
                    files=() if launch is None else launch.files,
                    talk=dialogue,
                )
                ending = AGENT_ENDED if process.end == "ended" else STOPPED
                if launch is not None and launch.watched.reason:
                    notes.append(f"It was ended: {end_sentence(launch.watched.reason)}")
                finish = stream.close(process.exit_code)
                limit.check_finish(stream, finish)
        finally:
            if permissions is not None:
                await asyncio.shield(permissions.close(ending))
            for note in notes:
                await asyncio.shield(self._note(note))
            await asyncio.shield(journal.close(finish, limit.estimate))
        if lost.is_set():
            raise Stale(f"Another process took session {self._session_id} over.")
        if permissions is not None and permissions.failure is not None:
            raise permissions.failure
        outcome = self._outcome(
            process, finish, journal, limit, "" if permissions is None else permissions.unanswered
        )
        tools = journal.tools if stream.reports_usage else None
        refused = finish.refused if finish is not None else ()
        await self._store.write(lambda tx: self._record_end(tx, outcome, journal, tools, refused))
        return outcome

    @asynccontextmanager
    async def _confine(
        self, values: Mapping[str, str], env: Mapping[str, str], unconfined: str
    ) -> AsyncIterator[AgentLaunch | None]:
        """Yield the agent's launch in the sandbox; None where it runs outside."""
        if unconfined:
            name = self._runner.name
            async with watch_checkouts(self._place, self._worktree, name, self._note):
                yield None
            return
        async with confine_agent(
            self._sandbox,
            self._runner,
            lambda inner: build_argv(self._runner, inner, env.get("PATH")),
            values,
            env,
            self._worktree,
        ) as launch:
            yield launch

    def _outcome(
        self,
        process: AgentProcess,
        finish: Finish | None,
        journal: StreamJournal,
        limit: SpendingLimit,
        unanswered: str,
    ) -> RunnerOutcome:
        text = finish.text if finish is not None and finish.ok else ""
        status: Status
        if unanswered:
            status, reason = (
                "unanswered",
                (
                    f"It asked for {unanswered!r}, and the deadline passed without a decision. It did not"
                    " happen."
                ),
            )
        # An agent that reported its end and then hangs has finished.
        elif (
            finish is not None
            and text.strip()
            and not limit.unpriced
            and (process.exit_code == 0 or process.end == "timeout")
        ):
            status, reason = "finished", ""
        elif limit.reason:
            status, reason = "limit", limit.reason
        elif process.end == "called_off":
            status, reason = "stopped", "interrupted"
        else:
            status, reason = "crashed", self._crash_reason(process, finish)
        return RunnerOutcome(
            status, text, journal.usage.tokens, journal.usage.cost_usd, process.exit_code, reason
        )

    def _crash_reason(self, process: AgentProcess, finish: Finish | None) -> str:
        name, limits = f"Runner {self._runner.name}", self._runner
        reported = f" It reported: {finish.text}" if finish is not None and not finish.ok else ""
        if process.end == "timeout":
            message = f"{name} did not end within {limits.timeout_s:g} s and was ended."
        elif process.end == "output":
            message = f"{name} wrote more than {limits.max_output_mb} MiB and was ended."
        elif process.exit_code < 0:
            message = f"{name} was ended by signal {-process.exit_code}."
        elif finish is not None and finish.ok and not finish.text.strip():
            message = f"{name} ended with an empty message."
        elif finish is not None and finish.ok:
            message = f"{name} ended with exit code {process.exit_code} after its finish."
        else:
            message = f"{name} ended with exit code {process.exit_code} and without a finish."
        lines = process.errors.splitlines()
        errors = [*pick_failure_lines("\n".join(lines[:-_LAST_LINES]))[:2], *lines[-_LAST_LINES:]]
        stderr = f" Its last output: {' / '.join(errors)}" if errors and not reported else ""
        return mask(f"{message}{reported}{stderr}")[:_MAX_MESSAGE]

    async def _note(self, message: str) -> None:
        noted = RunnerNoted(message=mask(message)[:_MAX_MESSAGE])
        await self._store.write(lambda tx: tx.journal(noted, session_id=self._session_id))

    def _record_start(self, tx: Tx, unconfined: str) -> int:
        sessions.set_status(tx, self._session_id, "running")
        number = count_runs(tx.connection, self._session_id) + 1
        started = RunnerStarted(
            runner=self._runner.name,
            program=Path(self._runner.command[0]).name,
            format=self._runner.protocol or self._runner.format,
            task_id=self._task_id or "",
            number=number,
            sandbox=unconfined or "bubblewrap",
        )
        tx.journal(started, session_id=self._session_id)
        return number

    def _record_end(
        self,
        tx: Tx,
        outcome: RunnerOutcome,
        journal: StreamJournal,
        tools: int | None,
        refused: tuple[str, ...],
    ) -> None:
        ended = RunnerEnded(
            runner=self._runner.name,
            status=outcome.status,
            message=outcome.reason,
            exit_code=outcome.exit_code,
            agent_session=journal.agent_session,
            odd_lines=journal.unreadable,
            tools=UNSET if tools is None else tools,
            refused=refused or UNSET,
        )
        crashed = outcome.status == "crashed"
        tx.journal(
            ended,
            session_id=self._session_id,
            result="error" if crashed else "ok",
            error_code="runner_crashed" if crashed else "",
        )
        status, summary = read_status(outcome.text)
        match outcome.status:
            case "finished":
                self._complete(tx, status, summary)
            case "limit":
                self._complete(tx, "limit", outcome.reason)
            case "unanswered":
                self._complete(tx, "blocked", outcome.reason)
            case "stopped":
                self._stop(tx)
            case _:
                self._fail(tx, "runner_crashed", outcome.reason)

    def _complete(self, tx: Tx, status: str, summary: str) -> None:
        completed = SessionCompleted(status=status, summary=summary)
        result = {"status": status, "summary": summary}
        learn_session(tx, sessions.load(tx.connection, self._session_id), status)
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
        detail = SessionStopped(reason="interrupted")
        sessions.set_status(tx, self._session_id, "stopped", actor="person", detail=detail)

    async def stop_session(self) -> None:
        """Mark the session as stopped; it can be resumed."""
        await self._store.write(self._stop)

    async def fail_session(self, code: str, message: str) -> None:
        """Mark the session as failed: the agent could not run, or its stream could not be read."""
        await self._store.write(lambda tx: self._fail(tx, code, message[:_MAX_MESSAGE]))
