"""The journal of an agent that cockpit started: its events as rows like those of any session.

It serves every agent, whatever protocol that speaks. A repeated row of the same thing is journalled at most
four times a second, and each turn has a bounded number of rows: what is left out is counted and said. So a
flood costs the agent's time and not the store. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from cockpit.agents.streams.account_usage import record_usage
from cockpit.agents.streams.seen_reads import SeenReads
from cockpit.agents.streams.stream_events import (
    AgentMessage,
    AgentStarted,
    Finish,
    Latest,
    MessageEnd,
    StreamEvent,
    TextPiece,
    Thought,
    TokenUsage,
    ToolEnded,
    ToolStarted,
    UnreadableLine,
    UsageUpdate,
)
from cockpit.agents.streams.stream_formats import LONGEST_TEXT
from cockpit.core.errors import NotFound
from cockpit.core.failure_lines import clip_middle
from cockpit.core.secrets import mask
from cockpit.core.text import keep_ends
from cockpit.learn.capture_wip import ToolUse, capture_tool_use, list_solved
from cockpit.loop.phases.stream_answer_to_journal import AnswerStream
from cockpit.store.backlog import wip
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.agent_turns import (
    RunnerThought,
    RunnerTurn,
)
from cockpit.store.journal.details.agents import (
    RunnerNoted,
    RunnerToolEnded,
    RunnerToolStarted,
)
from cockpit.store.journal.details.detail import Detail
from cockpit.store.sessions import messages
from cockpit.store.sessions.sessions import RUNNER_PREFIX

MOST_ROWS = 5_000
"""Rows of one turn, beside its messages."""
MAX_UNREADABLE = 20
"""Unreadable lines of one run that are journalled; the others are counted."""
_INTERVAL_S = 0.25
_USAGE_INTERVAL_S = 2.0
_MOST_WAITING = 200
_MOST_THOUGHT = 20_000
_MAX_OUTPUT = 24_000
_MAX_SUMMARY = 400
_MAX_WORDS = 2_000


class AgentRun(Struct, frozen=True):
    """One run of an agent in a session."""

    session_id: str
    task_id: str | None
    runner: str
    root: Path
    number: int
    """Counts the runs of the session, from 1."""
    captures: bool
    """Whether this journal captures work in progress; the agent's hooks do it otherwise."""


