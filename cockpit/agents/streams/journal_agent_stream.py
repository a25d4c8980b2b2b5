"""An external agent's stream as journal rows: messages, tools and tokens like those of any session.

The results of its tools become work in progress of its task, like those of the built-in agent. See
``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.agents.streams.seen_reads import SeenReads
from cockpit.agents.streams.stream_events import (
    AgentMessage,
    AgentStarted,
    Finish,
    StreamEvent,
    TextPiece,
    TokenUsage,
    ToolEnded,
    ToolStarted,
    UnreadableLine,
    UsageUpdate,
    call_title,
)
from cockpit.agents.streams.stream_formats import LONGEST_TEXT, shorten_message
from cockpit.core.errors import NotFound
from cockpit.core.failure_lines import clip_middle
from cockpit.core.text import keep_ends
from cockpit.learn.capture_wip import ToolUse, capture_tool_use, list_solved
from cockpit.loop.phases.stream_answer_to_journal import AnswerStream
from cockpit.store.backlog import wip
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.agents import (
    RunnerNoted,
    RunnerToolEnded,
    RunnerToolStarted,
)
from cockpit.store.journal.details.detail import Detail
from cockpit.store.journal.details.waves import ModelCompleted
from cockpit.store.sessions import messages, sessions

MAX_UNREADABLE = 20
"""Unreadable lines of one run that are journalled; the others are counted."""
_USAGE_INTERVAL_S = 2.0
_MAX_OUTPUT = 24_000
_MAX_SUMMARY = 400


class AgentRun(Struct, frozen=True):
    """One run of an agent in a session."""

    session_id: str
    task_id: str | None
    runner: str
    root: Path
    number: int
    """Counts the runs of the session, from 1."""
    captures: bool
    """Whether this stream captures work in progress; the agent's hooks do it otherwise."""


