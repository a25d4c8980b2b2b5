"""Spans of sessions, waves, model calls, tools and task runs, folded from the journal.

Names and attributes follow OpenTelemetry's conventions for generative AI; what these do not name begins with
``cockpit.``. Ids are digests of the journal's own, so a span has the same id whoever exports it. No text of
messages, files or commands is exported. Specified in ``docs/how-to/observe.md``.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct, field

from cockpit.store.journal.details import agents, proposals, sessions, tasks, waves
from cockpit.store.journal.details.detail import Detail
from cockpit.store.journal.journal import Row

Value = str | int | float | bool | tuple[str, ...]
MOST_OPEN = 10_000
"""Beginnings that are remembered; the oldest is forgotten first, and its span begins when it ends."""
_PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "openai-compatible": "openai"}


class Span(Struct, frozen=True):
    """One span that has ended."""

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    start_ns: int
    """Nanoseconds since 1970."""
    end_ns: int
    is_client: bool = False
    """Whether it is a call of another service."""
    error: str = ""
    """The kind of error; empty for none."""
    attributes: Mapping[str, Value] = field(default_factory=dict)
    events: tuple[tuple[str, int], ...] = ()
    """Moments inside the span: name and nanoseconds since 1970."""


class _Open(Struct):
    """What is remembered of the beginning of a span."""

    at_ns: int
    detail: Detail | None
    events: list[tuple[str, int]] = field(default_factory=list)


class SpanFold:
    """Takes rows of the journal in order, and returns the spans that end with each."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, _Open] = OrderedDict()

    def take(self, rows: Iterable[Row]) -> list[Span]:
        """Return the spans that ``rows`` end."""
        ended = (self._take(row) for row in rows)
        return [span for span in ended if span is not None]

    def _take(self, row: Row) -> Span | None:
        match row.detail:
            case sessions.SessionCreated():
                self._begin(_session(row), row)
            case sessions.SessionCompleted() | sessions.SessionFailed() | sessions.SessionStopped():
                return self._end_session(row)
            case agents.RunnerStarted():
                self._begin(f"runner {row.session_id}", row)
            case waves.WaveCreated():
                self._begin(_wave(row), row)
            case waves.WaveCompleted(ordinal=ordinal):
                return self._end_wave(row, ordinal, "")
            case waves.WaveFailed(ordinal=ordinal):
                return self._end_wave(row, ordinal, row.error_code or "failed")
            case waves.WaveMoved(phase=phase):
                if (wave := self._open.get(_wave(row))) is not None:
                    wave.events.append((phase, _nanoseconds(row.at)))
            case waves.ModelCalled():
                self._begin(_call(row), row)
            case waves.ModelCompleted() as completed:
                return self._end_call(row, completed)
            case waves.ModelRetried(model=model):
                return self._call(row, model, {}, "retried")
            case proposals.ActionDispatched(action_id=action_id):
                self._begin(f"action {action_id}", row)
            case proposals.ActionConfirmed(action_id=action_id, type=tool):
                return self._tool(row, f"action {action_id}", tool, action_id, "")
            case proposals.ActionFailed(action_id=action_id, type=tool):
                return self._tool(row, f"action {action_id}", tool, action_id, "failed")
            case proposals.ActionUncertain(action_id=action_id, type=tool):
                return self._tool(row, f"action {action_id}", tool, action_id, "uncertain")
            case agents.RunnerToolStarted(call_id=call_id):
                self._begin(f"tool {row.session_id} {call_id}", row)
            case agents.RunnerToolEnded(call_id=call_id, tool=tool, failed=failed):
                key = f"tool {row.session_id} {call_id}"
                return self._tool(row, key, tool, call_id, "failed" if failed else "")
            case tasks.TaskRunStep(position=1, outcome="") as started:
                self._begin(_task_run(started), row)
            case tasks.TaskRunStep(step="done" | "blocked") as ended if ended.outcome:
                return self._end_task_run(row, ended)
        return None

    def _begin(self, key: str, row: Row) -> None:
        self._open[key] = _Open(_nanoseconds(row.at), row.detail)
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)

    def _end(self, key: str, row: Row) -> _Open:
        """Return the beginning; where it was not seen, the time that the row says it took."""
        unseen = _Open(_nanoseconds(row.at) - (row.latency_ms or 0) * 1_000_000, None)
        return self._open.pop(key, unseen)

    def _end_session(self, row: Row) -> Span:
        runner = self._open.pop(f"runner {row.session_id}", None)
        before = self._end(_session(row), row)
        agent, created, detail = "cockpit", before.detail, row.detail
        if runner is not None and isinstance(runner.detail, agents.RunnerStarted):
            agent = runner.detail.runner
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "cockpit.session.status": row.action.removeprefix("session."),
        }
        if isinstance(detail, sessions.SessionCompleted) and isinstance(detail.status, str):
            attributes["cockpit.session.status"] = detail.status
        if isinstance(created, sessions.SessionCreated):
            attributes["cockpit.session.task_type"] = created.task_type
        error = row.error_code or "failed" if isinstance(detail, sessions.SessionFailed) else ""
        return _span(row, _session(row), None, f"invoke_agent {agent}", before, attributes, error)

    def _end_wave(self, row: Row, ordinal: int, error: str) -> Span:
        before = self._end(_wave(row), row)
        attributes: dict[str, Value] = {"cockpit.wave.ordinal": ordinal}
        return _span(row, _wave(row), _session(row), f"wave {ordinal}", before, attributes, error)

    def _end_call(self, row: Row, completed: waves.ModelCompleted) -> Span:
        attributes: dict[str, Value] = {
            "gen_ai.usage.input_tokens": completed.input_tokens,
            "gen_ai.usage.output_tokens": completed.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": completed.cached_tokens,
            "gen_ai.response.finish_reasons": (completed.stop,),
        }
        if completed.cost_usd is not None:
            attributes["cockpit.cost_usd"] = completed.cost_usd
        return self._call(row, completed.model, attributes, "")

    def _call(self, row: Row, model: str, usage: Mapping[str, Value], error: str) -> Span:
        before = self._end(_call(row), row)
        provider, _, name = model.partition(":")
        if provider == "script":
            name = ""  # a file of this machine
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
            "gen_ai.request.model": name or provider,
            **usage,
        }
        return _span(
            row,
            f"model {row.seq}",
            _parent(row),
            f"chat {name or provider}",
            before,
            attributes,
            error,
            is_client=True,
        )

    def _tool(self, row: Row, key: str, tool: str, call_id: str, error: str) -> Span:
        before = self._end(key, row)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id,
        }
        return _span(row, key, _parent(row), f"execute_tool {tool}", before, attributes, error)

    def _end_task_run(self, row: Row, ended: tasks.TaskRunStep) -> Span:
        key = _task_run(ended)
        attributes: dict[str, Value] = {
            "cockpit.task.id": ended.task_id,
            "cockpit.task.run": ended.run,
            "cockpit.task.step": ended.step,
            "cockpit.chain.id": ended.chain_id,
        }
        error = "blocked" if ended.step == "blocked" else ""
        before = self._end(key, row)
        return _span(row, key, None, f"task_run {ended.task_id}", before, attributes, error)


def _span(
    row: Row,
    own: str,
    parent: str | None,
    name: str,
    before: _Open,
    attributes: Mapping[str, Value],
    error: str,
    *,
    is_client: bool = False,
) -> Span:
    conversation = {"gen_ai.conversation.id": row.session_id} if row.session_id else {}
    return Span(
        _digest(row.trace_id or row.session_id or own, 16),
        _digest(own, 8),
        _digest(parent, 8) if parent is not None else None,
        name,
        before.at_ns,
        _nanoseconds(row.at),
        is_client,
        error,
        {**conversation, **attributes},
        tuple(before.events),
    )


def _session(row: Row) -> str:
    return f"session {row.session_id}"


def _wave(row: Row) -> str:
    return f"wave {row.wave_id}"


def _call(row: Row) -> str:
    return f"model of {row.session_id} {row.wave_id}"


def _parent(row: Row) -> str | None:
    if row.wave_id:
        return _wave(row)
    return _session(row) if row.session_id else None


def _task_run(step: tasks.TaskRunStep) -> str:
    return f"task run {step.task_id} {step.run}"


def _digest(text: str, size: int) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size).digest(), "big") or 1


def _nanoseconds(at: str) -> int:
    moment = datetime.fromisoformat(at)
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1_000
