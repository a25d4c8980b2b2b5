"""Decide: render the packet, call the model, and commit its plan before anything runs.

Text and calls become one plan, in one transaction with the wave's step to ``acting``. A malformed call is
part of the plan with its error, and the next wave answers it. See ``docs/reference/loop.md``, phases.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from cockpit.act.mcp_servers.preview_mcp_call import MCP_TOOL
from cockpit.act.model_tools import (
    ACTIONS,
    ADDED_ACTIONS,
    GROW,
    RESUME,
    MalformedCall,
    suggest_tool,
)
from cockpit.act.own_tools.adopt_tool import ADOPT
from cockpit.act.own_tools.preview_call import OWN_TOOL, describe_call
from cockpit.act.tool_payloads import AddedCall
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.core.secrets import mask, mask_value
from cockpit.core.text import end_sentence, pluralize
from cockpit.decide.calls_as_text import read_calls_as_text
from cockpit.decide.kept_thinking import describe_thinking, keep_blocks
from cockpit.decide.model import (
    Done,
    Model,
    ModelError,
    Prompt,
    PromptMessage,
    Retrying,
    TextDelta,
    ThinkingBlock,
    Thought,
    ToolCall,
    Usage,
)
from cockpit.loop.decisions import task_type_tool
from cockpit.loop.phases.reading_calls import READS, asks_to_read, find_request
from cockpit.loop.phases.session_tools import callable_tools
from cockpit.loop.phases.stream_answer_to_journal import AnswerStream
from cockpit.loop.phases.wave_prompt import MAX_SCALE, build_prompt, offered_tools
from cockpit.loop.planner.plan_target import PLAN_TOOL
from cockpit.loop.planner.plan_tool import find_plan_problem, refuse_second_plan
from cockpit.loop.reentry.resume_tool import (
    RESUMES,
    find_kept_call,
    journal_continued,
    mark_continued,
)
from cockpit.loop.tools.offer_tools import added_tools_of, parse_session_call
from cockpit.loop.wave_context import WaveContext
from cockpit.store.context import packets
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import (
    ModelCalled,
    ModelCompleted,
    ModelMalformedCall,
    ModelRetried,
)
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import messages, outbox, plans, sessions, waves
from cockpit.store.sessions.waves import Wave

EMPTY_RETRIES = 2
"""So often a call is made again whose answer was complete and empty."""
EMPTY_WORDS = "Your last answer was empty. Answer with a call of one of the tools, or with words."
"""What such a call says at its end: the same prompt would bring the same answer."""
EMPTY_WAIT_S = 0.5
"""Seconds before the first of them; twice as many before the next."""
MAX_CALLS = 24
"""Calls of one answer; with more, every call is answered as malformed."""
_ACTION_TYPES = (*ACTIONS, *ADDED_ACTIONS, ADOPT)
MAX_REFUSED = 4_000
"""Characters of a malformed call's arguments that the journal keeps."""


class _Answer(Struct):
    """The calls and the usage of an answer so far."""

    calls: list[ToolCall] = field(default_factory=list)
    thinking: tuple[ThinkingBlock, ...] = ()
    usage: Usage = field(default_factory=Usage)
    stop: str = "cut"
    reason: str = ""
    is_text: bool = False
    """Whether the calls were printed as the answer's text."""


def _model_of(context: WaveContext) -> Model:
    return context.engine.model(context.session.model)


async def decide(context: WaveContext) -> Wave:
    """Call the model and commit its plan, with the wave's step to ``acting``.

    A model that answered with nothing is told so and asked again. Raises ``ModelError`` when the model
    cannot answer, still answers with nothing, or when the provider's content filter ends the answer, whose
    text and usage are kept. Cancelled while the model streams, it commits the text so far as an interrupted
    answer before it raises ``CancelledError``.
    """
    store, wave_id = context.store, context.wave.wave_id
    first = await store.read(lambda connection: _render_stored(connection, context))
    model, prompt, tried = _model_of(context), first, 0
    attempt = await store.write(lambda tx: _journal_call(tx, context, model.name))
    while True:
        message_id = f"m-{wave_id}-{attempt}"
        answer_stream = AnswerStream(store, context.session.session_id, wave_id, message_id)
        answer, started = _Answer(), store.clock.monotonic()
        try:
            await _hear(context, model, prompt, answer_stream, answer)
        except asyncio.CancelledError:
            answer.calls, answer.stop = [], "interrupted"
            await asyncio.shield(_commit_plan(context, answer_stream, answer, started))
            raise
        _take_calls_from_text(context, answer, answer_stream.text)
        error = _unusable(context, model.name, answer, answer_stream.text)
        if error is None:
            return await _commit_plan(context, answer_stream, answer, started)
        retry = None
        if error.code == "empty_answer" and answer.stop == "end" and tried < EMPTY_RETRIES:
            retry = Retrying("the answer was empty", attempt, EMPTY_WAIT_S * 2**tried)
        unusable = partial(_store_unusable, context, answer_stream, answer, started, retry)
        await store.write(unusable)
        if retry is None:
            raise error
        await store.clock.sleep(retry.wait_s)
        messages = (*first.messages, PromptMessage("user", EMPTY_WORDS))
        prompt, tried, attempt = replace(first, messages=messages), tried + 1, attempt + 1


