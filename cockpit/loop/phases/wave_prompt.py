"""The prompt of a wave: rendered from its packet, and measured before the packet is stored.

Orient measures it, so that the budget bounds what the model gets; Decide sends it; a stored packet renders
to the same prompt again. See ``docs/reference/kernel.md``, the compiler.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from msgspec.structs import replace

from cockpit.act.model_tools import TOOLS
from cockpit.core.fenced_text import MESSAGE_TOKENS
from cockpit.decide.measure_prompt import count_prompt, count_tools
from cockpit.decide.model import PacketFact, Prompt, ToolSpec
from cockpit.decide.render_prompt import render
from cockpit.loop.decisions import profile_change_tool
from cockpit.loop.phases.session_tools import tools_of_session
from cockpit.loop.tools.offer_tools import added_tools_of, describe_added
from cockpit.loop.wave_context import Engine, WaveContext
from cockpit.observe.count_tokens import O200K, count_again, vocabulary_for
from cockpit.store.context import facts, packets, profiles
from cockpit.store.context.entry_text import fact_shown, facts_shown, text_shown
from cockpit.store.context.facts import FactText
from cockpit.store.context.packets import POINTED, RENDER_ORDER, Entry, Overheads, Packet
from cockpit.store.context.profile_model import Profile
from cockpit.store.journal.details.waves import PROVIDERS
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import sessions, waves

MIN_ANSWER_TOKENS = 1_024
ANSWER_SHARE = 4
"""The answer's room is the reserve's target, at least 1,024 tokens, and at most a quarter of the budget."""
MAX_SCALE = 2_000
"""The most by which a provider's count scales ours, in thousandths."""


def build_prompt(connection: sqlite3.Connection, context: WaveContext, packet: Packet) -> Prompt:
    """Render the prompt of ``packet``, the wave's packet."""
    texts = facts.load_texts(connection, shown_in(packet))
    return render_for_wave(context, packet, texts, tools_of_wave(connection, context))


def shown_in(packet: Packet) -> Sequence[str]:
    """Return the ids of the facts whose texts the prompt of ``packet`` needs."""
    return facts_shown(entry for _, entry in packet.rendered())


def render_for_wave(
    context: WaveContext,
    packet: Packet,
    texts: Mapping[str, FactText],
    tools: Sequence[ToolSpec],
) -> Prompt:
    """Render the prompt of ``packet`` with the wave's ``tools`` and the ``texts`` of its facts."""
    return render_packet(
        packet,
        texts,
        tools,
        wave=context.wave.ordinal,
        task_type=context.session.task_type,
        target=context.session.target,
    )


def render_packet(
    packet: Packet,
    texts: Mapping[str, FactText],
    tools: Sequence[ToolSpec],
    *,
    wave: int,
    task_type: str,
    target: Mapping[str, Any],
) -> Prompt:
    """Render the prompt of ``packet``; ``texts`` are those of its facts, by fact id. Pure."""
    entries = {band.name: band.entries for band in packet.bands}
    packet_facts: list[PacketFact] = []
    for band in RENDER_ORDER:
        packet_facts += [_show(band, entry, texts) for entry in entries[band]]
    return render(
        packet_facts,
        tools,
        wave=wave,
        task_type=task_type,
        target=target,
        max_output_tokens=_answer_of(packet),
    )


def _show(band: str, entry: Entry, texts: Mapping[str, FactText]) -> PacketFact:
    text = texts[entry.fact_id]
    is_pointed = entry.level == POINTED
    pointed = fact_shown(entry, texts) if is_pointed else None
    is_reference = text.source_type == "exchange" and entry.level == "reference"
    return PacketFact(
        fact_id=entry.fact_id,
        band=band,
        source_type=text.source_type,
        source_ref=text.source_ref,
        level="full" if is_pointed else entry.level,
        text=text.full if is_pointed else text_shown(entry, texts),
        pointed=None if pointed is None else (pointed.full, pointed.provenance),
        tokens=entry.tokens,
        pinned=entry.pinned,
        ordinal=entry.ordinal,
        provenance=text.provenance,
        added=entry.added,
        replaces=bool(entry.base) and not is_pointed,
        is_bare=is_reference,
    )


