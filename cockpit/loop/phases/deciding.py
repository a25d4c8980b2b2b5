"""Decide: render the packet, let the model speak, commit what it decided before anything runs.

Text and calls become one plan in one transaction with the wave's step to ``acting``. A malformed
call is part of the plan with its error, and is answered in the next wave. Source: RFC-003 §6.3;
design of Decide.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from cockpit.act.tools import ACTIONS, TOOLS, MalformedCall, parse_call
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.core.secrets import mask, mask_value
from cockpit.decide.model import (
    Done,
    ModelError,
    PacketFact,
    Prompt,
    Retrying,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)
from cockpit.decide.render_prompt import render
from cockpit.loop.decisions import profile_requests
from cockpit.loop.phases.answer_stream import Speech
from cockpit.loop.phases.orienting import Oriented
from cockpit.loop.wave_context import Here
from cockpit.store.context import facts, packets, profiles
from cockpit.store.context.packets import Packet
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import (
    ModelCalled,
    ModelCompleted,
    ModelMalformedCall,
    ModelRetried,
    WaveDecided,
)
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import messages, outbox, plans, sessions, waves
from cockpit.store.sessions.waves import Wave

MAX_CALLS = 24
"""More calls than this in one answer are answered as malformed."""


@dataclass(slots=True)
class _Answer:
    """What came from the model so far."""

    calls: list[ToolCall] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    stop: str = "cut"


async def decide(here: Here, oriented: Oriented | None = None) -> Wave:
    """Take a wave to ``acting``: from ``deciding``, or with its packet just ``oriented`` from
    ``orienting``; then packet and call are one transaction, committed before the model is reached.

    Raises ``ModelError`` when the model cannot answer. Cancelled while the model speaks, it keeps
    what came as an interrupted answer, steps on, and is cancelled then.
    """
    packet = oriented.packet if oriented else None
    prompt = await here.store.read(lambda connection: _prompt(connection, here, packet))
    try:
        model = here.engine.model(here.session.model)
    except ModelError:
        if oriented is not None:
            await here.store.write(oriented.keep)
        raise

    def call(tx: Tx) -> tuple[Here, int]:
        now = replace(here, wave=oriented.keep(tx)) if oriented else here
        attempt = 1 if oriented else _attempts(tx, here) + 1
        now.journal(tx, ModelCalled(model=model.name, attempt=attempt))
        return now, attempt

    here, attempt = await here.store.write(call)
    speech = Speech(
        here.store, here.session.session_id, here.wave.wave_id, f"m-{here.wave.wave_id}-{attempt}"
    )
    answer = _Answer()
    started = here.store.clock.monotonic()
    try:
        async with aclosing(model.stream(prompt)) as stream:
            async for event in stream:
                match event:
                    case TextDelta(text):
                        await speech.feed(text)
                    case ToolCall():
                        answer.calls.append(event)
                    case Retrying():
                        await here.store.write(_retried(here, model.name, event))
                    case Done():
                        answer.usage, answer.stop = event.usage, event.stop
    except asyncio.CancelledError:
        answer.calls, answer.stop = [], "interrupted"
        await asyncio.shield(_commit(here, speech, answer, started))
        raise
    return await _commit(here, speech, answer, started)


async def _commit(here: Here, speech: Speech, answer: _Answer, started: float) -> Wave:
    calls = [
        _planned(here, place, call, len(answer.calls))
        for place, call in enumerate(answer.calls, start=1)
    ]
    latency = round((here.store.clock.monotonic() - started) * 1000)

    def step(tx: Tx) -> Wave:
        cut = answer.stop in ("cut", "interrupted")
        if speech.text.strip():
            messages.complete(
                tx,
                session_id=here.session.session_id,
                wave_id=here.wave.wave_id,
                message_id=speech.message_id,
                role="agent",
                text=speech.text,
                interrupted=cut,
            )
        _completed(tx, here, answer, latency)
        for call in calls:
            if call["error"]:
                here.journal(
                    tx,
                    ModelMalformedCall(tool=call["name"], message=call["error"]),
                    actor="agent",
                    result="refused",
                    error_code="malformed_call",
                )
        plan = plans.commit(
            tx,
            wave_id=here.wave.wave_id,
            session_id=here.session.session_id,
            text=speech.text,
            calls=calls,
            stop=answer.stop,
        )
        for place, call in enumerate(plan.calls):
            if call["name"] in ACTIONS and not call["error"]:
                outbox.plan(
                    tx,
                    wave_id=here.wave.wave_id,
                    session_id=here.session.session_id,
                    position=place,
                    key=call["key"],
                    action_type=call["name"],
                    title=call["title"],
                    payload=call["arguments"],
                )
        return waves.advance(tx, here.wave.wave_id, "acting", detail=WaveDecided(calls=len(calls)))

    return await here.store.write(step)


def _prompt(connection: Any, here: Here, packet: Packet | None) -> Prompt:
    """The prompt from the packet (the stored one, unless it was just compiled) and the facts."""
    packet = packet or packets.load(connection, here.wave.wave_id).packet
    bands = {entry.fact_id: band for band, entry in packet.rendered()}
    chosen = [entry for _, entry in packet.rendered()]
    words = facts.load_texts(connection, [entry.fact_id for entry in chosen])
    made = []
    for entry in chosen:
        text = words[entry.fact_id]
        levels = {"full": text.full, "outline": text.outline or "", "reference": text.reference}
        made.append(
            PacketFact(
                fact_id=entry.fact_id,
                band=bands[entry.fact_id],
                source_type=text.source_type,
                source_ref=text.source_ref,
                level=entry.level,
                text=levels[entry.level],
                tokens=entry.tokens,
                pinned=entry.pinned,
                ordinal=entry.ordinal,
                provenance=text.provenance,
            )
        )
    reserve = next((band.target_tokens for band in packet.bands if band.name == "reserve"), 8_000)
    tools = [_told(connection, here, tool) for tool in offered(here)]
    return render(
        made,
        tools,
        wave=here.wave.ordinal,
        task_type=here.session.task_type,
        target=here.session.target,
        max_output_tokens=max(1_024, reserve),
    )


def offered(here: Here) -> Sequence[ToolSpec]:
    """The tools that this session's task type and role allow: a type that only reads has no actions."""
    kind = here.engine.types.get(here.session.task_type)
    role = here.engine.role(here.session.role)
    return _offered(kind is not None and kind.reads_only, None if role is None else role.tools)


