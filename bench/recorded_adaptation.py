"""Static against adaptive weights on the recorded runs of :mod:`needed`, by its measures of need and price.

Packets are compiled as there. Beside, a real store judges each wave by what it asks for: what the run reads
next, and, at an edit, every read that has needed lines and is not whole in the packet. This is simulated: the
recorded agent had its transcript and asked for none of it, and a request brings nothing back here. No
constant of the suggestion was tuned on these runs, so all of them are reported.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judged_session import JudgedSession
from measure import Row, row
from msgspec.structs import replace
from needed import (
    KINDS,
    Recorded,
    Result,
    lines_of_prompt,
    lines_of_text,
    load_runs,
    shares_of,
)
from prompt_cache import Cache, blocks_of
from recorded_sessions import Session, opening

from cockpit.core.clock import CountingIds, FixedClock
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.context import profiles, wave_feedback
from cockpit.store.context.packets import Packet
from cockpit.store.db.database import Store

BUDGETS = (8_000, 16_000, 32_000)
PROFILE = "recorded"


@dataclass(frozen=True, slots=True)
class Judged:
    """A way through a run, with the signals that its packets missed and the changes of its weights."""

    result: Result
    missed: int
    changes: int
    kept: int
    """Changes that measured better at their end."""


Table = Mapping[str, Sequence[float]]
"""By measure: a value for each budget."""


def recorded_rows() -> list[Row]:
    """The rows of all budgets; none where there is no data."""
    return [
        row(f"simulated runs, {budget // 1_000}k: {measure}", value, "")
        for measure, values in measure_recorded().items()
        for budget, value in zip(BUDGETS, values, strict=True)
    ]


def measure_recorded() -> Table:
    """Go through each run at each budget with static and with adapting weights."""
    runs = load_runs()
    table: dict[str, list[float]] = {}
    for budget in BUDGETS if runs else ():
        static = [run_judged(run, budget, adapts=False) for run in runs]
        adapting = [run_judged(run, budget, adapts=True) for run in runs]
        before, after = (shares_of([way.result for way in ways]) for ways in (static, adapting))
        gains = [
            a.result.kept["read"] - s.result.kept["read"]
            for a, s in zip(adapting, static, strict=True)
        ]
        price = sum(a.result.units for a in adapting) / sum(s.result.units for s in static)
        for measure, value in (
            *((f"{kind} lines kept, static", before[kind]) for kind in KINDS),
            *((f"{kind} lines kept, adapting", after[kind]) for kind in KINDS),
            (f"runs of {len(runs)} that keep more read lines", sum(gain > 0 for gain in gains)),
            ("runs that keep fewer", sum(gain < 0 for gain in gains)),
            ("price of adapting over static", price),
            ("missed signals, static", sum(way.missed for way in static)),
            ("missed signals, adapting", sum(way.missed for way in adapting)),
            ("runs whose weights changed", sum(way.changes > 0 for way in adapting)),
            ("changes", sum(way.changes for way in adapting)),
            ("changes kept at their end", sum(way.kept for way in adapting)),
        ):
            table.setdefault(measure, []).append(value)
    return table


def run_judged(run: Recorded, budget: int, *, adapts: bool) -> Judged:
    """Go through a run with packets of ``budget`` tokens whose waves are judged."""
    session, cache, result = (
        Session.with_budget(budget, answer_outside=True),
        Cache("breakpoints"),
        Result(),
    )
    settings = RuntimeSettings(token_budget=session.profile.total_token_budget)
    before: Packet | None = None
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(Path(folder) / "cockpit.db", FixedClock(step_s=0.001), CountingIds()) as store,
    ):
        profile = replace(session.profile, profile_id=PROFILE, version=1)
        store.write_now(lambda tx: profiles.insert_version(tx, profile))
        judged = JudgedSession(store, settings, PROFILE, adapts=adapts)
        for at, step in enumerate([opening(run.task), *run.steps]):
            session.see(step)
            wave, session.profile = judged.begin(step.facts)
            before, prompt = session.compile(before)
            result.units += cache.send(blocks_of(prompt))[2]
            items: list[str] = []
            if at < len(run.needs):
                held = lines_of_prompt(prompt)
                result.look(run.needs[at], lambda held=held: held)
                lacking = frozenset().union(*run.needs[at].values()) - held
                items = [*_read_next(run, at), *_reads_with(session, lacking)]
            judged.end(wave, before, list(dict.fromkeys(items)))
        feedback = store.read_now(
            lambda c: wave_feedback.select_recent(c, limit=len(run.steps) + 1)
        )
        ended = store.read_now(lambda c: c.execute("SELECT ended FROM adaptations").fetchall())
    missed = sum(len(each.assessment.missed) for each in feedback)
    return Judged(result, missed, len(ended), ended.count(("promoted",)))


def _read_next(run: Recorded, at: int) -> list[str]:
    """Return what the run reads in its action ``at``, as items of a request."""
    facts = run.steps[at].facts
    return [fact.source_ref for fact in facts if fact.source_type != "exchange"]


def _reads_with(session: Session, lines: frozenset[str]) -> Sequence[str]:
    """Return the reads of a session that have some of ``lines`` and are not whole in its packet."""
    return [
        fact.source_ref
        for fact in session.linked
        if fact.source_type != "exchange"
        and not fact.superseded
        and fact.fact_id not in session.whole
        and lines & lines_of_text(session.texts[fact.fact_id].full)
    ]
