"""What an ACP agent says in ``session/update``, as the events that every agent's journal takes.

See ``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from cockpit.agents.acp_client.tool_calls import ToolCalls
from cockpit.agents.streams.agent_journal import AgentJournal
from cockpit.agents.streams.stream_events import (
    AgentStarted,
    Latest,
    MessageEnd,
    StreamEvent,
    TextPiece,
    Thought,
    TokenUsage,
    UnreadableLine,
    UsageUpdate,
)
from cockpit.core.json_fields import (
    JsonObject,
    get_count,
    get_object,
    get_objects,
    get_price,
    get_text,
)
from cockpit.core.secrets import mask
from cockpit.store.journal.details.agent_turns import (
    AgentCommand,
    Choice,
    PlanStep,
    RunnerChoices,
    RunnerCommands,
    RunnerContext,
    RunnerPlan,
)

_MOST_STEPS = 100
_MOST_CHOICES = 200
_LONGEST = 400


class SessionUpdates:
    """What one session of the agent said so far. Updates come one after the other."""

    def __init__(self, journal: AgentJournal, root: str, run: int) -> None:
        self.calls = ToolCalls()
        self.commands: tuple[AgentCommand, ...] = ()
        """The agent's commands."""
        self.choices: dict[str, RunnerChoices] = {}
        """What can be chosen, by kind."""
        self.options: set[str] = set()
        """The kinds that the agent has as options of its configuration."""
        self.ignores = False
        """Whether updates are only a repetition of what the journal has: a session is being loaded."""
        self._journal = journal
        self._root = root
        self._run = run
        self._total = journal.usage

    @property
    def cost_usd(self) -> float | None:
        """What the session has cost by the agent's own account, in US dollars."""
        return self._total.cost_usd

    async def update(self, body: JsonObject) -> None:
        """Journal one ``session/update``; one that cannot be read is noted."""
        if not self.ignores:
            await self._record(self._read(body))

    async def _record(self, events: Iterator[StreamEvent]) -> None:
        for event in events:
            await self._journal.record(event)

    def _read(self, body: JsonObject) -> Iterator[StreamEvent]:
        match get_text(body, "sessionUpdate"):
            case "agent_message_chunk":
                yield TextPiece(_chunk_text(body))
            case "agent_thought_chunk":
                yield Thought(_chunk_text(body))
            case "tool_call" | "tool_call_update":
                yield from self.calls.update(body).list_news(self._root, self._run)
            case "plan" | "plan_update":
                yield from self._read_plan(body)
            case "current_mode_update":
                yield from self._choose("mode", get_text(body, "currentModeId"))
            case "config_option_update":
                yield from self._read_options(body)
            case "available_commands_update":
                yield self._read_commands(body)
            case "usage_update":
                yield from self._read_usage(body)
            case "user_message_chunk" | "session_info_update" | "plan_removed":
                return
            case kind:
                yield UnreadableLine(f"an unknown update: {kind[:100]!r}")

    async def join(self, agent_session: str, state: JsonObject) -> None:
        """Journal that the agent named its session, and what can be chosen in it."""
        await self._record(self._read_state(agent_session, state))

    def _read_state(self, agent_session: str, state: JsonObject) -> Iterator[StreamEvent]:
        modes, models = get_object(state, "modes"), get_object(state, "models")
        model = get_text(models, "currentModelId")
        yield AgentStarted(agent_session, model)
        if modes:
            choices = _choices(get_objects(modes, "availableModes"), "id")
            yield from self._keep("mode", "Mode", get_text(modes, "currentModeId"), choices)
        if models:
            choices = _choices(get_objects(models, "availableModels"), "modelId")
            yield from self._keep("model", "Model", model, choices)
        yield from self._read_options(state)

    async def choose(self, kind: str, current: str) -> None:
        """Journal that a choice has another value now."""
        await self._record(self._choose(kind, current))

    async def end_turn(self, reason: str, usage: JsonObject, message: str = "") -> None:
        """Journal the turn's end; calls that have no end by then failed."""
        await self._journal.record(MessageEnd(interrupted=reason in ("cancelled", "failed")))
        for call in self.calls.list_running():
            await self._journal.record(call.end(self._root, failed=True))
        self._total = _add(self._total, usage)
        await self._journal.end_turn(reason, self._total, message)

    def _choose(self, kind: str, current: str) -> Iterator[StreamEvent]:
        choice = self.choices.get(kind)
        choice = choice or RunnerChoices(kind=kind, name=kind.capitalize(), current="")
        if kind not in self.choices or choice.current != current:
            self.choices[kind] = replace(choice, current=current[:200])
            # The values are in an earlier row.
            yield Latest(f"choice {kind}", replace(self.choices[kind], choices=UNSET))

    def _read_plan(self, body: JsonObject) -> Iterator[StreamEvent]:
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
            yield Latest("plan", RunnerPlan(run=self._run, steps=steps))

    def _read_commands(self, body: JsonObject) -> Latest:
        self.commands = tuple(
            AgentCommand(
                name=get_text(entry, "name")[:100],
                text=mask(get_text(entry, "description"))[:_LONGEST],
            )
            for entry in get_objects(body, "availableCommands")[:_MOST_CHOICES]
        )
        return Latest("commands", RunnerCommands(commands=self.commands))

    def _read_options(self, body: JsonObject) -> Iterator[StreamEvent]:
        for option in get_objects(body, "configOptions")[:50]:
            value: Any = option.get("currentValue")
            current = (
                str(value).lower() if isinstance(value, bool) else get_text(option, "currentValue")
            )
            values = get_objects(option, "options")
            flat = [inner for each in values for inner in (get_objects(each, "options") or [each])]
            kind = get_text(option, "id")[:100]
            self.options.add(kind)
            choice = self.choices.get(kind)
            if kind and (choice is None or choice.current != current):
                name = get_text(option, "name")[:100] or kind
                yield from self._keep(kind, name, current, _choices(flat, "value"))

    def _keep(
        self, kind: str, name: str, current: str, choices: tuple[Choice, ...]
    ) -> Iterator[StreamEvent]:
        if len(self.choices) < _MOST_CHOICES or kind in self.choices:
            detail = RunnerChoices(kind=kind, name=name, current=current[:200], choices=choices)
            self.choices[kind] = detail
            yield Latest(f"choice {kind}", detail)

    def _read_usage(self, body: JsonObject) -> Iterator[StreamEvent]:
        cost = get_object(body, "cost")
        price = get_price(cost, "amount")
        if price is not None and price >= 0 and get_text(cost, "currency").upper() == "USD":
            self._total = replace(self._total, cost_usd=max(price, self._total.cost_usd or 0.0))
            yield UsageUpdate(self._total)
        if size := get_count(body, "size"):
            yield Latest("context", RunnerContext(used=get_count(body, "used"), size=size))


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


def _add(total: TokenUsage, usage: JsonObject) -> TokenUsage:
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