def render_stored_prompt(
    connection: sqlite3.Connection, engine: Engine, wave_id: str
) -> tuple[Prompt, Packet]:
    """Render the stored packet of a wave again; its ``rendering.prompt_sha256`` tells what was sent.

    Raises :class:`~cockpit.core.errors.NotFound` for a wave without a packet.
    """
    wave = waves.load(connection, wave_id)
    packet = packets.load(connection, wave_id).packet
    session = replace(sessions.load(connection, wave.session_id), profile_id=packet.profile_id)
    return build_prompt(connection, WaveContext(engine, session, wave), packet), packet


def _answer_of(packet: Packet) -> int:
    """Return the room that the packet keeps for the answer."""
    if packet.rendering.overheads.answer:
        return packet.rendering.overheads.answer
    reserve = next((band.target_tokens for band in packet.bands if band.name == "reserve"), 8_000)
    return max(MIN_ANSWER_TOKENS, reserve)


def estimate_overheads(profile: Profile, tools: Sequence[ToolSpec], ordinal: int) -> Overheads:
    """Return what a wave's prompt takes beside its facts: tools, answer, and frames of messages."""
    reserve = next(band.target_tokens for band in profile.bands if band.name == "reserve")
    answer = min(
        max(MIN_ANSWER_TOKENS, reserve), max(profile.total_token_budget // ANSWER_SHARE, 1)
    )
    # The system text, and for each wave the agent's message and the one that answers it.
    frames = MESSAGE_TOKENS * (1 + 2 * ordinal)
    return Overheads(
        tools=count_tools(tools, partial(count_again, vocabulary=O200K)),
        answer=answer,
        frames=frames,
    )


def measure_prompt(prompt: Prompt, vocabulary: str, scale: int) -> int:
    """Count the tokens of the prompt, in thousandths ``scale`` of what the vocabulary says, rounded up."""
    count: Callable[[str], int] = partial(count_again, vocabulary=vocabulary)
    return -(-count_prompt(prompt, count) * scale // 1000)


def find_tokenizer(connection: sqlite3.Connection, context: WaveContext) -> tuple[str, int]:
    """Return the vocabulary to count the wave's prompt with, and its scale in thousandths.

    Where a provider counted more for earlier waves of this session than was counted here, the scale is the
    largest of those ratios, at most 2,000; else 1,000.
    """
    model = context.session.model
    vocabulary = vocabulary_for(model)
    if not model.startswith(PROVIDERS) or context.wave.ordinal == 1:
        return vocabulary, 1000
    rows = connection.execute(
        "SELECT json_extract(detail_json,'$.input_tokens'),"
        " json_extract(packet_json,'$.rendering.tokens'),"
        " json_extract(packet_json,'$.rendering.scale')"
        " FROM journal JOIN orientation_packets USING(wave_id)"
        " WHERE session_id=? AND action=? AND json_extract(detail_json,'$.model')=?"
        " ORDER BY seq DESC LIMIT 8",
        (context.session.session_id, str(Action.MODEL_COMPLETED), model),
    )
    ratios = [
        -(-reported * scale // tokens) for reported, tokens, scale in rows if reported and tokens
    ]
    return vocabulary, min(max([1000, *ratios]), MAX_SCALE)


def offered_tools(context: WaveContext) -> Sequence[ToolSpec]:
    """Return the tools of this session as a model is told of them."""
    own = _specs(tuple(tool.name for tool in tools_of_session(context)))
    added = added_tools_of(context)
    if not added.definitions:
        return own
    described = [describe_added(each) for each in added.definitions]
    return (*own, *(ToolSpec(each.name, each.description, each.parameters) for each in described))


@cache
def _specs(tools: tuple[str, ...]) -> Sequence[ToolSpec]:
    return tuple(
        ToolSpec(tool.name, tool.description, tool.parameters)
        for tool in TOOLS
        if tool.name in tools
    )


def tools_of_wave(connection: sqlite3.Connection, context: WaveContext) -> Sequence[ToolSpec]:
    """Return the tools as the wave's prompt describes them."""
    tools, version = offered_tools(context), context.wave.profile_version
    if version is None or all(tool.name != profile_change_tool.TOOL for tool in tools):
        return tools
    pinned = profiles.load(connection, context.session.profile_id, version)
    return tuple(_describe_for_profile(pinned, tool) for tool in tools)


def _describe_for_profile(pinned: Profile, tool: ToolSpec) -> ToolSpec:
    """Return the tool with the profile in its description, where it changes that profile."""
    if tool.name != profile_change_tool.TOOL:
        return tool
    return replace(
        tool, description=tool.description + profile_change_tool.describe_profile(pinned)
    )