class StreamJournal:
    """Journals the events of a run's stream, in order."""

    def __init__(self, store: Store, run: AgentRun) -> None:
        self.agent_session = ""
        """The agent's own id of the session."""
        self.unreadable = 0
        """Number of unreadable lines."""
        self.tools = 0
        """Number of tools that the agent has used."""
        self.usage = TokenUsage()
        """The usage that is accounted for in the session."""
        self._store = store
        self._run = run
        self._speech: AnswerStream | None = None
        self._speech_end: deque[str] = deque()
        """What was said after the text that streamed, of a long message only its end."""
        self._end_length = self._dropped = 0
        self._messages = 0
        self._last_message = ""
        self._tools: dict[str, ToolStarted] = {}
        self.reads = SeenReads(run.root)
        """The files that the agent has read."""
        self._reported_usage = TokenUsage()
        self._accounted_at = store.clock.monotonic()

    async def record(self, event: StreamEvent) -> None:
        """Journal one event."""
        match event:
            case AgentStarted():
                self.agent_session = event.agent_session[:200]
            case TextPiece(text):
                speech = self._speech = self._speech or self._new_speech()
                if len(speech.text) <= LONGEST_TEXT:
                    await speech.feed(text)
                else:
                    self._keep_end(text)
            case AgentMessage():
                await self._store_message(shorten_message(event).text)
            case ToolStarted():
                self.tools += 1
                self._tools[event.call_id] = event
                await self._journal_row(
                    RunnerToolStarted(
                        run=self._run.number,
                        call_id=event.call_id[:200],
                        tool=event.tool[:200],
                        title=call_title(event),
                    )
                )
            case ToolEnded():
                await self._record_tool_result(event)
            case UsageUpdate(usage):
                self._reported_usage = usage
                if self._store.clock.monotonic() - self._accounted_at >= _USAGE_INTERVAL_S:
                    await self._account("tool")
            case UnreadableLine(message):
                await self._record_unreadable(message)

    async def close(self, finish: Finish | None, estimate: float | None = None) -> None:
        """Store the last message and the run's usage.

        ``estimate`` is what the run cost in US dollars if the agent reports no cost.
        """
        if finish is not None and finish.ok and finish.text.strip() != self._last_message.strip():
            await self._store_message(shorten_message(AgentMessage(finish.text)).text)
        elif self._speech is not None:
            await self._store_message(self._spoken_text(), interrupted=True)
        if finish is not None and finish.usage != TokenUsage():
            self._reported_usage = finish.usage
        if self._reported_usage.cost_usd is None:
            self._reported_usage = replace(self._reported_usage, cost_usd=estimate)
        await self._account("end" if finish is not None and finish.ok else "cut")

    @property
    def is_speaking(self) -> bool:
        """Whether a message streams."""
        return self._speech is not None

    async def end_message(self, *, interrupted: bool = False) -> str:
        """Store the message that streams, if one does; returns its text."""
        text = self._spoken_text()
        if self._speech is not None:
            await self._store_message(text, interrupted=interrupted)
        return text

    async def flush_text(self) -> None:
        """Journal what streamed and waits for more to come."""
        if self._speech is not None:
            await self._speech.feed("")

    async def account(self, usage: TokenUsage) -> None:
        """Add to the session what ``usage``, the run's total so far, has more than before."""
        self._reported_usage = usage
        await self._account("end")

    def _keep_end(self, text: str) -> None:
        self._speech_end.append(text)
        self._end_length += len(text)
        while self._end_length - len(self._speech_end[0]) >= LONGEST_TEXT:
            self._end_length -= len(self._speech_end[0])
            self._dropped += len(self._speech_end.popleft())

    def _spoken_text(self) -> str:
        if self._speech is None:
            return ""
        text = f"{self._speech.text}{''.join(self._speech_end)}"
        return keep_ends(text, LONGEST_TEXT, self._dropped)

    def _new_speech(self) -> AnswerStream:
        self._messages += 1
        run = self._run
        message_id = f"m-{run.session_id}-{run.number}-{self._messages}"
        return AnswerStream(self._store, run.session_id, "", message_id)

    async def _store_message(self, text: str, *, interrupted: bool = False) -> None:
        speech = self._speech or self._new_speech()
        self._speech = None
        self._speech_end.clear()
        self._end_length = self._dropped = 0
        if not text.strip() and not speech.text:
            return
        self._last_message = text
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

    async def _record_tool_result(self, result: ToolEnded) -> None:
        started = self._tools.pop(result.call_id, None)
        call = started or ToolStarted(result.call_id, "", {})
        summary = " ".join(result.output[: 4 * _MAX_SUMMARY].split())[:_MAX_SUMMARY]
        await self._journal_row(
            RunnerToolEnded(
                run=self._run.number,
                call_id=call.call_id[:200],
                tool=call.tool[:200],
                title=call_title(call),
                failed=result.failed,
                exit_code=result.exit_code,
                summary=summary,
            ),
            result="error" if result.failed else "ok",
        )
        if started is not None and not result.failed:
            await self.note_reads(started.tool, started.arguments)
        if started is not None and self._run.captures:
            await self._capture_wip(started, result)

    async def note_reads(
        self, tool: str, arguments: Mapping[str, Any], places: Sequence[str] = ()
    ) -> None:
        """Journal the files that a tool call read; see :meth:`SeenReads.look`."""
        for seen in await asyncio.to_thread(self.reads.look, tool, arguments, places):
            await self._journal_row(seen)

    async def _capture_wip(self, call: ToolStarted, result: ToolEnded) -> None:
        task_id, root = self._run.task_id, str(self._run.root)
        if task_id is None:
            return
        use = ToolUse(
            tool=call.tool,
            arguments=_arguments(call.arguments),
            output=clip_middle(result.output, _MAX_OUTPUT),
            exit_code=result.exit_code,
            cwd=root,
            root=root,
            failed=result.failed,
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

    async def _record_unreadable(self, message: str) -> None:
        self.unreadable += 1
        if self.unreadable <= MAX_UNREADABLE:
            await self._journal_row(RunnerNoted(message=message[:_MAX_SUMMARY]), result="error")

    async def _account(self, stop: str) -> None:
        """Add the usage since the last call to the session's totals."""
        reported, accounted = self._reported_usage, self.usage
        self._accounted_at = self._store.clock.monotonic()
        price = reported.cost_usd
        cost = None if price is None else max(0.0, price - (accounted.cost_usd or 0.0))
        added: dict[str, Any] = {
            "input_tokens": max(0, reported.input_tokens - accounted.input_tokens),
            "output_tokens": max(0, reported.output_tokens - accounted.output_tokens),
            "cached_tokens": max(0, reported.cached_tokens - accounted.cached_tokens),
            "cost_usd": cost,
        }
        if not any(added.values()):
            return
        self.usage = reported

        def update(tx: Tx) -> None:
            sessions.add_usage(tx, self._run.session_id, **added)
            model = f"{sessions.RUNNER_PREFIX}{self._run.runner}"
            self._journal(tx, ModelCompleted(model=model, stop=stop, **added), "ok")

        await self._store.write(update)

    async def _journal_row(self, event: Detail, *, result: str = "ok") -> None:
        await self._store.write(lambda tx: self._journal(tx, event, result))

    def _journal(self, tx: Tx, event: Detail, result: str) -> None:
        tx.journal(event, actor="agent", session_id=self._run.session_id, result=result)


def _arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that the capture reads, without the contents of files."""
    return {
        name: value[:_MAX_OUTPUT] if isinstance(value, str) else value
        for name, value in arguments.items()
        if name not in ("content", "old_string", "new_string", "edits", "new_source")
    }