@cache
def _offered(reads_only: bool, allowed: tuple[str, ...] | None) -> Sequence[ToolSpec]:
    return tuple(
        ToolSpec(tool.name, tool.description, tool.parameters)
        for tool in TOOLS
        if not (reads_only and tool.name in ACTIONS) and (allowed is None or tool.name in allowed)
    )


def _told(connection: Any, here: Here, tool: ToolSpec) -> ToolSpec:
    """The tool as this wave's model reads it: what it starts from belongs to its description."""
    if tool.name != profile_requests.TOOL or here.wave.profile_version is None:
        return tool
    version = here.wave.profile_version
    pinned = profiles.load(connection, here.session.profile_id, version)
    return replace(tool, description=tool.description + profile_requests.described(pinned))


def _planned(here: Here, place: int, call: ToolCall, count: int) -> Mapping[str, Any]:
    """A call as the plan keeps it: read, masked, named by its place."""
    arguments: dict[str, Any] = {}
    error, title = "", call.name
    try:
        if count > MAX_CALLS:
            raise MalformedCall(
                f"You made {count} calls at once; at most {MAX_CALLS} are read. Make fewer."
            )
        if call.name not in {tool.name for tool in offered(here)}:
            names = ", ".join(tool.name for tool in offered(here))
            raise MalformedCall(f"{call.name!r} is not offered in this task. You have: {names}.")
        parse_call(call.name, call.arguments)  # before masking: duplicates and NaN show here only
        arguments = mask_value(json.loads(call.arguments or "{}"))
        title = _title(call.name, parse_call(call.name, canonical_json(arguments)).arguments)
    except MalformedCall as problem:
        error = str(problem)
    key = digest([here.wave.wave_id, place, call.name, arguments])[:24]
    return {
        "call_id": f"call-{here.wave.ordinal}-{place}",
        "name": mask(call.name),
        "arguments": arguments,
        "key": f"k-{key}",
        "title": title,
        "error": mask(error),
    }


def _title(name: str, arguments: Mapping[str, Any]) -> str:
    """A few words for lists: what, to what."""
    match name:
        case "write_file" | "edit_file":
            return f"{name.removesuffix('_file')} {arguments['path']}"
        case "run":
            argv = arguments.get("argv")
            return f"run {' '.join(argv) if argv else arguments.get('command', '')}"
        case "github":
            return str(arguments["command"]).split("--body")[0].strip()[:100]
        case "git_commit":
            return f"commit {str(arguments['message']).splitlines()[0][:80]}"
        case "request_context":
            return str(arguments["question"])[:100]
        case "propose_profile_change":
            return f"shift attention: {str(arguments['reason'])[:80]}"
        case _:
            return name


def _attempts(tx: Tx, here: Here) -> int:
    """How often the model was called for this wave."""
    (before,) = tx.execute(
        "SELECT count(*) FROM journal WHERE session_id=? AND wave_id=? AND action=?",
        (here.session.session_id, here.wave.wave_id, str(Action.MODEL_CALLED)),
    ).fetchone()
    return int(before)


def _retried(here: Here, model: str, event: Retrying) -> Any:
    retried = ModelRetried(
        model=model, reason=event.reason, attempt=event.attempt, wait_s=event.wait_s
    )
    return lambda tx: here.journal(tx, retried, result="error")


def _completed(tx: Tx, here: Here, answer: _Answer, latency: int) -> None:
    usage = answer.usage
    spent: dict[str, Any] = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost_usd,
    }
    sessions.add_usage(tx, here.session.session_id, **spent)
    here.journal(
        tx,
        ModelCompleted(model=here.session.model, stop=answer.stop, **spent),
        latency_ms=latency,
    )
