"""Orient: compile the wave's packet, once.

After a crash before the packet is stored it is compiled again, to the same digest; after that this phase
is skipped. See ``docs/reference/kernel.md``, the compiler.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cockpit.decide.known_prices import find_cache_prices
from cockpit.decide.measure_prompt import digest_prompt
from cockpit.decide.model import Prompt, ToolSpec
from cockpit.loop.phases.wave_epoch import expect_cached, read_standing
from cockpit.loop.phases.wave_prompt import (
    estimate_overheads,
    find_tokenizer,
    measure_prompt,
    render_for_wave,
    shown_in,
    tools_of_wave,
)
from cockpit.loop.wave_context import WaveContext
from cockpit.store.context import facts, packets, profiles
from cockpit.store.context.facts import FactText
from cockpit.store.context.packets import Packet, Rendering
from cockpit.store.context.profile_model import Profile
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import waves
from cockpit.store.sessions.waves import Wave

if TYPE_CHECKING:
    from cockpit.orient.epochs import Standing
    from cockpit.orient.fact_columns import FactColumns


LoadTexts = Callable[[Sequence[str]], Mapping[str, FactText]]
"""Reads the texts of facts by id."""


async def orient(context: WaveContext) -> Wave:
    """Compile the wave's packet, measure its prompt and store it; the wave is ``deciding`` then.

    Raises ``PinnedOverBudget`` when the pinned facts alone exceed the token budget.
    """
    started = context.store.clock.monotonic()
    packet = await asyncio.to_thread(_compile, context)
    latency_ms = round((context.store.clock.monotonic() - started) * 1000)
    return await context.store.write(lambda tx: _store_packet(tx, context, packet, latency_ms))


def load_pinned_profile(connection: sqlite3.Connection, context: WaveContext) -> Profile:
    """Return the profile version that was pinned when the wave began."""
    version = context.wave.profile_version
    if version is None:
        return profiles.load_current(connection, context.session.profile_id)
    return profiles.load(connection, context.session.profile_id, version)


def _compile(context: WaveContext) -> Packet:
    def load_texts(identities: Sequence[str]) -> Mapping[str, FactText]:
        return context.store.read_now(lambda c: facts.load_texts(c, identities))

    inputs = context.store.read_now(lambda c: _read_inputs(c, context, load_texts))
    return _compile_inputs(context, inputs, load_texts)


def _read_inputs(
    connection: sqlite3.Connection, context: WaveContext, load_texts: LoadTexts
) -> _Inputs:
    # Arrays are loaded by a process that compiles, not by one that opens a session.
    from cockpit.orient.fact_columns import load_columns

    profile = load_pinned_profile(connection, context)
    tools = tools_of_wave(connection, context)
    overheads = estimate_overheads(profile, tools, context.wave.ordinal)
    tokenizer = find_tokenizer(connection, context)
    standing = read_standing(connection, context, profile, tools, load_texts)
    columns = load_columns(connection, context.session.session_id, context.wave.ordinal)
    return _Inputs(profile, columns, tools, Rendering(overheads, *tokenizer), standing)


def _compile_inputs(context: WaveContext, inputs: _Inputs, load_texts: LoadTexts) -> Packet:
    def render(packet: Packet) -> Prompt:
        return render_for_wave(context, packet, load_texts(shown_in(packet)), inputs.tools)

    profile, standing = inputs.profile, inputs.standing
    # The price list takes a second to load, when a process asks for a model's price first.
    model, prices = context.session.model, context.engine.settings.model.prices
    standing = replace(standing, prices=find_cache_prices(model, prices.get(model), profile.cache))
    ordinal = context.wave.ordinal
    packet, _ = compile_to_fit(inputs.columns, profile, ordinal, inputs.rendering, render, standing)
    return packet


class _Inputs(Struct, frozen=True):
    """What a wave's packet is compiled from."""

    profile: Profile
    columns: FactColumns
    tools: Sequence[ToolSpec]
    rendering: Rendering
    standing: Standing


def compile_to_fit(
    columns: FactColumns,
    profile: Profile,
    ordinal: int,
    rendering: Rendering,
    render: Callable[[Packet], Prompt],
    standing: Standing,
) -> tuple[Packet, Prompt]:
    """Compile until the prompt, as a whole, takes no more than the packet says, the answer included.

    Parts that were counted one by one may take more tokens together, or by the count of the model's
    provider. Then the compiler gets so many tokens less, until it fits; what it got is kept with the
    packet, so that it compiles alike again. Raises ``PinnedOverBudget``.
    """
    from cockpit.orient.epochs import compile_wave

    overheads = rendering.overheads
    is_first = True
    while True:
        rendering = replace(rendering, overheads=overheads)
        packet = compile_wave(columns, profile, ordinal, standing, rendering=rendering)
        prompt = render(packet)
        tokens = measure_prompt(prompt, rendering.tokenizer, rendering.scale)
        over = tokens + overheads.answer - packet.token_used
        if over <= 0:
            measured = replace(rendering, tokens=tokens, prompt_sha256=digest_prompt(prompt))
            packet = dataclasses.replace(packet, rendering=measured)
            cached = expect_cached(packet, standing.before, prompt)
            return dataclasses.replace(
                packet, epoch=packet.epoch and replace(packet.epoch, cached=cached)
            ), prompt
        if is_first:
            # Fewer facts take less than these did: of the whole room, the same share is too much.
            room = max(profile.total_token_budget - overheads.answer, 0)
            parts = packet.token_used - overheads.answer
            over = min(over, max(room - room * parts // tokens, 1))
            is_first = False
        overheads = replace(overheads, margin=overheads.margin + over)


def _store_packet(tx: Tx, context: WaveContext, packet: Packet, latency_ms: int) -> Wave:
    packet_id = packets.insert(
        tx,
        context.wave.wave_id,
        packet,
        pinned_now=context.wave.pinned_now,
        session_id=context.session.session_id,
        trace_id=context.session.trace_id,
        latency_ms=latency_ms,
    )
    return waves.advance(
        tx,
        context.wave.wave_id,
        "deciding",
        packet_id=packet_id,
        profile_version=packet.profile_version,
    )
