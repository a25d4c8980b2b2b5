"""Rendering a packet as a prompt: the stable head first, then the facts wave by wave.

The system prompt is the identity and capabilities bands. The task opens the messages, word for word. The rest
is chronological, so that each wave appends and a provider's prompt cache keeps hitting. Exchanges become the
provider's own tool-call and tool-result messages, every other fact fenced text with its source. See
``docs/reference/kernel.md``, packets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from cockpit.core.canonical_json import canonical_json
from cockpit.core.fenced_text import MESSAGE_SOURCES, SEPARATOR, fenced, is_head
from cockpit.decide.model import (
    PacketFact,
    Prompt,
    PromptCall,
    PromptMessage,
    ThinkingBlock,
    ToolSpec,
)
from cockpit.store.context.kept_by_identity import KeptByIdentity


def render(
    facts: Sequence[PacketFact],
    tools: Sequence[ToolSpec],
    *,
    wave: int,
    task_type: str,
    target: Mapping[str, Any],
    max_output_tokens: int,
) -> Prompt:
    """Return the prompt of one wave. ``facts`` are the packet's, in packet order. Pure.

    Where all facts of earlier waves are those of the prompt before, its messages are used again.
    """
    rendered = _append_wave(facts, wave) or _render_all(facts)
    if facts:
        _kept_prompts.put(facts[0], rendered)
    messages, parts = [*rendered.messages], rendered.parts
    # A cache may break after the task, after the wave before, and after this one.
    for end in {parts[0], *parts[-2:]} - {0}:
        messages[end - 1] = _with_break(messages[end - 1])
    return Prompt(
        system=rendered.system,
        messages=tuple(messages),
        tools=tuple(tools),
        facts=tuple(facts),
        wave=wave,
        task_type=task_type,
        target=dict(target),
        max_output_tokens=max_output_tokens,
    )


class _Rendered(NamedTuple):
    """Facts as messages, without breaks of the cache."""

    facts: list[PacketFact]
    system: str
    messages: list[PromptMessage]
    parts: list[int]
    """Where the task ends, and each wave: so many messages come before."""


_kept_prompts: KeptByIdentity[PacketFact, _Rendered] = KeptByIdentity(16)
"""The newest prompts of sessions, by their first fact."""
_broken: KeptByIdentity[PromptMessage, PromptMessage] = KeptByIdentity(1_000_000)


def _with_break(message: PromptMessage) -> PromptMessage:
    """Return the message with a break of the cache after it."""
    broken = _broken.get(message)
    if broken is None:
        broken = _broken.put(message, replace(message, cache=True), 1 + len(message.text))
    return broken


def _append_wave(facts: Sequence[PacketFact], wave: int) -> _Rendered | None:
    """Return the prompt before with the facts of this wave behind it; None where it is another one."""
    before = _kept_prompts.get(facts[0]) if facts else None
    # Lists compare their items by identity first.
    if before is None or before.facts != [
        fact for fact in facts if (fact.added or fact.ordinal) < wave
    ]:
        return None
    new = [fact for fact in facts if (fact.added or fact.ordinal) >= wave]
    if any(
        is_head(fact.band, fact.source_type)
        or fact.source_type == "task"
        or (fact.added or fact.ordinal) > wave
        for fact in new
    ):
        return None
    if not new:
        return before
    messages = [*before.messages, *_render_wave(new)]
    return _Rendered([*facts], before.system, messages, [*before.parts, len(messages)])


def _render_all(facts: Sequence[PacketFact]) -> _Rendered:
    head: list[PacketFact] = []
    opening: list[PacketFact] = []
    waves: dict[int, list[PacketFact]] = {}
    for fact in facts:
        if is_head(fact.band, fact.source_type):
            head.append(fact)
        elif fact.source_type == "task":
            opening.append(fact)
        else:
            waves.setdefault(fact.added or fact.ordinal, []).append(fact)
    messages = [PromptMessage("user", fact.text) for fact in opening]
    parts = [len(messages)]
    for ordinal in sorted(waves):
        messages.extend(_render_wave(waves[ordinal]))
        parts.append(len(messages))
    return _Rendered([*facts], SEPARATOR.join(fact.text for fact in head), messages, parts)


def _render_wave(facts: Sequence[PacketFact]) -> list[PromptMessage]:
    """Return one wave's messages: the agent's calls and their results, then the other facts."""
    exchanges = [fact for fact in facts if _is_exchange(fact)]
    thinking = _thinking_of(exchanges)
    if thinking is None:
        exchanges = []
    other = [fact for fact in facts if thinking is None or not _is_exchange(fact)]
    messages: list[PromptMessage] = []
    if exchanges:
        calls = tuple(_call(fact) for fact in exchanges if fact.provenance["call"])
        text_before_calls = SEPARATOR.join(
            str(fact.provenance["text"]) for fact in exchanges if fact.provenance["text"]
        )
        messages.append(
            PromptMessage("assistant", text_before_calls, calls, thinking=thinking or ())
        )
        messages.extend(
            PromptMessage(
                "tool",
                str(fact.provenance_shown["result"]),
                call_id=str(fact.provenance["call_id"]),
                tool_name=str(fact.provenance["call"]),
            )
            for fact in exchanges
            if fact.provenance["call"]
        )
    text = SEPARATOR.join(_shown(fact) for fact in other)
    if text:
        messages.append(PromptMessage("user", text))
    return messages


def _thinking_of(exchanges: Sequence[PacketFact]) -> tuple[ThinkingBlock, ...] | None:
    """Return what the model thought before these calls of one wave; None where that cannot be sent.

    Providers bind it to the prompt that it answered, and refuse the calls without it. That prompt stands
    above in the wave that appended the calls, and in none that an epoch began with.
    """
    thoughtful = [fact for fact in exchanges if "thinking" in fact.provenance]
    if not thoughtful:
        return ()
    blocks = [block for fact in thoughtful for block in fact.provenance["thinking"]]
    if not blocks or not all(fact.added for fact in thoughtful):
        return None
    return tuple(ThinkingBlock(**block) for block in blocks)


def _is_exchange(fact: PacketFact) -> bool:
    is_whole = fact.source_type == "exchange" and fact.level == "full"
    return is_whole and fact.added in (0, fact.ordinal)


def _call(fact: PacketFact) -> PromptCall:
    return PromptCall(
        str(fact.provenance["call_id"]),
        str(fact.provenance["call"]),
        canonical_json(fact.provenance_shown["arguments"]),
    )


def _shown(fact: PacketFact) -> str:
    if fact.level == "gone" or fact.is_bare or fact.source_type in MESSAGE_SOURCES:
        return fact.text
    return fenced(fact.source_ref, fact.level, fact.text_shown, replaces=fact.replaces)
