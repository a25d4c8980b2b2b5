"""Whether adapting attention to feedback raises decision quality: a seeded synthetic workload.

Four sources report from twelve places each, in every wave, and the packet has room for half of it.
Which source matters shifts with the season, and nobody is told: a decision needs four facts, most of
them from the season's source, and is as good as the share of them that its packet holds in full. What
is missing is asked for; a decision on too little is turned down.

The same workload runs through the real store, compiler, feedback engine, guard and horizon: with a static
profile, and with the loop's own suggestions. This simulates decisions: it shows that the loop closes and
points the right way, not how much better an agent becomes. Then :mod:`recorded_adaptation` does the same
with recorded runs.

``python bench/adaptation.py`` prints the two tables that ``docs/reference/feedback.md`` sums up.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

from judged_session import JudgedSession
from measure import Row, row
from recorded_adaptation import BUDGETS, measure_recorded, recorded_rows

from cockpit.core.clock import CountingIds, FixedClock
from cockpit.loop.runtime_settings import ProfileChangeLimits, RuntimeSettings
from cockpit.orient.compile_packet import compile_packet
from cockpit.orient.fact_columns import load_columns as columns
from cockpit.store.context import profiles, wave_feedback
from cockpit.store.context.facts import Fact, Level
from cockpit.store.context.profile_model import BANDS, WEIGHT_ONE, Band, Predicate, Profile, Rule
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.sessions.waves import Wave

WAVES = 160
SESSION_WAVES = 40
SEEDS = (7, 11, 23)
SOURCES = {"news": 600_000, "calendar": 570_000, "traffic": 540_000, "weather": 510_000}
"""Each source's utility as far as anybody knows beforehand."""
PLACES = 12
TOKENS = 100
NEEDED = 4
IN_SEASON = 0.85
PROFILE = "synthetic"

