"""Fanning out: what was approved becomes jobs, the jobs run, and what they find is stored as they end.

The plan is durable before anything is read; results are written in batches, a job with its facts at
once; at the end the requests are answered and the wave's jobs are counted in the journal. A crash
anywhere repeats the jobs that had not ended, and no others. Source: RFC-003 §10.1, §15.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cockpit.loop.phases import propose_context
from cockpit.loop.wave_context import Here
from cockpit.observe import job_planner
from cockpit.observe.fan_out import JobOutcome
from cockpit.observe.job_planner import Candidate
from cockpit.observe.scope_items import parse_item
from cockpit.observe.stale_files import Read, stale
from cockpit.store.context import observation_jobs, packets, profiles
from cockpit.store.context.facts import Fact, ObservingWave
from cockpit.store.context.observation_jobs import JobResult, JobRow
from cockpit.store.context.profile_model import Profile
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import context_requests
from cockpit.store.sessions.context_requests import ContextRequest

BATCH_JOBS = 200
BATCH_S = 0.25
"""A batch is written when so many jobs have ended, or so many seconds after the one before."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a wave is to read: approved requests, and of what was read ``before`` what has changed.

    ``planned`` names what the wave has jobs for already; ``open`` says that these are not counted yet.
    ``whole`` are the facts that the agent had in full when it asked (None: it asked for nothing).
    """

    granted: Sequence[ContextRequest]
    before: Sequence[Read]
    planned: frozenset[str]
    open: bool
    whole: frozenset[str] | None


def wanted(connection: sqlite3.Connection, here: Here, before: Sequence[Read]) -> Wanted:
    """What there is to read in this wave; ``before`` is what was granted and may be out of date."""
    session_id, wave_id = here.session.session_id, here.wave.wave_id
    planned = observation_jobs.select_names(connection, wave_id)
    counted = (
        planned
        and connection.execute(
            "SELECT 1 FROM journal WHERE session_id=? AND wave_id=? AND action=?",
            (session_id, wave_id, str(Action.OBSERVATION_JOBS)),
        ).fetchone()
    )
    granted = context_requests.select_by_status(connection, session_id, "approved")
    whole = _whole(connection, granted)
    return Wanted(granted, before, planned, bool(planned) and not counted, whole)


def _whole(
    connection: sqlite3.Connection, granted: Sequence[ContextRequest]
) -> frozenset[str] | None:
    """The facts in full in every packet that something was asked from."""
    found: frozenset[str] | None = None
    for wave_id in {request.wave_id for request in granted}:
        stored = packets.find(connection, wave_id)
        held = stored.packet.rendered() if stored else ()
        full = frozenset(entry.fact_id for _, entry in held if entry.level == "full")
        found = full if found is None else found & full
    return found


async def fan(here: Here, wanted: Wanted) -> None:
    """Read everything that is wanted, durably; answers the granted requests.

    Jobs of the wave that an earlier process planned and did not end run as they were planned.
    """
    started = here.store.clock.monotonic()
    asked = await _asked(here, wanted)
    if asked:
        rows = await _planned(here, asked)
        todo = await here.store.write(lambda tx: observation_jobs.plan(tx, here.wave.wave_id, rows))
    elif wanted.open:
        todo = await here.store.read(
            lambda connection: observation_jobs.select_open(connection, here.wave.wave_id)
        )
    elif wanted.granted:
        todo = []
    else:
        return
    wave = here.wave
    look = ObservingWave(
        here.session.session_id, wave.wave_id, wave.ordinal, wave.pinned_now, wanted.whole
    )
    rest = await _run(here, look, todo)
    latency = round((here.store.clock.monotonic() - started) * 1000)
    await here.store.write(_closing(here, look, wanted.granted, rest, latency))


async def _asked(here: Here, wanted: Wanted) -> list[tuple[str, str]]:
    """(what for, item) of everything that has no job yet."""
    asked = [
        (request.request_id, item)
        for request in wanted.granted
        if request.request_id not in wanted.planned
        for item in request.approved
    ]
    if wanted.before and job_planner.REFRESH not in wanted.planned:
        changed = await stale(propose_context.gateway(here).ground, wanted.before)
        asked += [(job_planner.REFRESH, item) for item in changed]
    return asked


async def _planned(here: Here, asked: Sequence[tuple[str, str]]) -> list[JobRow]:
    meant = await propose_context.gateway(here).expand([parse_item(item) for _, item in asked])
    candidates = [
        Candidate(job, one.kind, item, str(one))
        for (job, item), each in zip(asked, meant, strict=True)
        for one in each
    ]
    profile = await here.store.read(lambda connection: pinned_profile(connection, here))
    most = here.engine.settings.observe.max_jobs
    return job_planner.plan(candidates, profile.rules, max_jobs=most)


def pinned_profile(connection: sqlite3.Connection, here: Here) -> Profile:
    """The version that was pinned when the wave began."""
    version = here.wave.profile_version
    if version is None:
        return profiles.load_current(connection, here.session.profile_id)
    return profiles.load(connection, here.session.profile_id, version)


async def _run(here: Here, look: ObservingWave, todo: Sequence[JobRow]) -> list[JobResult]:
    """Run the jobs and write batches of what ended; returns those that are not written yet."""
    if not todo:
        return []
    gateway = propose_context.gateway(here)
    basket = _Basket(todo, gateway.why)
    running = asyncio.create_task(
        gateway.read([parse_item(row.item) for row in todo], basket.settle)
    )
    try:
        while not running.done():
            await basket.ready(running)
            if not running.done():
                batch = basket.take()
                await here.store.write(_batch(here, look, batch))
        await running
    finally:
        # Whatever ends this (a cancellation, a full disk), no job outlives it.
        if not running.done():
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    return basket.take()


class _Basket:
    """Jobs that have ended and are not written yet."""

    def __init__(
        self,
        todo: Sequence[JobRow],
        why: Callable[[JobOutcome[list[Fact]]], str],
    ) -> None:
        self._todo = todo
        self._why = why
        self._ended: list[JobResult] = []
        self._full = asyncio.Event()

    def settle(self, number: int, outcome: JobOutcome[list[Fact]]) -> None:
        reason = "" if outcome.status == "done" else self._why(outcome)
        latency = round(outcome.took_s * 1000)
        self._ended.append(
            JobResult(self._todo[number], outcome.status, outcome.value or (), reason, latency)
        )
        if len(self._ended) >= BATCH_JOBS:
            self._full.set()

    async def ready(self, running: asyncio.Task[None]) -> None:
        """Wait until a batch is due or all is over."""
        full = asyncio.create_task(self._full.wait())
        try:
            await asyncio.wait(
                {running, full}, timeout=BATCH_S, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            full.cancel()

    def take(self) -> list[JobResult]:
        taken, self._ended = self._ended, []
        self._full.clear()
        return taken


def _batch(here: Here, look: ObservingWave, ended: Sequence[JobResult]) -> Callable[[Tx], None]:
    most = here.engine.settings.observe.max_facts
    return lambda tx: observation_jobs.record_results(tx, look, ended, most=most)


def _closing(
    here: Here,
    look: ObservingWave,
    granted: Sequence[ContextRequest],
    rest: Sequence[JobResult],
    latency: int,
) -> Callable[[Tx], None]:
    """The last batch, what newer content replaces, the answers, and the count: one transaction."""

    def step(tx: Tx) -> None:
        wave_id = here.wave.wave_id
        _batch(here, look, rest)(tx)
        observation_jobs.finish_wave(tx, look, most=here.engine.settings.observe.max_facts)
        for request in granted:
            outcomes = observation_jobs.summarize_items(
                tx.connection, look, request.request_id, job_planner.WORDS
            )
            context_requests.record_fetched(
                tx, request.request_id, wave_id=wave_id, outcomes=outcomes, latency_ms=latency
            )
        counts = observation_jobs.summarize_wave(tx.connection, wave_id)
        here.journal(tx, counts, latency_ms=latency)

    return step
