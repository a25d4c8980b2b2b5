"""Rendering a packet as a prompt: the stable head first, then the facts wave by wave.

The system prompt is the identity and capabilities bands. The task opens the messages, word for word. The rest
is chronological, so that each wave appends and a provider's prompt cache keeps hitting. Exchanges become the
provider's own tool-call and tool-result messages, every other fact fenced text with its source. See
``docs/reference/kernel.md``, packets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


def render(
    facts: Sequence[PacketFact],
    tools: Sequence[ToolSpec],
    *,
    wave: int,
    task_type: str,
    target: Mapping[str, Any],
    max_output_tokens: int,
) -> Prompt:
    """Return the prompt of one wave. ``facts`` are the packet's, in packet order. Pure."""
    head: list[str] = []
    opening: list[PromptMessage] = []
    waves: dict[int, list[PacketFact]] = {}
    for fact in facts:
        if is_head(fact.band, fact.source_type):
            head.append(fact.text)
        elif fact.source_type == "task":
            opening.append(PromptMessage("user", fact.text))
        else:
            waves.setdefault(fact.added or fact.ordinal, []).append(fact)
    messages, parts = [*opening], [len(opening)]
    for ordinal in sorted(waves):
        messages.extend(_render_wave(waves[ordinal]))
        parts.append(len(messages))
    # A cache may break after the task, after the wave before, and after this one.
    for end in {parts[0], *parts[-2:]} - {0}:
        messages[end - 1] = replace(messages[end - 1], cache=True)
    return Prompt(
        system=SEPARATOR.join(head),
        messages=tuple(messages),
        tools=tuple(tools),
        facts=tuple(facts),
        wave=wave,
        task_type=task_type,
        target=dict(target),
        max_output_tokens=max_output_tokens,
    )


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
