"""For any facts, profile and budget, the whole prompt fits: at the phase's functions, without a session."""

from __future__ import annotations

import random

from examples import examples
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.act.model_tools import TOOLS
from cockpit.decide.measure_prompt import digest_prompt
from cockpit.decide.model import Prompt, ToolSpec
from cockpit.loop.phases.orienting import compile_to_fit
from cockpit.loop.phases.tool_results import Exchange, pinned_text_fact
from cockpit.loop.phases.wave_prompt import estimate_overheads, measure_prompt, render_packet
from cockpit.observe.count_tokens import CL100K, O200K, count_tokens
from cockpit.observe.rendered_cost import with_cost
from cockpit.orient.compile_packet import compile_packet
from cockpit.orient.epoch_inputs import Standing
from cockpit.orient.epochs import compile_wave
from cockpit.orient.fact_columns import columns_from_facts
from cockpit.orient.select_facts import PinnedOverBudget
from cockpit.store.context.facts import Fact, FactText, Level, SessionFact
from cockpit.store.context.packets import Packet, Rendering
from cockpit.store.context.profile_model import BANDS, Band, Profile, load_shipped, scale

WAVE = 5
PIECES = (
    "value = 1\n", "```", "`", "\n", "\n\n", "    ", "\t", "…", "日本語の文", "🙂", "é", "0123456789", "a",
    "A_LONG_NAME", "word ", " word", "\r\n", "-" * 30, "[file:a.py]", '{"key": [1, 2]}', "FAILED test\n",
)  # fmt: skip
SPECS = tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in TOOLS)

FIRST = Standing(None, "", False, lambda pairs: [])
WIDE = replace(scale(load_shipped(), 1_000_000), bands=tuple(Band(name, 0, 0, 0) for name in BANDS))


class Dice(random.Random):
    """Everything that differs between two examples, from one number that hypothesis draws."""

    def text(self, most: int) -> str:
        return "".join(self.choices(PIECES, k=self.randint(1, most)))

    def fact(self, number: int) -> Fact:
        kind = self.random()
        size = self.choice((2, 10, 80))
        if kind < 0.3:
            status = self.choice(("approved", "confirmed", "failed", "rejected", "said"))
            call = "" if status == "said" else self.choice(("run", "edit_file"))
            words = self.choice(("", self.text(8)))
            arguments = {"argv": self.text(size)} if call else {}
            result = self.text(size * 6) if call else ""
            wave = self.randint(1, WAVE - 1)
            return Exchange(wave, number, words or "?", call, arguments, result, status).fact()
        if kind < 0.4:
            source = self.choice(("person", "notice", "task"))
            return pinned_text_fact(source, f"{source}:{number}", self.text(size))
        text, outline = self.text(size), self.choice((None, self.text(4)))
        reference = self.text(2)
        return with_cost(
            Fact(
                source_type=self.choice(("file", "diff", "docs", "rule", "project")),
                source_ref=f"file:{self.text(2)}{number}.py",
                band=self.choice(BANDS),
                full=Level(text, count_tokens(text)),
                reference=Level(reference, count_tokens(reference)),
                outline=None if outline is None else Level(outline, count_tokens(outline)),
                utility=self.randint(0, 1_000_000),
                pinned=self.random() < 0.1,
                pinned_short=self.random() < 0.5,
            )
        )

    def profile(self) -> Profile:
        shape = scale(load_shipped(), self.choice((700, 2_000, 3_500, 6_000, 15_000)))
        if self.random() < 0.5:
            return replace(shape, ranking="density")
        # One without floors, whose every band may take everything.
        total = shape.total_token_budget
        bands = tuple(Band(name, 0, total // 8, total) for name in BANDS)
        return replace(shape, bands=bands)


def session_fact(fact: Fact, dice: Dice, position: int) -> SessionFact:
    tokens = (fact.full.tokens, fact.outline.tokens if fact.outline else 0, fact.reference.tokens)
    return SessionFact(
        fact.fact_id,
        fact.source_type,
        fact.source_ref,
        fact.band,
        dice.randint(1, WAVE),
        position,
        fact.pinned,
        dice.random() < 0.05,
        fact.utility,
        tokens,
        "",
        costs=(fact.cost.full, fact.cost.outline, fact.cost.reference),
        pinned_short=fact.pinned_short,
    )


def text_of(fact: Fact) -> FactText:
    outline = fact.outline.text if fact.outline else None
    texts = (fact.full.text, outline, fact.reference.text)
    return FactText(
        fact.fact_id, fact.source_type, fact.source_ref, *texts, dict(fact.provenance or {})
    )


@given(st.integers(0, 2**32), st.sampled_from((O200K, O200K, CL100K)), st.integers(1_000, 2_000))
@settings(max_examples=examples(100), deadline=None)
def test_the_whole_prompt_is_within_the_budget(seed: int, vocabulary: str, scaled: int) -> None:
    dice = Dice(seed)
    tools = dice.sample(SPECS, dice.randint(0, 3))
    seen = {fact.fact_id: fact for fact in map(dice.fact, range(1, dice.randint(2, 40)))}
    linked = [session_fact(fact, dice, at) for at, fact in enumerate(seen.values())]
    shape = dice.profile()
    texts = {fact.fact_id: text_of(fact) for fact in seen.values()}
    overheads = estimate_overheads(shape, tools, WAVE)

    def render(packet: Packet) -> Prompt:
        return render_packet(packet, texts, tools, wave=WAVE, task_type="look", target={})

    columns = columns_from_facts(linked)
    rendering = Rendering(overheads, vocabulary, scaled)
    pinned = [fact for fact in linked if fact.pinned and not fact.superseded]
    try:
        packet, prompt = compile_to_fit(columns, shape, WAVE, rendering, render, FIRST)
    except PinnedOverBudget:
        event("pinned facts over the budget")
        # What is pinned, alone, does not fit; but for a few tokens that the parts are counted more.
        alone = compile_packet(columns_from_facts(pinned), WIDE, WAVE, rendering=rendering)
        need = measure_prompt(render(alone), vocabulary, scaled) + overheads.answer
        assert need > shape.total_token_budget - 4 * len(pinned) - overheads.frames
        return
    event("facts dropped" if packet.dropped else "all facts fit")
    event(f"margin {'kept' if packet.rendering.overheads.margin else 'not needed'}")
    tokens = measure_prompt(prompt, vocabulary, scaled)
    assert packet.rendered_tokens == tokens
    assert tokens + prompt.max_output_tokens <= packet.token_used <= shape.total_token_budget
    assert packet.rendering.prompt_sha256 == digest_prompt(prompt)
    assert {fact.fact_id for fact in pinned} <= {entry.fact_id for _, entry in packet.rendered()}
    again = compile_wave(columns, shape, WAVE, FIRST, rendering=packet.rendering)
    assert again == packet
