"""Epochs over random sessions: prompts append, stay within the budget, and compile again alike."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest
from examples import examples
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.decide.measure_prompt import digest_prompt
from cockpit.decide.model import Prompt, PromptMessage, ToolSpec
from cockpit.loop.phases.orienting import compile_to_fit
from cockpit.loop.phases.wave_epoch import count_changes
from cockpit.loop.phases.wave_prompt import estimate_overheads, measure_prompt, render_packet
from cockpit.observe.count_tokens import CL100K, O200K, count_tokens
from cockpit.observe.rendered_cost import with_cost
from cockpit.orient.compile_packet import compile_packet
from cockpit.orient.epochs import PROTECTED_WAVES, Standing, compile_wave
from cockpit.orient.fact_columns import columns_from_facts
from cockpit.orient.select_facts import PinnedOverBudget
from cockpit.store.context.facts import Fact, FactText, Level, SessionFact
from cockpit.store.context.packets import Packet, Rendering, detail_of, packet_from_body
from cockpit.store.context.profile_model import BANDS, Band, Profile, load_shipped, scale

pytestmark = [pytest.mark.slow, pytest.mark.search]

TOOLS = (ToolSpec("look", "Look at a file.", {"type": "object"}),)
WORDS = (
    "alpha",
    "beta",
    "```",
    "return",
    "value",
    "日本語の文",
    "🙂",
    "…",
    "a.py",
    "\t",
    "[file:a.py]",
)
WIDE = replace(scale(load_shipped(), 1_000_000), bands=tuple(Band(name, 0, 0, 0) for name in BANDS))
KINDS = (
    ("file", "situational"),
    ("exchange", "situational"),
    ("person", "objectives"),
    ("docs", "exploration"),
    ("wip", "objectives"),
    ("search", "situational"),
)


@dataclass
class Session:
    """A session's facts as a store would link them, made by a seeded dice."""

    dice: random.Random
    linked: list[SessionFact] = field(default_factory=list)
    texts: dict[str, FactText] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)

    def text(self, most: int) -> str:
        lines = self.dice.randint(1, most)
        return "\n".join(" ".join(self.dice.choices(WORDS, k=6)) for _ in range(lines))

    def wave(self, ordinal: int) -> None:
        """New facts, changed and deleted files, and pins that come and go."""
        for place in range(self.dice.randint(0, 4)):
            kind, band = self.dice.choice(KINDS)
            name = (
                f"{kind}:{self.dice.randint(1, 6)}"
                if kind in ("file", "wip")
                else f"{kind}:{ordinal}.{place}"
            )
            self._see(kind, band, name, ordinal, place)
        for at, old in enumerate(self.linked):
            if old.source_type in ("file", "docs") and self.dice.random() < 0.05:
                self.linked[at] = replace(old, pinned=not old.pinned)
            if old.source_type == "file" and self.dice.random() < 0.05:
                self.linked[at] = replace(old, superseded=True)

    def _see(self, kind: str, band: str, name: str, ordinal: int, place: int) -> None:
        lines = self.files.setdefault(name, self.text(40).splitlines())
        if self.dice.random() < 0.7:
            lines[self.dice.randrange(len(lines))] = self.text(1)
        body = "\n".join(lines)
        fact = _made(kind, band, name, body, f"{ordinal}-{place}", pinned=kind == "person")
        key = name if kind in ("file", "wip") else ""
        for at, old in enumerate(self.linked):
            if key and old.dedupe_key == key and old.fact_id != fact.fact_id:
                self.linked[at] = replace(old, superseded=True)
        if any(old.fact_id == fact.fact_id and not old.superseded for old in self.linked):
            return
        self.texts[fact.fact_id] = FactText(
            fact.fact_id, kind, name, fact.full.text, fact.outline.text if fact.outline else None,
            fact.reference.text, dict(fact.provenance or {}),
        )  # fmt: skip
        tokens = (
            fact.full.tokens,
            fact.outline.tokens if fact.outline else 0,
            fact.reference.tokens,
        )
        costs = (fact.cost.full, fact.cost.outline, fact.cost.reference)
        self.linked.append(
            SessionFact(
                fact.fact_id, kind, name, band, ordinal, place, fact.pinned, False, fact.utility, tokens,
                key, costs=costs,
            )
        )  # fmt: skip

    def load_texts(self, fact_ids: Sequence[str]) -> dict[str, FactText]:
        return {name: self.texts[name] for name in fact_ids}

    def standing(self, before: Packet | None, *, cold: bool) -> Standing:
        find_changes = partial(count_changes, load_texts=self.load_texts)
        return Standing(before, "tools", cold, find_changes, self.load_texts)