def _render_stored(connection: sqlite3.Connection, context: WaveContext) -> Prompt:
    return build_prompt(connection, context, packets.load(connection, context.wave.wave_id).packet)


def _journal_call(tx: Tx, context: WaveContext, model: str) -> int:
    """Journal a call that is to be made; returns which of the wave's it is."""
    (count,) = tx.execute(
        "SELECT count(*) FROM journal WHERE session_id=? AND wave_id=? AND action=?",
        (context.session.session_id, context.wave.wave_id, str(Action.MODEL_CALLED)),
    ).fetchone()
    context.journal(tx, ModelCalled(model=model, attempt=count + 1))
    return int(count) + 1


def _store_unusable(
    context: WaveContext,
    answer_stream: AnswerStream,
    answer: _Answer,
    started: float,
    retry: Retrying | None,
    tx: Tx,
) -> None:
    """Store an answer that is no plan, and that the call is made again if it is."""
    _store_answer(tx, context, answer_stream, answer, started)
    if retry is not None:
        model = _model_of(context).name
        _journal_retry(context, model, retry)(tx)
        context.journal(tx, ModelCalled(model=model, attempt=retry.attempt + 1))


async def _hear(
    context: WaveContext, model: Model, prompt: Prompt, answer_stream: AnswerStream, answer: _Answer
) -> None:
    """Stream an answer into ``answer_stream`` and ``answer``."""
    async with aclosing(model.stream(prompt)) as stream:
        async for event in stream:
            match event:
                case TextDelta(text):
                    await answer_stream.feed(text)
                case ToolCall():
                    answer.calls.append(event)
                case Thought(blocks):
                    answer.thinking = blocks
                case Retrying():
                    await context.store.write(_journal_retry(context, model.name, event))
                case Done():
                    answer.usage, answer.stop = event.usage, event.stop
                    answer.reason = event.reason


def _take_calls_from_text(context: WaveContext, answer: _Answer, text: str) -> None:
    """Take a text that is exactly calls of offered tools, with arguments that fit, for those calls."""
    is_whole = answer.stop not in ("cut", "length", "filtered")
    if answer.calls or not is_whole or context.session.task_type == sessions.EXTERNAL_AGENT:
        return
    written = read_calls_as_text(text)
    names = [tool.name for tool in offered_tools(context)] if written else []
    try:
        for call in written:
            if call.name not in names and added_tools_of(context).find(call.name) is None:
                return  # a rare tool that is not offered: the text may be about it
            parse_session_call(context, call.name, call.arguments)
    except MalformedCall:
        return  # it stays text
    answer.calls, answer.is_text = written, bool(written)


def _unusable(context: WaveContext, model: str, answer: _Answer, text: str) -> ModelError | None:
    """Return the error of an answer that says and does nothing, or that a content filter ended.

    Of an external agent that calls over MCP an answer is its call, and nothing until the next one.
    """
    if context.session.task_type == sessions.EXTERNAL_AGENT:
        return None
    if answer.stop == "filtered":
        return ModelError(
            "content_filter",
            f"{model} did not answer: {end_sentence(answer.reason)} Say it in other words, or choose"
            " another model.",
        )
    if text.strip() or answer.calls:
        return None
    cause = {"length": " within its length limit", "cut": f": {answer.reason or 'it was cut off'}"}
    return ModelError(
        "empty_answer",
        f"{model} answered without text and without a call{cause.get(answer.stop, '')}. Resume the"
        " session to try again, or choose another model.",
    )


