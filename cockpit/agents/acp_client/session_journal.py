"""The updates of an ACP session as journal rows: text in fragments, the rest in few rows a second.

A repeated update of the same thing (a tool call, the plan, the context) is journalled at most four times a
second, and each turn has a bounded number of rows; what is left out is counted and said. So a flood costs the
agent's time and not the store. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from cockpit.agents.acp_client.tool_calls import ToolCall, ToolCalls
from cockpit.agents.streams.journal_agent_stream import AgentRun, StreamJournal
from cockpit.agents.streams.stream_events import TextPiece, TokenUsage, UnreadableLine
from cockpit.core.json_fields import (
    JsonObject,
    get_count,
    get_object,
    get_objects,
    get_price,
    get_text,
)
from cockpit.core.secrets import mask
from cockpit.store.db.database import Store
from cockpit.store.journal.details.agent_turns import (
    AgentCommand,
    Choice,
    PlanStep,
    RunnerChoices,
    RunnerCommands,
    RunnerContext,
    RunnerPlan,
    RunnerThought,
    RunnerToolUpdated,
    RunnerTurnEnded,
    RunnerTurnStarted,
)
from cockpit.store.journal.details.agents import (
    RunnerNoted,
    RunnerToolEnded,
    RunnerToolStarted,
)
from cockpit.store.journal.details.detail import Detail
from cockpit.store.sessions import sessions

MOST_ROWS = 5_000
"""Rows of one turn, beside its messages."""
_INTERVAL_S = 0.25
_MOST_WAITING = 200
_MOST_THOUGHT = 20_000
_MOST_STEPS = 100
_MOST_CHOICES = 200
_LONGEST = 400
_TAIL = 2_000


class SessionJournal:
    """Journals one run of an agent's session. Updates come one after the other."""

    def __init__(self, store: Store, run: AgentRun, usage: TokenUsage) -> None:
        self.calls = ToolCalls()
        self.commands: tuple[AgentCommand, ...] = ()
        """The agent's commands."""
        self.choices: dict[str, RunnerChoices] = {}
        """What can be chosen, by kind."""
        self.options: set[str] = set()
        """The kinds that the agent has as options of its configuration."""
        self.last_message = ""
        """The last whole message of the turn."""
        self.tools_ended = 0
        """Tool calls of the turn that completed."""
        self.ignores = False
        """Whether updates are only a repetition of what the journal has: a session is being loaded."""
        self._store = store
        self._run = run
        self._stream = StreamJournal(store, run)
        self._stream.usage = replace(usage, input_tokens=0, output_tokens=0, cached_tokens=0)
        self._total = self._stream.usage
        self._thought = ""
        self._call_ended = False
        """Whether a tool call ended since the last text: what follows it is another sentence."""
        self._waiting: dict[str, Detail] = {}
        self._written_at: dict[str, float] = {}
        self._rows = 0
        self._left_out = 0
        self._writing = asyncio.Lock()
        self._flusher: asyncio.Task[None] | None = None

    async def update(self, body: JsonObject) -> None:
        """Journal one ``session/update``; one that cannot be read is noted."""
        if self.ignores:
            return
        kind = get_text(body, "sessionUpdate")
        async with self._writing:
            if kind not in ("agent_thought_chunk", "usage_update"):
                await self._end_thought()
            await self._update(kind, body)

    async def _update(self, kind: str, body: JsonObject) -> None:
        match kind:
            case "agent_message_chunk":
                text = _chunk_text(body)
                if self._call_ended and self._stream.is_speaking and not text.startswith("\n"):
                    # Copilot names a changed file in a message of its own, and nothing says that it ends.
                    text = f"\n\n{text}"
                self._call_ended = False
                await self._stream.record(TextPiece(text))
                self._flush_soon()
            case "agent_thought_chunk":
                if len(self._thought) < _MOST_THOUGHT:
                    self._thought += _chunk_text(body)
            case "tool_call" | "tool_call_update":
                await self._record_call(self.calls.update(body))
            case "plan" | "plan_update":
                await self._write_plan(body)
            case "current_mode_update":
                await self.choose("mode", get_text(body, "currentModeId"))
            case "config_option_update":
                await self._write_options(body)
            case "available_commands_update":
                await self._write_commands(body)
            case "usage_update":
                await self._write_usage(body)
            case "user_message_chunk" | "session_info_update" | "plan_removed":
                return
            case _:
                await self.note_odd(f"an unknown update: {kind[:100]!r}")

    async def note_odd(self, message: str) -> None:
        """Note that something was no message of the protocol; only the first few are journalled."""
        await self._stream.record(UnreadableLine(mask(message)))

    async def note(self, message: str) -> None:
        """Note something that the user should know."""
        await self._write(RunnerNoted(message=mask(message)[:2_000]))

    @property
    def odd(self) -> int:
        """How many things were no message of the protocol."""
        return self._stream.unreadable

    async def join(self, state: JsonObject) -> None:
        """Journal what can be chosen in the agent's session."""
        models = get_object(state, "models")
        model = get_text(models, "currentModelId")[:200]
        modes = get_object(state, "modes")
        if modes:
            choices = _choices(get_objects(modes, "availableModes"), "id")
            await self._write_choice("mode", "Mode", get_text(modes, "currentModeId"), choices)
        if models:
            choices = _choices(get_objects(models, "availableModels"), "modelId")
            await self._write_choice("model", "Model", model, choices)
        await self._write_options(state)

    async def choose(self, kind: str, current: str) -> None:
        """Journal that a choice has another value now."""
        known_choice = self.choices.get(kind)
        if known_choice is not None and known_choice.current == current:
            return
        name = known_choice.name if known_choice is not None else kind.capitalize()
        choices = known_choice.choices if known_choice is not None else UNSET
        self.choices[kind] = RunnerChoices(
            kind=kind, name=name, current=current[:200], choices=choices
        )
        await self._write_some(
            f"choice {kind}", RunnerChoices(kind=kind, name=name, current=current[:200])
        )

    async def begin_turn(self, message_ids: list[str], text: str) -> None:
        """Journal that a prompt is sent."""
        self._rows = self._left_out = self.tools_ended = 0
        self.last_message = ""
        started = RunnerTurnStarted(
            run=self._run.number, message_ids=message_ids, text=mask(text)[:2_000] or UNSET
        )
        await self._write(started)

    async def end_turn(self, reason: str, usage: JsonObject, message: str = "") -> None:
        """Journal everything that waits, the turn's usage and its end."""
        async with self._writing:
            await self._end_thought()
            interrupted = reason in ("cancelled", "failed")
            self.last_message = (
                await self._stream.end_message(interrupted=interrupted) or self.last_message
            )
            for call in self.calls.list_running():
                await self._end_call(call, failed=True)
            await self._flush()
            if usage:
                self._total = _add(self._total, usage)
            await self._stream.account(self._total)
            if self._left_out:
                await self._write(
                    RunnerNoted(message=f"{self._left_out:,} further updates are not recorded.")
                )
            ended = RunnerTurnEnded(
                run=self._run.number,
                reason=reason[:100],
                message=mask(message)[:2_000] or UNSET,
            )
            await self._write(ended, result="error" if reason == "failed" else "ok")

    async def end_message(self) -> None:
        """Store the message that streams, before something that belongs after it."""
        async with self._writing:
            await self._end_thought()
            text = await self._stream.end_message()
            self.last_message = text or self.last_message
            await self._flush()

    async def write(self, detail: Detail) -> None:
        """Journal a row of this session."""
        await self._write(detail)

    async def _record_call(self, call: ToolCall) -> None:
        if not call.started:
            text = await self._stream.end_message()
            self.last_message = text or self.last_message
            call.started = True
            await self._write_some(
                "",
                RunnerToolStarted(
                    run=self._run.number,
                    call_id=call.call_id,
                    tool=call.kind,
                    title=call.title,
                    kind=call.kind,
                    places=call.places(str(self._run.root)) or UNSET,
                ),
            )
        if call.status in ("completed", "failed"):
            if not call.ended:
                self._call_ended = True
                await self._end_call(call, failed=call.status == "failed")
        elif call.status == "in_progress":
            updated = RunnerToolUpdated(
                run=self._run.number,
                call_id=call.call_id,
                title=call.title,
                output=mask(call.output()[-_TAIL:]),
            )
            await self._write_some(f"call {call.call_id}", updated)

    async def _end_call(self, call: ToolCall, *, failed: bool) -> None:
        call.ended = True
        self._waiting.pop(f"call {call.call_id}", None)
        self.tools_ended += not failed
        root = str(self._run.root)
        diff = await asyncio.to_thread(call.diff, root)
        summary = mask(" ".join(call.output()[: 4 * _LONGEST].split())[:_LONGEST])
        await self._write_some(
            "",
            RunnerToolEnded(
                run=self._run.number,
                call_id=call.call_id,
                tool=call.kind,
                title=call.title,
                failed=failed,
                exit_code=call.exit_code(),
                summary=summary,
                kind=call.kind,
                places=call.places(root) or UNSET,
                diff=diff or UNSET,
                # One that ended in vain while it waited for its answer was not done without asking.
                gated=call.gated or (failed and call.has_asked),
            ),
            result="error" if failed else "ok",
        )
        if not failed and call.kind in ("read", "execute") and self._rows < MOST_ROWS:
            await self._stream.note_reads(call.kind, call.input, call.files())

    def note_read(self, path: str, version: str, first: int, last: int) -> None:
        """Note that a file was read through cockpit: it needs no second row."""
        self._stream.reads.add(path, version, first, last)

    async def _write_plan(self, body: JsonObject) -> None:
        entries = get_objects(body, "entries") or get_objects(get_object(body, "plan"), "entries")
        steps = tuple(
            PlanStep(
                text=mask(get_text(entry, "content"))[:_LONGEST],
                status=get_text(entry, "status")[:40],
                priority=get_text(entry, "priority")[:40],
            )
            for entry in entries[:_MOST_STEPS]
        )
        if steps:
            await self._write_some("plan", RunnerPlan(run=self._run.number, steps=steps))

    async def _write_commands(self, body: JsonObject) -> None:
        self.commands = tuple(
            AgentCommand(
                name=get_text(entry, "name")[:100],
                text=mask(get_text(entry, "description"))[:_LONGEST],
            )
            for entry in get_objects(body, "availableCommands")[:_MOST_CHOICES]
        )
        await self._write_some("commands", RunnerCommands(commands=self.commands))

    async def _write_options(self, body: JsonObject) -> None:
        for option in get_objects(body, "configOptions")[:50]:
            value = option.get("currentValue")
            current = (
                str(value).lower() if isinstance(value, bool) else get_text(option, "currentValue")
            )
            values = get_objects(option, "options")
            flat = [inner for each in values for inner in (get_objects(each, "options") or [each])]
            kind = get_text(option, "id")[:100]
            self.options.add(kind)
            name = get_text(option, "name")[:100] or kind
            if kind and self._is_new(kind, current):
                await self._write_choice(kind, name, current, _choices(flat, "value"))

    def _is_new(self, kind: str, current: str) -> bool:
        known_choice = self.choices.get(kind)
        return known_choice is None or known_choice.current != current

    async def _write_choice(
        self, kind: str, name: str, current: str, choices: tuple[Choice, ...]
    ) -> None:
        if len(self.choices) >= _MOST_CHOICES and kind not in self.choices:
            return
        detail = RunnerChoices(kind=kind, name=name, current=current[:200], choices=choices)
        self.choices[kind] = detail
        await self._write_some(f"choice {kind}", detail)

    async def _write_usage(self, body: JsonObject) -> None:
        cost = get_object(body, "cost")
        price = get_price(cost, "amount")
        if price is not None and price >= 0 and get_text(cost, "currency").upper() == "USD":
            self._total = replace(self._total, cost_usd=max(price, self._total.cost_usd or 0.0))
        size = get_count(body, "size")
        if size:
            await self._write_some(
                "context", RunnerContext(used=get_count(body, "used"), size=size)
            )

    async def _end_thought(self) -> None:
        thought, self._thought = self._thought.strip(), ""
        if thought:
            text = mask(thought[:_MOST_THOUGHT])
            await self._write_some("", RunnerThought(run=self._run.number, text=text))

    async def _write_some(self, key: str, detail: Detail, *, result: str = "ok") -> None:
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
        await self._write(detail, result=result)

    def _flush_soon(self) -> None:
        """Journal what waits when the agent says nothing more: it may be silent until the user acts."""
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush_later(), name="flush the agent's rows")

    async def _flush_later(self) -> None:
        await asyncio.sleep(_INTERVAL_S)
        async with self._writing:
            await self._stream.flush_text()
            await self._flush()

    async def close(self) -> None:
        """Journal what waits, after the agent's end."""
        if self._flusher is not None:
            self._flusher.cancel()
            await asyncio.gather(self._flusher, return_exceptions=True)
        async with self._writing:
            await self._flush()

    async def _flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for detail in waiting.values():
            await self._write(detail)

    async def _write(self, detail: Detail, *, result: str = "ok") -> None:
        session_id = self._run.session_id
        await self._store.write(
            lambda tx: tx.journal(detail, actor="agent", session_id=session_id, result=result)
        )

    async def record_agent_session(self, agent_session: str) -> None:
        """Store the agent's own id of the session, by which it is loaded again."""
        session_id = self._run.session_id
        await self._store.write(
            lambda tx: sessions.set_agent_process(tx, session_id, agent_session=agent_session)
        )


