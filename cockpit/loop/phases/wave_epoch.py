"""What a wave's packet stands on: the packet before, the tools, the provider's cache, changed files.

See ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cockpit.core.canonical_json import text_digest
from cockpit.core.fenced_text import SEPARATOR, fence_for, heading
from cockpit.core.text_change import describe_change
from cockpit.decide.measure_prompt import count_head, tools_json
from cockpit.decide.model import Prompt, ToolSpec
from cockpit.loop.wave_context import WaveContext
from cockpit.observe.count_tokens import count_again, count_tokens
from cockpit.store.context import packets
from cockpit.store.context.entry_text import parts_of, point_fact
from cockpit.store.context.facts import FactText
from cockpit.store.context.packet_epoch import Change
from cockpit.store.context.packets import Packet
from cockpit.store.context.profile_model import Profile
from cockpit.store.journal.event_types import Action

if TYPE_CHECKING:
    from cockpit.orient.epochs import Standing


def read_standing(
    connection: sqlite3.Connection,
    context: WaveContext,
    profile: Profile,
    tools: Sequence[ToolSpec],
    load_texts: Callable[[Sequence[str]], Mapping[str, FactText]],
) -> Standing:
    """Read what the wave's packet stands on; ``load_texts`` reads the texts of facts by id."""
    stored = packets.find_before(connection, context.session.session_id, context.wave.ordinal)
    before = stored.packet if stored is not None else None
    is_cold = stored is not None and _is_cold(connection, context, profile, stored.wave_id)

    def find_changes(
        pairs: Sequence[tuple[str, str]], waves: Sequence[Sequence[str]], shown: Sequence[str]
    ) -> Sequence[Change]:
        return count_changes(pairs, waves, shown, load_texts)

    # Arrays are loaded by a process that compiles, not by one that opens a session.
    from cockpit.orient.epochs import Standing

    return Standing(before, digest_tools(tools), is_cold, find_changes, load_texts)


def digest_tools(tools: Sequence[ToolSpec]) -> str:
    """Return the digest of tools as they are described to the model."""
    return text_digest(tools_json(tools))


def _is_cold(
    connection: sqlite3.Connection, context: WaveContext, profile: Profile, last_wave: str
) -> bool:
    """Whether the wave begins later after the answer of ``last_wave`` than the provider's cache lives."""
    row = connection.execute(
        "SELECT at FROM journal WHERE wave_id=? AND action=? ORDER BY seq DESC LIMIT 1",
        (last_wave, str(Action.MODEL_COMPLETED)),
    ).fetchone()
    if row is None:
        return False
    idle = datetime.fromisoformat(context.wave.pinned_now) - datetime.fromisoformat(row[0])
    return idle > timedelta(seconds=profile.cache.lifetime_s)


def count_changes(
    pairs: Sequence[tuple[str, str]],
    waves: Sequence[Sequence[str]],
    shown: Sequence[str],
    load_texts: Callable[[Sequence[str]], Mapping[str, FactText]],
) -> list[Change]:
    """Count the shorter forms of facts: differences of (fact, fact that it replaces), and repeats.

    Facts of ``waves`` may point to those that are ``shown``, and to those of earlier waves.
    """
    changes = count_differences(pairs, load_texts)
    if not any(waves):
        return changes
    texts = load_texts([*shown, *(name for names in waves for name in names)])
    above = [texts[name] for name in shown if name in texts]
    for names in waves:
        new = [texts[name] for name in names if name in texts]
        for text in new:
            pointed, bases = point_fact(text, above)
            saved = sum(map(count_tokens, parts_of(text))) - sum(
                map(count_tokens, parts_of(pointed))
            )
            if bases and saved > 0:
                changes.append(Change(text.fact_id, " ".join(bases), saved, points=True))
        above += new
    return changes


def count_differences(
    pairs: Sequence[tuple[str, str]], load_texts: Callable[[Sequence[str]], Mapping[str, FactText]]
) -> list[Change]:
    """Count the tokens of the differences of (fact, fact that it replaces), as a prompt renders them."""
    texts = load_texts(sorted({name for pair in pairs for name in pair})) if pairs else {}
    changes = []
    for fact_id, base in pairs:
        if fact_id not in texts or base not in texts:
            continue
        difference = describe_change(texts[base].full, texts[fact_id].full)
        if difference is not None:
            fence = fence_for(difference)
            around = heading(texts[fact_id].source_ref, packets.DIFF, fence)
            tokens = count_tokens(f"{around}{difference}\n{fence}{SEPARATOR}")
            changes.append(Change(fact_id, base, tokens))
    return changes


def expect_cached(packet: Packet, before: Packet | None, prompt: Prompt) -> int:
    """Return the tokens of the prompt that the provider is expected to have in its cache.

    Within an epoch that is the whole prompt before; when a new one begins, tools, system text and task.
    """
    epoch, rendering = packet.epoch, packet.rendering
    if before is None or epoch is None or epoch.cold:
        return 0
    if not epoch.begins:
        return min(before.rendered_tokens or 0, rendering.tokens)
    if epoch.reason in ("first", "profile", "head"):
        return 0
    tokens = count_head(prompt, lambda text: count_again(text, vocabulary=rendering.tokenizer))
    return -(-tokens * rendering.scale // 1_000)
