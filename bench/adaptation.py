"""Whether adapting attention to feedback raises decision quality: a seeded synthetic workload.

Four sources report from twelve places each, in every wave, and the packet has room for half of it.
Which source matters shifts with the season, and nobody is told: a decision needs four facts, most of
them from the season's source, and is as good as the share of them that its packet holds in full. What
is missing is asked for; a decision on too little is turned down.

The same workload runs through the real store, compiler, feedback engine, guard and horizon: once with
a static profile, once with suggestions handed in by an agent, passed by policy when they change weights
only, and gone at their horizon. This simulates decisions: it shows that the loop closes and points the
right way, not how much better an agent becomes.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

from measure import Row, row

from cockpit.access.principals import agent
from cockpit.core.canonical_json import canonical_json
from cockpit.core.clock import CountingIds, FixedClock
from cockpit.learn.decision_quality import measure_version
from cockpit.learn.judge_waves import judge_after_wave
from cockpit.learn.suggest_weights import suggest_changes
from cockpit.loop.decisions.profile_change_expiry import pin_profile
from cockpit.loop.decisions.propose_profile_change import propose_profile_change
from cockpit.loop.runtime_settings import ProfileChangeLimits, RuntimeSettings
from cockpit.orient.compile_packet import compile_packet
from cockpit.orient.fact_columns import load_columns as columns
from cockpit.orient.profile_changes.change_limits import AGENT_LIMITS
from cockpit.orient.profile_changes.guard import CRITICAL
from cockpit.store.context import facts, packets, profiles, wave_feedback
from cockpit.store.context.facts import Fact, Level
from cockpit.store.context.packets import Packet
from cockpit.store.context.profile_model import BANDS, WEIGHT_ONE, Band, Predicate, Profile, Rule
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests, plans, proposals, waves
from cockpit.store.sessions import sessions as stored
from cockpit.store.sessions.sessions import Session
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
    """The table of this bench: means over all seeds."""
    made = [workload(seed) for seed in SEEDS]
    static, adapting, promoting = (
        [run(moments, policy) for moments in made]
        for policy in ("static", "revert", "promote_if_better")
    )
    table = [
        *told("static profile", static),
        *told("adapting, back at the horizon", adapting),
        *told("adapting, kept if better", promoting),
    ]
    gain = fmean(after.held - before.held for after, before in zip(adapting, static, strict=True))
    scored = fmean(
        after.score - before.score for after, before in zip(adapting, static, strict=True)
    )
    least = min(after.held - before.held for after, before in zip(adapting, static, strict=True))
    return [
        *table,
        row("gain of adapting: facts that a decision needed", gain, "of 1", least=0.05),
        row("gain of adapting: decision_quality_score", scored, "of 1", least=0.02),
        row("gain of adapting: facts needed, worst seed", least, "of 1", least=0.0),
    ]


def told(name: str, ran: Sequence[Ran]) -> list[Row]:
    """What the runs under one policy came to."""
    return [
        row(f"{name}: needed facts in the packet", fmean(one.held for one in ran), "of 1"),
        row(f"{name}: decision_quality_score", fmean(one.score for one in ran), "of 1"),
        row(f"{name}: missed signals", fmean(one.missed for one in ran), "a run"),
        row(f"{name}: adaptations", fmean(one.adaptations for one in ran), "a run"),
    ]


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
    limits = ProfileChangeLimits(auto="weights", at_horizon=at_horizon)
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
        self._settings = settings
        self._adapts = adapts
        self._asked: tuple[str, tuple[str, ...]] | None = None
        self._session = store.write_now(self._create)

    def _create(self, tx: Tx) -> Session:
        return stored.create(
            tx,
            task_type="investigate",
            title="synthetic",
            words="synthetic",
            target={},
            model="none",
            policy="ask",
            interactive=False,
            root=self._store.path.parent,
            rev=None,
            profile_id=PROFILE,
            limits={},
            project="synthetic",
            branch="",
        )

    def play(self, moment: Moment) -> float:
        """One wave from beginning to end; the share of what it needed that its packet held."""
        wave, packet = self._store.write_now(lambda tx: self._orient(tx, moment))
        full = {e.fact_id for _, e in packet.rendered() if e.level == "full"}
        known = {fact.source_ref: fact.fact_id for fact in moment.facts}
        lacking = tuple(ref for ref in moment.needed if known[ref] not in full)
        self._store.write_now(lambda tx: self._decide(tx, wave, lacking))
        if self._adapts:
            self._store.write_now(lambda tx: self._suggest(tx, wave))
        return 1 - len(lacking) / len(moment.needed)

    def _orient(self, tx: Tx, moment: Moment) -> tuple[Wave, Packet]:
        session_id = self._session.session_id
        wave = waves.create(tx, session_id=session_id, trace_id=self._session.trace_id)
        pinned = pin_profile(tx, self._settings, PROFILE, measure_version)
        waves.advance(tx, wave.wave_id, "observing", profile_version=pinned.version)
        if self._asked is not None:
            request_id, items = self._asked
            context_requests.apply_decision(
                tx, request_id, "approved", approved=items, decided_by="person"
            )
        facts.record(
            tx,
            session_id=session_id,
            wave_id=wave.wave_id,
            ordinal=wave.ordinal,
            pinned_now=wave.pinned_now,
            facts=moment.facts,
        )
        waves.advance(tx, wave.wave_id, "orienting")
        profile = profiles.load(tx.connection, PROFILE, pinned.version)
        found = columns(tx.connection, session_id, wave.ordinal)
        packet = compile_packet(found, profile, wave.ordinal)
        identity = packets.insert(
            tx, wave.wave_id, packet, pinned_now=wave.pinned_now, session_id=session_id
        )
        return waves.advance(tx, wave.wave_id, "deciding", packet_id=identity), packet

    def _decide(self, tx: Tx, wave: Wave, lacking: tuple[str, ...]) -> None:
        """Propose what the packet allows for, ask for what it lacks, and learn."""
        session_id, number = self._session.session_id, wave.ordinal
        call = {"call_id": "ask", "name": "request_context", "arguments": {}, "error": ""}
        plans.commit(
            tx,
            wave_id=wave.wave_id,
            session_id=session_id,
            text="",
            calls=[call] if lacking else [],
            stop="end",
        )
        waves.advance(tx, wave.wave_id, "acting")
        made = proposals.create(
            tx,
            proposal_id=f"p-{session_id}-{number}",
            kind="action",
            session_id=session_id,
            wave_id=wave.wave_id,
            title="act on what is known",
            body={"key": f"k-{number}"},
            risk="low",
        )
        enough = len(lacking) * 2 <= NEEDED
        verdict = "approved" if enough else "rejected"
        proposals.decide(tx, made.proposal_id, verdict, by="person")
        self._asked = None
        if lacking:
            asked = context_requests.create(
                tx,
                request_id=f"q-{session_id}-{number}",
                session_id=session_id,
                wave_id=wave.wave_id,
                call_id="ask",
                purpose="decide",
                question="what is it like there?",
                escalation="",
                items=[{"item": ref, "refused": ""} for ref in lacking],
                proposal_id=None,
            )
            self._asked = (asked.request_id, lacking)
        waves.advance(tx, wave.wave_id, "learning")
        judge_after_wave(tx, waves.advance(tx, wave.wave_id, "completed"))

    def _suggest(self, tx: Tx, wave: Wave) -> None:
        """Hand in the first suggestion, as the session's agent; the guard and the policy decide."""
        profile = profiles.load_current(tx.connection, PROFILE)
        found = suggest_changes(tx.connection, profile, AGENT_LIMITS, CRITICAL)
        if found and profile.duration_waves == 0:
            propose_profile_change(
                tx,
                self._settings,
                canonical_json(found[0]),
                agent(self._session.session_id),
                profile_id=PROFILE,
                proposal_id=f"p-profile-{wave.wave_id}",
            ).raise_if_refused()