def _chunk_text(body: JsonObject) -> str:
    content = get_object(body, "content")
    if not content or get_text(content, "type") == "text":
        return get_text(content, "text")
    name = get_text(content, "uri") or get_text(content, "mimeType")
    return f"[{get_text(content, 'type')[:40]} {name[:200]}]"


def _choices(entries: list[JsonObject], key: str) -> tuple[Choice, ...]:
    return tuple(
        Choice(id=get_text(entry, key)[:200], name=mask(get_text(entry, "name"))[:100])
        for entry in entries[:_MOST_CHOICES]
        if get_text(entry, key)
    )


def _add(total: TokenUsage, usage: Mapping[str, Any]) -> TokenUsage:
    """Add one turn's usage. Agents count tokens of a cache beside the input, or in it."""
    fresh, output = get_count(usage, "inputTokens"), get_count(usage, "outputTokens")
    cached = get_count(usage, "cachedReadTokens")
    written = get_count(usage, "cachedWriteTokens")
    whole = get_count(usage, "totalTokens")
    is_beside = whole >= fresh + output + cached + written
    read = fresh + cached + written if is_beside else fresh
    return TokenUsage(
        total.input_tokens + read,
        total.output_tokens + output,
        total.cached_tokens + min(cached, read),
        total.cost_usd,
    )