async def _commit_plan(
    context: WaveContext,
    answer_stream: AnswerStream,
    answer: _Answer,
    started: float,
) -> Wave:
    calls = [
        _plan_call(context, place, call, len(answer.calls))
        for place, call in enumerate(answer.calls, start=1)
    ]
    refuse_second_plan(calls)
    # A call that was written anew is no answer to a thought any more: its wave is told as text.
    is_rewritten = any(call.get(RESUMES) for call in calls)
    blocks = () if is_rewritten else keep_blocks(answer.thinking)
    for place, planned in enumerate(calls):
        if answer.thinking:
            # The first call carries the blocks; the others say that there were some.
            planned["thinking"] = [block.body() for block in blocks] if place == 0 else []

    def commit(tx: Tx) -> Wave:
        _store_answer(tx, context, answer_stream, answer, started)
        for refused, written in zip(calls, answer.calls, strict=True):
            if refused["error"]:
                context.journal(
                    tx,
                    ModelMalformedCall(
                        tool=refused["name"],
                        message=refused["error"],
                        arguments=mask(written.arguments or "")[:MAX_REFUSED],
                    ),
                    actor="agent",
                    result="refused",
                    error_code="malformed_call",
                )
        mark_continued(tx, context, [call for call in calls if _is_action(call)])
        plan = plans.commit(
            tx,
            wave_id=context.wave.wave_id,
            session_id=context.session.session_id,
            text="" if answer.is_text else answer_stream.text,
            calls=calls,
            stop=answer.stop,
        )
        for place, call in enumerate(plan.calls):
            if _is_action(call):
                planned = outbox.plan(
                    tx,
                    wave_id=context.wave.wave_id,
                    session_id=context.session.session_id,
                    position=place,
                    key=call["key"],
                    action_type=call.get("action", call["name"]),
                    title=call["title"],
                    payload=call["arguments"],
                )
                journal_continued(tx, call, planned)
        return waves.advance(tx, context.wave.wave_id, "acting")

    return await context.store.write(commit)


def _is_action(call: Mapping[str, Any]) -> bool:
    """Whether a planned call changes something, and so goes through the outbox."""
    is_action = call.get("action", call["name"]) in _ACTION_TYPES
    return is_action and not call["error"] and not asks_to_read(call)


def _store_answer(
    tx: Tx, context: WaveContext, answer_stream: AnswerStream, answer: _Answer, started: float
) -> None:
    """Store the text as a message, and journal the call's end with its usage."""
    latency_ms = round((context.store.clock.monotonic() - started) * 1000)
    if answer.thinking:
        is_kept = bool(keep_blocks(answer.thinking))
        context.journal(tx, describe_thinking(answer.thinking, is_kept=is_kept), actor="agent")
    if answer_stream.text.strip():
        messages.complete(
            tx,
            session_id=context.session.session_id,
            wave_id=context.wave.wave_id,
            message_id=answer_stream.message_id,
            role="agent",
            text=answer_stream.text,
            interrupted=answer.stop in ("cut", "interrupted", "filtered"),
            has_fragments=answer_stream.has_fragments,
        )
    _journal_completion(tx, context, answer, latency_ms)


def _plan_call(context: WaveContext, place: int, call: ToolCall, count: int) -> dict[str, Any]:
    """Return a call as the plan stores it: parsed, masked, and named by its place in the answer."""
    arguments: dict[str, Any] = {}
    error, title, name, action, resumes = "", call.name, call.name, "", ""
    reads: dict[str, Any] | None = None
    try:
        if count > MAX_CALLS:
            raise MalformedCall(
                f"You made {count} calls in one answer; at most {MAX_CALLS} are allowed. Make fewer."
            )
        _require_callable(context, name)
        text = call.arguments
        if name == RESUME:
            kept = find_kept_call(context, text)
            resumes, name, text = kept.action_id, kept.name, kept.arguments
            _require_callable(context, name)
        parsed = parse_session_call(context, name, text)  # duplicates and NaN show
        arguments = mask_value(dict(parsed.arguments))
        if arguments != parsed.arguments:
            parsed = parse_session_call(context, name, canonical_json(arguments))
        name = parsed.name
        title = _title(name, parsed.arguments)
        if isinstance(parsed.payload, AddedCall):
            action = OWN_TOOL if parsed.payload.definition.kind == "own" else MCP_TOOL
            title = describe_call(name, parsed.arguments)
        if name == GROW:
            action = ADOPT
        _check_type_change(context, name, parsed.arguments)
        if name == PLAN_TOOL and (problem := find_plan_problem(context, parsed.arguments)):
            raise MalformedCall(f"{PLAN_TOOL}: {problem}")
        if any(tool.name == "request_context" for tool in callable_tools(context)):
            reads = find_request(context, parsed.payload)
    except MalformedCall as malformed:
        error = str(malformed)
    key = digest([context.wave.wave_id, place, name, arguments])[:24]
    return {
        "call_id": f"call-{context.wave.ordinal}-{place}",
        "name": mask(name),
        "arguments": arguments,
        "key": f"k-{key}",
        "title": title,
        "error": mask(error),
        **({READS: reads} if reads else {}),
        **({"action": action} if action else {}),
        **({RESUMES: resumes} if resumes else {}),
    }