class AgentJournal:
    """Journals one run of an agent; ``usage`` is what the session's earlier runs account for."""

    def __init__(self, store: Store, run: AgentRun, usage: TokenUsage | None = None) -> None:
        self.agent_session = ""
        """The agent's own id of the session."""
        self.unreadable = 0
        """How many lines did not fit the format."""
        self.tools = 0
        """Tools that the agent began to use."""
        self.tools_ended = 0
        """Tool calls of the turn that did not fail."""
        self.last_message = ""
        """The last whole message of the turn."""
        self.usage = usage or TokenUsage()
        """The usage that is accounted for in the session."""
        self.reads = SeenReads(run.root)
        """The files that the agent has read."""
        self._store = store
        self._run = run
        self._reported_usage = self.usage
        self._accounted_at = store.clock.monotonic()
        self._speech: AnswerStream | None = None
        self._speech_end: deque[str] = deque()
        """What was said after the text that streamed, of a long message only its end."""
        self._end_length = self._dropped = 0
        self._messages = 0
        self._thought = ""
        self._tools: dict[str, ToolStarted] = {}
        self._call_ended = False
        """Whether a tool call ended since the last text: what follows it is another sentence."""
        self._waiting: dict[str, Detail] = {}
        self._written_at: dict[str, float] = {}
        self._rows = self._left_out = 0
        self._writing = asyncio.Lock()
        self._flusher: asyncio.Task[None] | None = None

    async def record(self, event: StreamEvent) -> None:
        """Journal one event."""
        async with self._writing:
            if not isinstance(event, Thought | UsageUpdate):
                await self._end_thought()
            await self._record(event)

    async def _record(self, event: StreamEvent) -> None:
        match event:
            case AgentStarted():
                self.agent_session = event.agent_session[:200]
            case TextPiece(text):
                await self._feed(text)
            case Thought(text):
                if len(self._thought) < _MOST_THOUGHT:
                    self._thought += text
            case AgentMessage(text):
                await self._store_message(keep_ends(text, LONGEST_TEXT))
            case MessageEnd(interrupted):
                await self._end_message(interrupted=interrupted)
            case ToolStarted():
                await self._record_start(event)
            case ToolEnded():
                await self._record_end(event)
            case UsageUpdate(usage):
                self._reported_usage = usage
                if self._store.clock.monotonic() - self._accounted_at >= _USAGE_INTERVAL_S:
                    await self._account("tool")
            case Latest(key, detail):
                await self._write_some(detail, key=key)
            case UnreadableLine(message):
                self.unreadable += 1
                if self.unreadable <= MAX_UNREADABLE:
                    noted = RunnerNoted(message=mask(message)[:_MAX_SUMMARY])
                    await self.write(noted, result="error")

    async def note(self, message: str) -> None:
        """Note something that the user should know."""
        await self.write(RunnerNoted(message=mask(message)[:_MAX_WORDS]))

    async def begin_turn(self, message_ids: list[str], text: str) -> None:
        """Journal that a prompt is sent."""
        self._rows = self._left_out = self.tools_ended = 0
        self.last_message = ""
        run, ids = self._run.number, tuple(message_ids)
        await self.write(RunnerTurn(run=run, message_ids=ids, text=mask(text)[:_MAX_WORDS]))

    async def end_turn(self, reason: str, usage: TokenUsage, message: str = "") -> None:
        """Journal everything that waits, the usage of the run so far, and the turn's end."""
        async with self._writing:
            await self._flush()
            self._reported_usage = usage
            await self._account("end")
            await self._note_left_out()
            words = mask(message)[:_MAX_WORDS]
            ended = RunnerTurn(run=self._run.number, end=reason[:100], text=words)
            await self.write(ended, result="error" if reason == "failed" else "ok")

    async def end_message(self) -> None:
        """Store the message that streams, before something that belongs after it."""
        async with self._writing:
            await self._end_thought()
            await self._end_message()
            await self._flush()

    async def end_stream(self, finish: Finish | None, estimate: float | None = None) -> None:
        """Store the last message and the run's usage.

        ``estimate`` is what the run cost in US dollars if the agent reports no cost.
        """
        is_well = finish is not None and finish.ok
        async with self._writing:
            if finish is not None and is_well and finish.text.strip() != self.last_message.strip():
                await self._store_message(keep_ends(finish.text, LONGEST_TEXT))
            else:
                await self._end_message(interrupted=True)
            if finish is not None and finish.usage != TokenUsage():
                self._reported_usage = finish.usage
            if self._reported_usage.cost_usd is None:
                self._reported_usage = replace(self._reported_usage, cost_usd=estimate)
            await self._account("end" if is_well else "cut")
        await self.close()

    async def close(self) -> None:
        """Journal what waits, after the agent's end."""
        if self._flusher is not None:
            self._flusher.cancel()
            await asyncio.gather(self._flusher, return_exceptions=True)
        async with self._writing:
            await self._flush()
            await self._note_left_out()

    async def write(self, detail: Detail, *, result: str = "ok") -> None:
        """Journal a row of this session."""
        await self._store.write(lambda tx: self._journal(tx, detail, result))

    def _journal(self, tx: Tx, detail: Detail, result: str) -> None:
        tx.journal(detail, actor="agent", session_id=self._run.session_id, result=result)

    async def _feed(self, text: str) -> None:
        if self._call_ended and self._speech is not None and not text.startswith("\n"):
            # Copilot names a changed file in a message of its own, and nothing says that it ends.
            text = f"\n\n{text}"
        self._call_ended = False
        speech = self._speech = self._speech or self._new_speech()
        if len(speech.text) <= LONGEST_TEXT:
            await speech.feed(text)
        else:
            self._keep_end(text)
        self._flush_soon()

    def _keep_end(self, text: str) -> None:
        self._speech_end.append(text)
        self._end_length += len(text)
        while self._end_length - len(self._speech_end[0]) >= LONGEST_TEXT:
            self._end_length -= len(self._speech_end[0])
            self._dropped += len(self._speech_end.popleft())

    def _new_speech(self) -> AnswerStream:
        self._messages += 1
        run = self._run
        message_id = f"m-{run.session_id}-{run.number}-{self._messages}"
        return AnswerStream(self._store, run.session_id, "", message_id)

    async def _end_message(self, *, interrupted: bool = False) -> None:
        if self._speech is not None:
            text = f"{self._speech.text}{''.join(self._speech_end)}"
            text = keep_ends(text, LONGEST_TEXT, self._dropped)
            await self._store_message(text, interrupted=interrupted)

    async def _store_message(self, text: str, *, interrupted: bool = False) -> None:
        speech = self._speech or self._new_speech()
        self._speech = None
        self._speech_end.clear()
        self._end_length = self._dropped = 0
        if not text.strip() and not speech.text:
            return
        self.last_message = text
        await self._store.write(
            lambda tx: messages.complete(
                tx,
                session_id=self._run.session_id,
                role="agent",
                text=text,
                message_id=speech.message_id,
                interrupted=interrupted,
            )
        )

    async def _end_thought(self) -> None:
        thought, self._thought = self._thought.strip(), ""
        if thought:
            text = mask(thought[:_MOST_THOUGHT])
            await self._write_some(RunnerThought(run=self._run.number, text=text))

    async def _record_start(self, call: ToolStarted) -> None:
        self.tools += 1
        if len(self._tools) < MOST_ROWS:
            self._tools[call.call_id] = call
        await self._write_some(
            RunnerToolStarted(
                run=self._run.number,
                call_id=call.call_id[:200],
                tool=call.tool[:200],
                title=call.title,
                kind=call.kind or UNSET,
                places=list(call.places) or UNSET,
            )
        )

    async def _record_end(self, end: ToolEnded) -> None:
        started = self._tools.pop(end.call_id, None)
        call = end.call or started or ToolStarted(end.call_id, "", {})
        self._call_ended = True
        self._waiting.pop(f"call {end.call_id}", None)
        self.tools_ended += not end.failed
        diff = await asyncio.to_thread(end.draw_diff)
        summary = " ".join(end.output[: 4 * _MAX_SUMMARY].split())[:_MAX_SUMMARY]
        await self._write_some(
            RunnerToolEnded(
                run=self._run.number,
                call_id=call.call_id[:200],
                tool=call.tool[:200],
                title=call.title,
                failed=end.failed,
                exit_code=end.exit_code,
                summary=mask(summary),
                kind=call.kind or UNSET,
                places=list(call.places) or UNSET,
                diff=diff or UNSET,
                gated=end.gated,
            ),
            result="error" if end.failed else "ok",
        )
        if started is None:
            return
        if not end.failed and self._rows < MOST_ROWS:
            seen = await asyncio.to_thread(self.reads.look, call.tool, call.arguments, call.files)
            for read in seen:
                await self.write(read)
        if self._run.captures:
            await self._capture_wip(call, end)

    async def _capture_wip(self, call: ToolStarted, end: ToolEnded) -> None:
        task_id, root = self._run.task_id, str(self._run.root)
        if task_id is None:
            return
        use = ToolUse(
            tool=call.tool,
            arguments=_arguments(call.arguments),
            output=clip_middle(end.output, _MAX_OUTPUT),
            exit_code=end.exit_code,
            cwd=root,
            root=root,
            failed=end.failed,
        )
        patch = await asyncio.to_thread(capture_tool_use, use)
        if solved := list_solved(use):
            patch[wip.SOLVED] = solved
        if not patch:
            return

        def update(tx: Tx) -> None:
            try:
                wip.update(tx, task_id, patch, by="agent", session_id=self._run.session_id)
            except (NotFound, wip.WipInvalid) as error:
                self._journal(tx, RunnerNoted(message=str(error)[:_MAX_SUMMARY]), "error")

        await self._store.write(update)

    async def _account(self, stop: str) -> None:
        """Add the usage since the last call to the session's totals."""
        reported, accounted = self._reported_usage, self.usage
        self._accounted_at = self._store.clock.monotonic()
        price = reported.cost_usd
        cost = None if price is None else max(0.0, price - (accounted.cost_usd or 0.0))
        added = TokenUsage(
            max(0, reported.input_tokens - accounted.input_tokens),
            max(0, reported.output_tokens - accounted.output_tokens),
            max(0, reported.cached_tokens - accounted.cached_tokens),
            cost,
        )
        if not (added.tokens or added.cached_tokens or cost):
            return
        self.usage = reported
        run, model = self._run, f"{RUNNER_PREFIX}{self._run.runner}"
        await self._store.write(
            lambda tx: record_usage(
                tx, run.session_id, added, model=model, stop=stop, actor="agent"
            )
        )

    async def _write_some(self, detail: Detail, *, key: str = "", result: str = "ok") -> None:
        """Journal a row unless one of the same ``key`` was just written; the newest waits then."""
        now = self._store.clock.monotonic()
        if key and now - self._written_at.get(key, -_INTERVAL_S) < _INTERVAL_S:
            self._waiting.pop(key, None)
            self._waiting[key] = detail
            if len(self._waiting) > _MOST_WAITING:
                self._waiting.pop(next(iter(self._waiting)))
            self._flush_soon()
            return
        if self._rows >= MOST_ROWS:
            self._left_out += 1
            return
        self._rows += 1
        if key:
            self._waiting.pop(key, None)
            if len(self._written_at) > 4 * _MOST_WAITING:
                self._written_at.clear()
            self._written_at[key] = now
        await self.write(detail, result=result)

    async def _note_left_out(self) -> None:
        if self._left_out:
            await self.note(f"{self._left_out:,} further updates are not recorded.")
            self._left_out = 0

    def _flush_soon(self) -> None:
        """Journal what waits when the agent says nothing more: it may be silent until the user acts."""
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush_later(), name="flush the agent's rows")

    async def _flush_later(self) -> None:
        await asyncio.sleep(_INTERVAL_S)
        async with self._writing:
            if self._speech is not None:
                await self._speech.feed("")
            await self._flush()

    async def _flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for detail in waiting.values():
            await self.write(detail)


def _arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that the capture reads, without the contents of files."""
    return {
        name: value[:_MAX_OUTPUT] if isinstance(value, str) else value
        for name, value in arguments.items()
        if name not in ("content", "old_string", "new_string", "edits", "new_source")
    }
