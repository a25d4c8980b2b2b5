"""The compiler beside an independent referee and what people would use instead.

Needs ``pip install -e '.[bench]'``; without it this bench says so and has no rows. The referee is an LP
solved by HiGHS, in stages as the design fills bands (to floors, to targets, to ceilings), with facts cut
at any point: nothing that keeps the rules is worth more. The rivals get the same facts, scores and budget;
they have no bands' rules, so whether every floor's room was kept is said beside their figures.
"""

from __future__ import annotations

import importlib.util
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import compile as kernel
from measure import Row, row

from cockpit.core.canonical_json import text_digest
from cockpit.orient.compile_packet import compile_packet, select_for_packet
from cockpit.orient.fact_columns import columns_from_facts
from cockpit.store.context.facts import SessionFact
from cockpit.store.context.profile_model import BANDS, Profile, load_shipped

NEEDED = ("scipy", "langchain_core", "promptbudget", "haystack")
SIZES = ((50_000, 20, 100, 0.995), (2_000, 2_000, 6_000, 0.98))
"""Facts, least and most tokens of one, and the share of the LP's worth that the compiler must reach."""


def rows() -> list[Row]:
    """Quality against the referee at two sizes, then the rivals at the first."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"  skipped: install the extra 'bench' for {', '.join(missing)}")
        return []
    table = []
    profile = load_shipped()
    for count, least, most, bar in SIZES:
        linked = made(count, least, most)
        chosen = select_for_packet(linked, profile, kernel.WAVES)
        value, items = kernel.worth(chosen, profile)
        best = referee(items, profile)
        mean = (least + most) // 2
        table.append(
            row(
                f"quality of HiGHS' LP, about {mean:,} tokens a fact",
                value / best,
                "ratio",
                least=bar,
            )
        )
    return table + beside(made(*SIZES[0][:3]), profile)


def made(count: int, least: int, most: int) -> list[SessionFact]:
    """Facts of several kinds and many places, each whole or not at all."""
    dice = random.Random(11)
    return [
        SessionFact(
            f"f-{text_digest(str(number))[:24]}",
            kind := dice.choice(kernel.KINDS),
            f"{kind}:src/part_{number % 9_000}.py:{number}",
            BANDS[dice.randrange(5)],
            1 + number * kernel.WAVES // count,
            number,
            False,
            False,
            dice.randrange(1, 1_000_001),
            (dice.randrange(least, most + 1), 0, least),
            "",
        )
        for number in range(count)
    ]


def referee(items: Sequence[kernel.Item], profile: Profile) -> float:
    """The LP's worth: stage by stage, no band falling behind what it had in the stage before."""
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack, vstack

    tokens = np.array([item.tokens for item in items], float)
    worth = np.array([item.each for item in items]) * tokens
    band = np.array([item.band for item in items])
    place = np.arange(len(items))
    bands = range(len(profile.bands))
    # x is the share of each fact, s the room of each band: max(its floor, what it uses).
    used = csr_array((tokens, (band, place)), shape=(len(bands), len(items)))
    zero, one = csr_array((len(bands), len(bands))), csr_array(np.eye(len(bands)))
    kept = [hstack([used, zero]), hstack([used, -one])]
    budget = csr_array(np.concatenate([np.zeros(len(items)), np.ones(len(bands))])[None, :])
    caps, limits = _caps(items, profile, tokens)
    targets = [band.target_tokens for band in profile.bands]
    floor = np.zeros(len(bands))
    value = 0.0
    for most in (
        [min(band.min_tokens, band.target_tokens) for band in profile.bands],
        targets,
        [band.max_tokens for band in profile.bands],
    ):
        rows_ub = [kept[0], -kept[0], kept[1], budget]
        right = [np.array(most, float), -floor, np.zeros(len(bands)), [profile.total_token_budget]]
        if caps is not None:
            rows_ub.append(hstack([caps, csr_array((caps.shape[0], len(bands)))]))
            right.append(limits)
        solved = linprog(
            -np.concatenate([worth, np.zeros(len(bands))]),
            A_ub=vstack(rows_ub),
            b_ub=np.concatenate(right),
            bounds=[(0, 1)] * len(items) + [(band.min_tokens, None) for band in profile.bands],
            method="highs",
        )
        if solved.status != 0:
            raise RuntimeError(f"HiGHS found no optimum: {solved.message}")
        value = -solved.fun
        floor = np.maximum(used @ solved.x[: len(items)] - 1e-6, 0)
    return value