Policy = Literal["static", "revert", "promote_if_better"]
WAYS: dict[str, Policy] = {
    "static": "static",
    "adapting, reverted": "revert",
    "adapting, kept if better": "promote_if_better",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """One wave of the workload: what is reported, and what its decision will need."""

    facts: tuple[Fact, ...]
    needed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run came to: the share of needed facts that packets held, the engine's own score, and
    how many adaptations were applied. Means over all waves."""

    held: float
    score: float
    missed: int
    adaptations: int


def rows() -> list[Row]:
    """The table of this bench: means over all seeds, then the recorded runs."""
    ways = play_all()
    static, adapting, _ = ways.values()
    gains = [after.held - before.held for after, before in zip(adapting, static, strict=True)]
    scored = fmean(
        after.score - before.score for after, before in zip(adapting, static, strict=True)
    )
    return [
        *(
            row(f"simulated, {name}: {measure}", value, unit)
            for name, ran in ways.items()
            for measure, value, unit in tell(ran)
        ),
        row("gain of adapting: facts that a decision needed", fmean(gains), "of 1", least=0.05),
        row("gain of adapting: decision_quality_score", scored, "of 1", least=0.02),
        row("gain of adapting: facts needed, worst seed", min(gains), "of 1", least=0.0),
        *recorded_rows(),
    ]


def play_all() -> dict[str, list[Ran]]:
    """Play the workload of each seed in each way."""
    made = [workload(seed) for seed in SEEDS]
    return {name: [run(moments, policy) for moments in made] for name, policy in WAYS.items()}


def tell(ran: Sequence[Ran]) -> list[tuple[str, float, str]]:
    """What the runs under one policy came to: measure, mean, unit."""
    return [
        ("needed facts in packets", fmean(one.held for one in ran), "of 1"),
        ("decision quality", fmean(one.score for one in ran), "of 1"),
        ("missed signals", fmean(one.missed for one in ran), "a run"),
        ("changes", fmean(one.adaptations for one in ran), "a run"),
    ]


def print_page() -> None:
    """Print the tables of the page."""
    ways = {name: tell(ran) for name, ran in play_all().items()}
    _print_table(["profile", *(measure for measure, _, _ in ways["static"])])
    for name, told in ways.items():
        _print_line([name, *(f"{value:.3g}" for _, value, _ in told)])
    print()
    _print_table(["recorded runs, budget", *(f"{budget // 1_000}k" for budget in BUDGETS)])
    for measure, values in measure_recorded().items():
        _print_line([measure, *(f"{value:.3g}" for value in values)])


def _print_table(heads: Sequence[str]) -> None:
    _print_line(heads)
    _print_line(["---"] * len(heads))


def _print_line(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def workload(seed: int) -> list[Moment]:
    """The same for every policy: it depends on the seed alone."""
    dice = random.Random(seed)
    moments: list[Moment] = []
    season = dice.choice(list(SOURCES))
    left = dice.randrange(24, 41)
    for number in range(WAVES):
        if left == 0:
            season = dice.choice([source for source in SOURCES if source != season])
            left = dice.randrange(24, 41)
        left -= 1
        made = [
            _fact(source, place, number, utility + dice.randrange(-40_000, 40_001))
            for source, utility in SOURCES.items()
            for place in range(PLACES)
        ]
        wanted: list[str] = []
        while len(wanted) < NEEDED:
            source = season if dice.random() < IN_SEASON else dice.choice(list(SOURCES))
            ref = f"{source}:place-{dice.randrange(PLACES)}"
            if ref not in wanted:
                wanted.append(ref)
        moments.append(Moment(tuple(made), tuple(wanted)))
    return moments


def _fact(source: str, place: int, number: int, utility: int) -> Fact:
    ref = f"{source}:place-{place}"
    return Fact(
        source,
        ref,
        "situational",
        Level(f"{ref} in wave {number}", TOKENS),
        Level(ref, 4),
        dedupe_key=ref,
        utility=utility,
    )


def run(moments: Sequence[Moment], policy: Policy) -> Ran:
    """Play the workload under a policy."""
    at_horizon: Literal["revert", "promote_if_better"] = (
        "promote_if_better" if policy == "promote_if_better" else "revert"
    )
    limits = ProfileChangeLimits(at_horizon=at_horizon)
    settings = RuntimeSettings(token_budget=_profile().total_token_budget, adaptation=limits)
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(Path(folder) / "cockpit.db", FixedClock(step_s=0.001), CountingIds()) as store,
    ):
        store.write_now(lambda tx: profiles.insert_version(tx, _profile()))
        held: list[float] = []
        for start in range(0, len(moments), SESSION_WAVES):
            player = Player(store, settings, adapts=policy != "static")
            held += [player.play(one) for one in moments[start : start + SESSION_WAVES]]
        found = store.read_now(lambda c: wave_feedback.select_recent(c, limit=len(moments)))
        (applied,) = store.read_now(
            lambda c: c.execute("SELECT count(*) FROM adaptations").fetchone()
        )
    if len(found) != len(moments):
        raise RuntimeError(f"{len(found)} of {len(moments)} waves were judged")
    scores = [one.assessment.score for one in found if one.assessment.score is not None]
    missed = sum(len(one.assessment.missed) for one in found)
    return Ran(fmean(held), fmean(scores), missed, int(applied))


def _profile() -> Profile:
    """Room for half of what is reported; every source weighs the same."""
    half = len(SOURCES) * PLACES * TOKENS // 2
    room = {"situational": (half // 4, half, half)}
    bands = tuple(Band(name, *room.get(name, (50, 100, 200))) for name in BANDS)
    rules = tuple(
        Rule(source, source, Predicate(), WEIGHT_ONE, 0, 0, 0) for source in sorted(SOURCES)
    )
    budget = sum(band.max_tokens for band in bands)
    return Profile(PROFILE, 1, budget, 0, "active", "utility", bands, rules, "bench")


class Player:
    """One session of the workload: what an agent and a person would do, wave by wave."""

    def __init__(self, store: Store, settings: RuntimeSettings, *, adapts: bool) -> None:
        self._store = store
        self._judged = JudgedSession(store, settings, PROFILE, adapts=adapts)

    def play(self, moment: Moment) -> float:
        """One wave from beginning to end; the share of what it needed that its packet held."""
        wave, profile = self._judged.begin(moment.facts)
        found = self._store.read_now(lambda c: columns(c, wave.session_id, wave.ordinal))
        packet = compile_packet(found, profile, wave.ordinal)
        full = {e.fact_id for _, e in packet.rendered() if e.level == "full"}
        known = {fact.source_ref: fact.fact_id for fact in moment.facts}
        lacking = tuple(ref for ref in moment.needed if known[ref] not in full)
        self._judged.end(wave, packet, lacking, act=lambda tx: _propose(tx, wave, lacking))
        return 1 - len(lacking) / len(moment.needed)


def _propose(tx: Tx, wave: Wave, lacking: Sequence[str]) -> None:
    """Propose what the packet allows for; a proposal on too little is turned down."""
    made = proposals.create(
        tx,
        proposal_id=f"p-{wave.wave_id}",
        kind="action",
        session_id=wave.session_id,
        wave_id=wave.wave_id,
        title="act on what is known",
        body={"key": f"k-{wave.wave_id}"},
        risk="low",
    )
    enough = len(lacking) * 2 <= NEEDED
    verdict = "approved" if enough else "rejected"
    proposals.decide(tx, made.proposal_id, verdict, by="person")


if __name__ == "__main__":
    print_page()
