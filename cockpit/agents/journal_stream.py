"""An agent's stream as rows of the journal: messages, tools and tokens of a session like any other's.

What its tools did is kept as work in progress of its task, as the engine's own actions are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cockpit.agents import stream_events
from cockpit.agents.stream_formats import LONGEST_TEXT, shorten_message
from cockpit.core.errors import NotFound
from cockpit.learn.capture_wip import ToolUse, captured
from cockpit.loop.phases.stream_answer_to_journal import AnswerStream
from cockpit.store.backlog import wip
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.agents import (
    RunnerJoined,
    RunnerNoted,
    RunnerToolEnded,
    RunnerToolStarted,
)
from cockpit.store.journal.details.detail import Detail
from cockpit.store.journal.details.waves import ModelCompleted
from cockpit.store.sessions import messages, sessions

MOST_ODD = 20
"""Strange lines of one run that are journalled; the others are counted."""
_SPENT_S = 2.0
_OUTPUT = 24_000
_TITLE = 160
_SUMMARY = 400
_SAYS = ("command", "file_path", "path", "notebook_path", "input", "pattern", "query", "url")


@dataclass(frozen=True, slots=True)
class AgentRun:
    """The run that is told. ``number`` counts the runs of the session; ``captures``: nobody else
    tells the task's work in progress what the agent's tools do."""

    session_id: str
    task_id: str | None
    runner: str
    root: Path
    number: int
    captures: bool


class StreamJournal:
    """Takes what a stream tells, in order. ``agent_session`` is the agent's own name for it, ``odd``
    how many lines were strange, ``spent`` what was accounted for so far."""

    def __init__(self, store: Store, part: AgentRun) -> None:
        self.agent_session = ""
        self.odd = 0
        self.spent = stream_events.TokenUsage()
        self._store = store
        self._part = part
        self._speech: AnswerStream | None = None
        self._messages = 0
        self._last = ""
        self._tools: dict[str, stream_events.ToolStarted] = {}
        self._due = stream_events.TokenUsage()
        self._accounted_at = store.clock.monotonic()

    async def take(self, one: stream_events.StreamEvent) -> None:
        """Journal one thing."""
        match one:
            case stream_events.AgentStarted():
                self.agent_session = one.agent_session[:200]
                await self._row(
                    RunnerJoined(agent_session=self.agent_session, model=one.model[:200])
                )
            case stream_events.TextPiece(text):
                speech = self._speech = self._speech or self._speaking()
                if len(speech.text) <= LONGEST_TEXT:
                    await speech.feed(text)
            case stream_events.AgentMessage():
                await self._said(shorten_message(one).text)
            case stream_events.ToolStarted():
                self._tools[one.call_id] = one
                await self._row(
                    RunnerToolStarted(
                        run=self._part.number,
                        call_id=one.call_id[:200],
                        tool=one.tool[:200],
                        title=tool_title(one),
                    )
                )
            case stream_events.ToolEnded():
                await self._used(one)
            case stream_events.UsageUpdate(spent):
                self._due = spent
                if self._store.clock.monotonic() - self._accounted_at >= _SPENT_S:
                    await self._account("tool")
            case stream_events.UnreadableLine(words):
                await self._strange(words)

    async def close(self, finish: stream_events.Finish | None) -> None:
        """The end: the last message, and what it all cost."""
        if finish is not None and finish.ok and finish.text.strip() != self._last.strip():
            await self._said(shorten_message(stream_events.AgentMessage(finish.text)).text)
        elif self._speech is not None:
            await self._said(self._speech.text, interrupted=True)
        if finish is not None and finish.spent != stream_events.TokenUsage():
            self._due = finish.spent
        await self._account("end" if finish is not None and finish.ok else "cut")

    def _speaking(self) -> AnswerStream:
        self._messages += 1
        part = self._part
        identity = f"m-{part.session_id}-{part.number}-{self._messages}"
        return AnswerStream(self._store, part.session_id, "", identity)

    async def _said(self, text: str, *, interrupted: bool = False) -> None:
        speech = self._speech or self._speaking()
        self._speech = None
        if not text.strip() and not speech.text:
            return
        self._last = text
        await self._store.write(
            lambda tx: messages.complete(
                tx,
                session_id=self._part.session_id,
                role="agent",
                text=text,
                message_id=speech.message_id,
                interrupted=interrupted,
            )
        )

    async def _used(self, ended: stream_events.ToolEnded) -> None:
        began = self._tools.pop(ended.call_id, None)
        used = began or stream_events.ToolStarted(ended.call_id, "", {})
        summary = " ".join(ended.output[: 4 * _SUMMARY].split())[:_SUMMARY]
        await self._row(
            RunnerToolEnded(
                run=self._part.number,
                call_id=used.call_id[:200],
                tool=used.tool[:200],
                title=tool_title(used),
                failed=ended.failed,
                exit_code=ended.exit_code,
                summary=summary,
            ),
            result="error" if ended.failed else "ok",
        )
        if began is not None and self._part.captures:
            await self._capture(began, ended)

    async def _capture(
        self, began: stream_events.ToolStarted, ended: stream_events.ToolEnded
    ) -> None:
        task_id, root = self._part.task_id, str(self._part.root)
        if task_id is None:
            return
        use = ToolUse(
            tool=began.tool,
            arguments=_arguments(began.arguments),
            output=_bounded(ended.output),
            exit_code=ended.exit_code,
            cwd=root,
            root=root,
            failed=ended.failed,
        )
        patch = await asyncio.to_thread(captured, use)
        if not patch:
            return

        def step(tx: Tx) -> None:
            try:
                wip.update(tx, task_id, patch, by="agent", session_id=self._part.session_id)
            except (NotFound, wip.WipInvalid) as error:
                self._journal(tx, RunnerNoted(message=str(error)[:_SUMMARY]), "error")

        await self._store.write(step)

    async def _strange(self, words: str) -> None:
        self.odd += 1
        if self.odd <= MOST_ODD:
            await self._row(RunnerNoted(message=words[:_SUMMARY]), result="error")

    async def _account(self, stop: str) -> None:
        """Add what was spent since the last time to the session's totals."""
        due, before = self._due, self.spent
        self._accounted_at = self._store.clock.monotonic()
        price = due.cost_usd
        cost = None if price is None else max(0.0, price - (before.cost_usd or 0.0))
        more: dict[str, Any] = {
            "input_tokens": max(0, due.input_tokens - before.input_tokens),
            "output_tokens": max(0, due.output_tokens - before.output_tokens),
            "cached_tokens": max(0, due.cached_tokens - before.cached_tokens),
            "cost_usd": cost,
        }
        if not any(more.values()):
            return
        self.spent = due

        def step(tx: Tx) -> None:
            sessions.add_usage(tx, self._part.session_id, **more)
            model = f"{sessions.RUNNER_PREFIX}{self._part.runner}"
            self._journal(tx, ModelCompleted(model=model, stop=stop, **more), "ok")

        await self._store.write(step)

    async def _row(self, event: Detail, *, result: str = "ok") -> None:
        await self._store.write(lambda tx: self._journal(tx, event, result))

    def _journal(self, tx: Tx, event: Detail, result: str) -> None:
        tx.journal(
            event,
            actor="agent",
            session_id=self._part.session_id,
            result=result,
        )


def tool_title(used: stream_events.ToolStarted) -> str:
    """A tool's use in one line: the tool, and what says most of its arguments."""
    said = (used.arguments.get(name) for name in _SAYS)
    about = next((one for one in said if isinstance(one, str) and one.strip()), "")
    return " ".join(f"{used.tool} {about[: 4 * _TITLE]}".split())[:_TITLE]


def _arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that capture reads; the texts of files are not among them."""
    return {
        name: value[:_OUTPUT] if isinstance(value, str) else value
        for name, value in arguments.items()
        if name not in ("content", "old_string", "new_string", "edits", "new_source")
    }


def _bounded(output: str) -> str:
    half = _OUTPUT // 2
    return output if len(output) <= _OUTPUT else f"{output[:half]}\n[…]\n{output[-half:]}"