def _caps(items: Sequence[kernel.Item], profile: Profile, tokens: object) -> tuple[object, object]:
    """Source diversity as rows: a type holds three quarters, a reference a third of its band's target,
    or its largest fact where that is more."""
    import numpy as np
    from scipy.sparse import csr_array

    names: dict[object, int] = {}
    limits: list[float] = []
    at, columns, values = [], [], []
    for place, item in enumerate(items):
        target = profile.bands[item.band].target_tokens
        for key, limit in (
            (("type", item.source_type), target * 3 // 4),
            (("ref", item.source_ref), target // 3),
        ):
            if key not in names:
                names[key] = len(limits)
                limits.append(limit)
            limits[names[key]] = max(limits[names[key]], item.tokens)
            at.append(names[key])
            columns.append(place)
            values.append(float(item.tokens))
    shape = (len(limits), len(items))
    return csr_array((values, (at, columns)), shape=shape), np.array(limits, float)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a rival took, by place in the facts, and its CPU milliseconds."""

    places: Sequence[int]
    ms: float


def beside(linked: Sequence[SessionFact], profile: Profile) -> list[Row]:
    """Ours and each rival on the same facts: CPU, worth by utility, and floors kept."""
    columns = columns_from_facts(linked)
    chosen = select_for_packet(columns, profile, kernel.WAVES)
    score = dict(zip(chosen.columns.fact_ids, chosen.scores.worth.tolist(), strict=True))
    ours = _timed(lambda: compile_packet(columns, profile, kernel.WAVES))
    packet = compile_packet(columns, profile, kernel.WAVES)
    mine = {entry.fact_id for band in packet.bands for entry in band.entries}
    places = [place for place, fact in enumerate(linked) if fact.fact_id in mine]
    table = _rows("cockpit", Taken(places, ours), linked, profile, score, mine)
    for name, work in (
        ("langchain-core trim_messages", _trim),
        ("haystack MetaFieldRanker, cut at the budget", _rank),
        ("promptbudget, a section a band", _pack),
    ):
        table += _rows(name, work(linked, profile, score), linked, profile, score, mine)
    return table


def _rows(
    name: str,
    taken: Taken,
    linked: Sequence[SessionFact],
    profile: Profile,
    score: Mapping[str, float],
    ours: set[str],
) -> list[Row]:
    used = dict.fromkeys(BANDS, 0)
    value = 0
    for place in taken.places:
        fact = linked[place]
        used[fact.band] += fact.level_tokens[0]
        value += score[fact.fact_id] * fact.level_tokens[0]
    most = max(fact.level_tokens[0] for fact in linked)
    floors = all(
        used[band.name] > band.min_tokens - most for band in profile.bands if band.name != "reserve"
    )
    best = sum(score[f.fact_id] * f.level_tokens[0] for f in linked if f.fact_id in ours)
    over = sum(used.values()) > profile.total_token_budget
    return [
        row(f"{name}: 50,000 facts", taken.ms, "ms CPU"),
        row(f"{name}: score of all its tokens", value / best, "ours=1"),
        row(f"{name}: floors kept, in budget", int(floors and not over), "yes=1"),
    ]


def _timed(work: Callable[[], object]) -> float:
    work()
    before = time.process_time()
    work()
    return (time.process_time() - before) * 1000


def _trim(linked: Sequence[SessionFact], profile: Profile, score: Mapping[str, float]) -> Taken:
    from langchain_core.messages import HumanMessage, trim_messages

    said = [HumanMessage(content=str(place)) for place in range(len(linked))]
    tokens = [fact.level_tokens[0] for fact in linked]
    kept: list[HumanMessage] = []

    def work() -> None:
        kept[:] = trim_messages(
            said,
            max_tokens=profile.total_token_budget,
            token_counter=lambda messages: sum(tokens[int(m.content)] for m in messages),
            strategy="last",
        )

    ms = _timed(work)
    return Taken([int(message.content) for message in kept], ms)


def _rank(linked: Sequence[SessionFact], profile: Profile, score: Mapping[str, float]) -> Taken:
    from haystack import Document
    from haystack.components.rankers import MetaFieldRanker

    documents = [
        Document(id=str(place), content="", meta={"score": score[fact.fact_id]})
        for place, fact in enumerate(linked)
    ]
    ranker = MetaFieldRanker(meta_field="score", top_k=len(documents))
    kept: list[int] = []

    def work() -> None:
        left = profile.total_token_budget
        kept.clear()
        for document in ranker.run(documents=documents)["documents"]:
            place = int(document.id)
            if linked[place].level_tokens[0] <= left:
                left -= linked[place].level_tokens[0]
                kept.append(place)

    ms = _timed(work)
    return Taken(list(kept), ms)


def _pack(linked: Sequence[SessionFact], profile: Profile, score: Mapping[str, float]) -> Taken:
    from promptbudget import Item, Section, pack

    tokens = [fact.level_tokens[0] for fact in linked]
    by_band: dict[str, list[int]] = {name: [] for name in BANDS}
    for place, fact in enumerate(linked):
        by_band[fact.band].append(place)
    sections = [
        Section(
            band.name,
            [
                Item(str(place), score=float(score[linked[place].fact_id]))
                for place in by_band[band.name]
            ],
            min_tokens=band.min_tokens if by_band[band.name] else 0,
            max_tokens=band.max_tokens,
            strategy="lowest_score_first",
            separator=" ",
        )
        for band in profile.bands
    ]

    def count(text: str) -> int:
        return sum(tokens[int(word)] for word in text.split())

    result = []

    def work() -> None:
        result[:] = [pack(sections, profile.total_token_budget, tokenizer=count, joiner=" ")]

    before = time.process_time()
    work()  # once: it takes long
    ms = (time.process_time() - before) * 1000
    return Taken([int(word) for word in result[0].text.split()], ms)
