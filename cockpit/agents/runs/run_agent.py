"""Running an external agent in one session: started, journalled, and ended.

Only the agent's own reported end counts as finished; a run without it has crashed. See
``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import UNSET, Struct

from cockpit.access.token_scopes import AGENT_SCOPES, WORK_WRITE
from cockpit.act.sandbox.bubblewrap import Sandbox, detect
from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.agents.confine.agent_sandbox import AgentLaunch, launch_agent, why_unconfined
from cockpit.agents.runs.agent_command_line import build_argv, build_environment, placeholders_in
from cockpit.agents.runs.agent_process import LONGEST_LINE, AgentProcess, run_agent_process
from cockpit.agents.runs.run_folder import RunFolder, open_run
from cockpit.agents.runs.run_rows import (
    LONGEST_ERROR,
    complete_session,
    fail_session,
    record_start,
    stop_session,
)
from cockpit.agents.runs.spending_limit import SpendingLimit
from cockpit.agents.runs.watch_checkouts import watch_checkouts
from cockpit.agents.stdio.claude_dialogue import AnswerForm, ClaudeDialogue, schema_text
from cockpit.agents.stdio.permissions import Ask, Permissions
from cockpit.agents.streams.agent_journal import AgentJournal, AgentRun
from cockpit.agents.streams.final_status import read_status
from cockpit.agents.streams.stream_events import Finish, UnreadableLine
from cockpit.agents.streams.stream_formats import Stream, open_stream
from cockpit.core.errors import Stale
from cockpit.core.failure_lines import pick_failure_lines
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.secrets import mask
from cockpit.loop.permissions.ask_permission import PermissionAnswer
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.loop.permissions.withdrawal import AGENT_ENDED, STOPPED, Withdrawal
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.agents import RunnerEnded
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session

Status = Literal["finished", "crashed", "stopped", "limit", "unanswered"]
_MOST_WAITING_S = 7 * 86_400.0
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
    session = await store.read(lambda connection: sessions.load(connection, session_id))
    async with open_run(
        store,
        place,
        session,
        prompt=prompt,
        scopes=scopes,
        # Waiting for the user is not the agent's time.
        lasts_s=runner.timeout_s + (_MOST_WAITING_S if runner.protocol else 0),
        # What a protocol asks for is decided in the queue; hooks only deny.
        policy="ask" if runner.protocol else policy,
        environment=environment or {},
        asks=bool(runner.protocol),
    ) as run_folder:
        sandbox = await detect(environment or {}, choices)
        env = build_environment(runner, environment or {}, run_folder.variables)
        limit = SpendingLimit(
            runner.name,
            max_tokens=max_tokens,
            max_cost=session.limits.get("max_cost"),
            spent=session.cost_usd or 0.0,
            spent_tokens=session.input_tokens + session.output_tokens - session.cached_tokens,
            must_count=must_count,
        )
        if limit.reason:
            await store.write(lambda tx: complete_session(tx, session_id, "limit", limit.reason))
            return RunnerOutcome("limit", "", 0, None, 0, limit.reason)
        works = WORK_WRITE in scopes
        run = _Run(store, place, runner, session, worktree, works, sandbox, limit, stop)
        return await run.run(run_folder, prompt, env, ask or _refuse, form)


async def _refuse(request: ToolRequest, withdrawn: Withdrawal) -> PermissionAnswer:
    """Answer a permission that cannot be asked for."""
    words = "This run has no user to ask for permissions."
    return PermissionAnswer(False, words, None, "deny rules", "", "decided")


async def _journal_line(
    journal: AgentJournal, stream: Stream, limit: SpendingLimit, line: str | None
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


class _Run(Struct):
    """One run of the agent."""

    store: Store
    place: ProjectPaths
    runner: RunnerSettings
    session: Session
    worktree: Path
    works: bool
    sandbox: Sandbox
    limit: SpendingLimit
    stop: asyncio.Event | None

    async def run(
        self,
        run_folder: RunFolder,
        prompt: str,
        env: Mapping[str, str],
        ask: Ask,
        form: AnswerForm,
    ) -> RunnerOutcome:
        """Start the agent, journal its stream, and record the end."""
        runner, session, limit = self.runner, self.session, self.limit
        values = run_folder.placeholder_values(
            prompt, self.worktree, session.task_id or "", session.session_id, schema_text(form)
        )
        placeholders = placeholders_in(runner)
        unconfined = why_unconfined(self.sandbox, runner)
        stdin = (
            None if placeholders & {"prompt", "prompt_file"} else prompt.encode("utf-8", "replace")
        )
        dialogue = permissions = None
        if runner.protocol:
            permissions = Permissions(ask, works=self.works, confined=not unconfined)
            dialogue = ClaudeDialogue(prompt, permissions, cwd=str(self.worktree))
        stream: Stream = dialogue or open_stream(runner.format, runner.command)
        must_end = None if permissions is None else permissions.must_end
        events = (self.stop, run_folder.lost, limit.reached, must_end)
        spoken = runner.protocol or runner.format
        # Before the run is begun in the store: a command that cannot be built never starts.
        build_argv(runner, values, env.get("PATH"))
        number = await self.store.write(
            lambda tx: record_start(tx, session, runner, spoken, unconfined)
        )
        run = AgentRun(
            session.session_id,
            session.task_id,
            runner.name,
            self.worktree,
            number,
            captures=self.works and "hooks" not in placeholders,
        )
        journal = AgentJournal(self.store, run)
        finish: Finish | None = None
        ending = STOPPED
        notes: list[str] = []
        try:
            async with (
                self._watch(unconfined, journal),
                self._launch(values, env, unconfined) as launch,
            ):
                notes = launch.notes

                def on_start(pid: int) -> None:
                    run_folder.record_process(pid)
                    launch.begin(pid)

                process = await run_agent_process(
                    launch.argv,
                    cwd=self.worktree,
                    env=launch.environment,
                    stdin=stdin,
                    timeout_s=runner.timeout_s,
                    max_bytes=runner.max_output_mb * 1024 * 1024,
                    stop_events=[event for event in events if event is not None],
                    on_start=on_start,
                    on_line=partial(_journal_line, journal, stream, limit),
                    files=launch.files,
                    talk=dialogue,
                )
                ending = AGENT_ENDED if process.end == "ended" else STOPPED
                launch.note_end()
                finish = stream.close(process.exit_code)
                limit.check_finish(stream, finish)
        finally:
            if permissions is not None:
                await asyncio.shield(permissions.close(ending))
            for note in notes:
                await asyncio.shield(journal.note(note))
            await asyncio.shield(journal.end_stream(finish, limit.estimate))
        if run_folder.lost.is_set():
            raise Stale(f"Another process took session {session.session_id} over.")
        if permissions is not None and permissions.failure is not None:
            raise permissions.failure
        outcome = self._outcome(
            process, finish, journal, "" if permissions is None else permissions.unanswered
        )
        tools = journal.tools if stream.reports_usage else None
        refused = finish.refused if finish is not None else ()
        await self.store.write(lambda tx: self._record_end(tx, outcome, journal, tools, refused))
        return outcome

    def _watch(self, unconfined: str, journal: AgentJournal) -> AbstractAsyncContextManager[None]:
        if not unconfined:
            return nullcontext()
        return watch_checkouts(self.place, self.worktree, self.runner.name, journal.note)

    def _launch(
        self, values: Mapping[str, str], env: Mapping[str, str], unconfined: str
    ) -> AbstractAsyncContextManager[AgentLaunch]:
        return launch_agent(
            self.sandbox,
            self.runner,
            lambda inner: build_argv(self.runner, inner, env.get("PATH")),
            values,
            env,
            self.worktree,
            unconfined=unconfined,
        )

    def _outcome(
        self,
        process: AgentProcess,
        finish: Finish | None,
        journal: AgentJournal,
        unanswered: str,
    ) -> RunnerOutcome:
        limit = self.limit
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
        name, limits = f"Runner {self.runner.name}", self.runner
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
        return mask(f"{message}{reported}{stderr}")[:LONGEST_ERROR]

    def _record_end(
        self,
        tx: Tx,
        outcome: RunnerOutcome,
        journal: AgentJournal,
        tools: int | None,
        refused: tuple[str, ...],
    ) -> None:
        session_id = self.session.session_id
        ended = RunnerEnded(
            runner=self.runner.name,
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
            session_id=session_id,
            result="error" if crashed else "ok",
            error_code="runner_crashed" if crashed else "",
        )
        status, summary = read_status(outcome.text)
        match outcome.status:
            case "finished":
                complete_session(tx, session_id, status, summary)
            case "limit":
                complete_session(tx, session_id, "limit", outcome.reason)
            case "unanswered":
                complete_session(tx, session_id, "blocked", outcome.reason)
            case "stopped":
                stop_session(tx, session_id)
            case _:
                fail_session(tx, session_id, "runner_crashed", outcome.reason)