def _made(kind: str, band: str, name: str, body: str, place: str, *, pinned: bool) -> Fact:
    outline = body[: len(body) // 4]
    call = {
        "text": "words", "call": "run", "call_id": f"call-{place}", "arguments": {"argv": [name]},
        "result": body, "status": "confirmed",
    }  # fmt: skip
    return with_cost(
        Fact(
            source_type=kind,
            source_ref=name,
            band=band,
            full=Level(body, count_tokens(body)),
            reference=Level(name, count_tokens(name)),
            outline=Level(outline, count_tokens(outline)) if len(outline) > 40 else None,
            provenance=call if kind == "exchange" else {"path": name},
            pinned=pinned,
        )
    )


def _messages(prompt: Prompt) -> list[PromptMessage]:
    return [replace(message, cache=False) for message in prompt.messages]


@given(
    st.integers(0, 2**32),
    st.sampled_from((2_200, 4_000, 9_000, 30_000)),
    st.sampled_from((O200K, CL100K)),
    st.integers(1_000, 2_000),
)
@settings(max_examples=examples(5), deadline=None)
def test_prompts_of_an_epoch_append(seed, budget, vocabulary, scaled):
    session = Session(random.Random(seed))
    profile = scale(load_shipped(), budget)
    before: Packet | None = None
    sent: Prompt | None = None
    for ordinal in range(1, 13):
        session.wave(ordinal)
        columns = columns_from_facts(session.linked)
        cold = session.dice.random() < 0.05
        standing = session.standing(before, cold=cold)
        rendering = Rendering(estimate_overheads(profile, TOOLS, ordinal), vocabulary, scaled)

        def render(packet: Packet, wave: int = ordinal) -> Prompt:
            return render_packet(
                packet, session.texts, TOOLS, wave=wave, task_type="look", target={}
            )

        try:
            packet, prompt = compile_to_fit(columns, profile, ordinal, rendering, render, standing)
        except PinnedOverBudget:
            event("pinned over the budget")
            # What is pinned, alone and shortened, does not fit; but for a few tokens that the parts are
            # counted more.
            pinned = [fact for fact in session.linked if fact.pinned and not fact.superseded]
            alone = compile_packet(columns_from_facts(pinned), WIDE, ordinal, rendering=rendering)
            need = measure_prompt(render(alone), vocabulary, scaled) + rendering.overheads.answer
            assert need > budget - 4 * len(pinned) - rendering.overheads.frames
            return
        epoch = packet.epoch
        assert epoch is not None
        event(f"begins: {epoch.reason or 'appended'}")
        assert packet.rendered_tokens is not None
        assert packet.rendered_tokens + prompt.max_output_tokens <= packet.token_used <= budget
        _check_bands(packet, profile)
        _check_room(packet, profile, session.linked)
        _check_what_it_says(packet, session.linked)
        if not epoch.begins:
            assert before is not None
            assert sent is not None
            assert prompt.system == sent.system
            assert _messages(prompt)[: len(sent.messages)] == _messages(sent)
            assert epoch.cached == (0 if cold else before.rendered_tokens)
        _check_rendered_anew(packet, prompt, session)
        _check_again(packet, standing, session, profile)
        before, sent = packet, prompt


def _check_rendered_anew(packet: Packet, prompt: Prompt, session: Session) -> None:
    """What is kept of earlier prompts gives the prompt that is made of nothing kept."""
    copied = packet_from_body(packet.body())
    texts = {name: replace(text) for name, text in session.texts.items()}
    anew = render_packet(copied, texts, TOOLS, wave=packet.ordinal, task_type="look", target={})
    assert anew == prompt
    assert packet.rendering is not None
    assert digest_prompt(anew) == digest_prompt(prompt) == packet.rendering.prompt_sha256
    assert (
        measure_prompt(anew, packet.rendering.tokenizer, packet.rendering.scale)
        == packet.rendered_tokens
    )


def _check_bands(packet: Packet, profile: Profile) -> None:
    for band, limits in zip(packet.bands, profile.bands, strict=True):
        tokens = sum(entry.tokens for entry in band.entries)
        assert band.used == tokens + packet.overheads.in_band(band.name)
        pinned = sum(entry.tokens for entry in band.entries if entry.pinned)
        assert band.used <= max(limits.max_tokens, pinned + packet.overheads.in_band(band.name))


def _check_room(packet: Packet, profile: Profile, linked: Sequence[SessionFact]) -> None:
    """Where an epoch begins nothing is out that has room, but for the headroom."""
    epoch = packet.epoch
    assert epoch is not None
    if not epoch.begins:
        return
    in_force = packet.in_force()
    floors = {band.name: band.min_tokens for band in profile.bands}
    # What points to text above was counted whole when facts were chosen.
    saved = sum(change.tokens for change in epoch.changes if change.points)
    spare = packet.token_budget - packet.token_used - saved
    spare -= max(floors["reserve"] - packet.bands[BANDS.index("reserve")].used, 0)
    for fact in linked:
        shown = in_force.get(fact.fact_id)
        if fact.superseded or (fact.source_type == "exchange" and fact.utility == 0):
            continue
        band = packet.bands[BANDS.index(fact.band)]
        room = min(spare, band.max_tokens - band.used - saved)
        full = (fact.costs or fact.level_tokens)[0]
        if shown is None or detail_of(shown[1]):
            is_near = fact.ordinal > packet.ordinal - PROTECTED_WAVES
            more = full - (shown[1].tokens if shown else 0)
            assert more > room - (0 if is_near else epoch.headroom)
            # Below its floor a band gives nothing away.
            assert more > min(spare, floors[fact.band] - band.used)


def _check_what_it_says(packet: Packet, linked: Sequence[SessionFact]) -> None:
    """What is in force is live, and every pinned fact is in force, whole if it is the user's."""
    live = {fact.fact_id for fact in linked if not fact.superseded}
    in_force = packet.in_force()
    assert set(in_force) <= live
    pinned = {fact.fact_id for fact in linked if fact.pinned and not fact.superseded}
    said = {fact.fact_id for fact in linked if fact.source_type == "person"}
    assert pinned <= set(in_force)
    assert pinned & said <= {name for name, (_, entry) in in_force.items() if not detail_of(entry)}
    shown = {entry.fact_id for _, entry in packet.rendered()}
    rows = [fact for fact in linked if fact.fact_id not in shown]
    assert packet.dropped == sum(band.dropped for band in packet.bands)
    assert packet.dropped == len(rows) or (packet.epoch and packet.epoch.begins)


def _check_again(packet: Packet, standing: Standing, session: Session, profile: Profile) -> None:
    """It compiles to the same packet from what it keeps, with the facts in any order."""
    assert packet.epoch is not None
    assert packet_from_body(packet.body()) == packet
    epoch = packet.epoch
    kept = Standing(
        standing.before, standing.head, epoch.cold, lambda pairs, waves, shown: epoch.changes,
        session.load_texts,
    )  # fmt: skip
    again = compile_wave(
        columns_from_facts(session.linked[::-1]), profile, packet.ordinal, kept,
        rendering=packet.rendering,
    )  # fmt: skip
    assert again.epoch is not None
    assert (
        dataclasses.replace(again, epoch=replace(again.epoch, cached=packet.epoch.cached)) == packet
    )