def _require_callable(context: WaveContext, name: str) -> None:
    """Raise :class:`MalformedCall` for a tool that the session may not call.

    One that is only not offered is taken: task type and role allow it, and the user decides about it anyway.
    """
    allowed = callable_tools(context)
    if any(tool.name == name for tool in allowed) or added_tools_of(context).find(name) is not None:
        return
    names = [tool.name for tool in offered_tools(context)]
    raise MalformedCall(
        f"{name!r} is not a tool of this task. {suggest_tool(name, names)} You have: {', '.join(names)}."
    )


def _check_type_change(context: WaveContext, name: str, arguments: Mapping[str, Any]) -> None:
    """Raise :class:`MalformedCall` for a task type that this session cannot become."""
    if name != task_type_tool.TOOL:
        return
    refusal = task_type_tool.find_refusal(
        str(arguments["task_type"]), context.session.task_type, context.engine.task_types
    )
    if refusal:
        raise MalformedCall(refusal)


def _title(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a short title for lists: the verb and its object."""
    match name:
        case "write_file" | "edit_file":
            return f"{name.removesuffix('_file')} {arguments['path']}"
        case "create_skill":
            return f"create skill {arguments['name']}"
        case "propose_tool":
            return f"adopt the tool {arguments['name']}"
        case "run":
            argv = arguments.get("argv")
            return f"run {' '.join(argv) if argv else arguments.get('command', '')}"
        case "github":
            return str(arguments["command"]).split("--body")[0].strip()[:100]
        case "git_commit":
            return f"commit {str(arguments['message']).splitlines()[0][:80]}"
        case "request_context":
            return str(arguments["question"])[:100]
        case "update_wip":
            return "record work in progress"
        case "propose_profile_change":
            return f"change the profile: {str(arguments['reason'])[:80]}"
        case "propose_plan":
            return f"propose {pluralize(len(arguments['tasks']), 'task')}"
        case "change_task_type":
            return f"become {str(arguments['task_type'])[:40]}"
        case _:
            return name


def _journal_retry(context: WaveContext, model: str, event: Retrying) -> Callable[[Tx], None]:
    retried = ModelRetried(
        model=model, reason=event.reason, attempt=event.attempt, wait_s=event.wait_s
    )
    return lambda tx: context.journal(tx, retried, result="error")


def _journal_completion(tx: Tx, context: WaveContext, answer: _Answer, latency_ms: int) -> None:
    usage = answer.usage
    spent: dict[str, Any] = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost_usd,
    }
    sessions.add_usage(tx, context.session.session_id, **spent)
    context.journal(
        tx,
        ModelCompleted(
            model=context.session.model,
            stop=answer.stop,
            input_usd=UNSET if usage.input_usd is None else usage.input_usd,
            cached_usd=UNSET if usage.cached_usd is None else usage.cached_usd,
            calls_as_text=len(answer.calls) if answer.is_text else UNSET,
            **spent,
        ),
        latency_ms=latency_ms,
    )
    _say_over_budget(tx, context, usage.input_tokens)
    if usage.doubt:
        _notice_once(tx, context, usage.doubt, usage.doubt.partition("(")[0])


def _say_over_budget(tx: Tx, context: WaveContext, reported: int) -> None:
    """Tell the user once a session that its provider counted more than the budget for a prompt.

    From the next wave on the session's prompts are counted by the provider's measure.
    """
    row = tx.execute(
        "SELECT token_budget, json_extract(packet_json, '$.rendering.tokens')"
        " FROM orientation_packets WHERE wave_id=? AND token_budget<?",
        (context.wave.wave_id, reported),
    ).fetchone()
    if row is None or row[1] is None:
        return
    budget, counted = row
    begin = "The provider counted "
    text = (
        f"{begin}{reported:,} tokens for the prompt of wave {context.wave.ordinal}, more than the budget"
        f" of {budget:,}; cockpit had counted {counted:,}. The next prompts are"
        f" counted by that ratio, at most {MAX_SCALE // 1000} times."
    )
    _notice_once(tx, context, text, begin)


def _notice_once(tx: Tx, context: WaveContext, text: str, begin: str) -> None:
    """Tell the user something once a session; ``begin`` is how it begins each time."""
    session_id = context.session.session_id
    is_told = tx.execute(
        "SELECT 1 FROM messages WHERE session_id=? AND role='notice' AND text LIKE ? LIMIT 1",
        (session_id, f"{begin}%"),
    ).fetchone()
    if not is_told:
        messages.complete(tx, session_id=session_id, role="notice", text=text)
