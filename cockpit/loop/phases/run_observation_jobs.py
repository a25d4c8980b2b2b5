"""Observation jobs: what was approved is planned as jobs, run at the same time, and stored as they end.

The plan is durable before anything is read. Results are written in batches, each job with its facts; at the
end the requests are answered and the wave's jobs are counted in the journal. After a crash only the jobs
that had not ended run again. See ``docs/reference/kernel.md``, waves.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from cockpit.core.clock import Clock
from cockpit.loop.knowledge.gather_knowledge import is_by_librarian
from cockpit.loop.phases.fetch_by_rules import is_by_rule, quotas_by_request
from cockpit.loop.phases.orienting import load_pinned_profile
from cockpit.loop.phases.propose_context_request import open_gateway
from cockpit.loop.wave_context import WaveContext
from cockpit.observe import job_planner
from cockpit.observe.fan_out import JobOutcome
from cockpit.observe.job_planner import Candidate
from cockpit.observe.scope_items import parse_item
from cockpit.observe.stale_files import FileRead, find_stale
from cockpit.store.context import observation_jobs, packets
from cockpit.store.context.facts import Fact, ObservingWave
from cockpit.store.context.observation_jobs import JobResult, JobRow
from cockpit.store.context.packets import detail_of
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import context_requests
from cockpit.store.sessions.context_requests import ContextRequest

BATCH_JOBS = 200
"""A batch is written when this many jobs have ended."""
BATCH_S = 0.25
"""Seconds after which a smaller batch is written."""


class ObservationWork(Struct, frozen=True):
    """What one wave has to read."""

    granted: Sequence[ContextRequest]
    """The approved context requests."""
    earlier_reads: Sequence[FileRead]
    """Files that were read in earlier waves and may have changed."""
    planned: frozenset[str]
    """Request ids (and ``REFRESH``) that the wave has jobs for already."""
    has_open_jobs: bool
    """Whether planned jobs are not counted in the journal yet."""
    full_facts: frozenset[str] | None
    """The facts that the agent had in full when it asked; None when it asked for nothing."""


def list_work(
    connection: sqlite3.Connection, context: WaveContext, earlier_reads: Sequence[FileRead]
) -> ObservationWork:
    """Return what there is to read in this wave."""
    session_id, wave_id = context.session.session_id, context.wave.wave_id
    planned = observation_jobs.select_names(connection, wave_id)
    counted = (
        planned
        and connection.execute(
            "SELECT 1 FROM journal WHERE session_id=? AND wave_id=? AND action=?",
            (session_id, wave_id, str(Action.OBSERVATION_JOBS)),
        ).fetchone()
    )
    granted = context_requests.select_granted(connection, session_id)
    full_facts = _facts_full_in_all_packets(
        connection, [request for request in granted if not _is_unasked(request)]
    )
    return ObservationWork(
        granted, earlier_reads, planned, bool(planned) and not counted, full_facts
    )


def _is_unasked(request: ContextRequest) -> bool:
    """Whether cockpit made the request itself: by an attention rule, or by its own search."""
    return is_by_rule(request) or is_by_librarian(request)


def _facts_full_in_all_packets(
    connection: sqlite3.Connection, requests: Sequence[ContextRequest]
) -> frozenset[str] | None:
    """Return the facts in full detail in every packet that one of ``requests`` was made from."""
    common: frozenset[str] | None = None
    for wave_id in {request.wave_id for request in requests}:
        stored = packets.find(connection, wave_id)
        shown = stored.packet.in_force() if stored else {}
        full = frozenset(fact_id for fact_id, (_, entry) in shown.items() if detail_of(entry) == 0)
        common = full if common is None else common & full
    return common


async def run_observation_jobs(context: WaveContext, work: ObservationWork) -> None:
    """Read everything in ``work``, durably, and answer the granted requests.

    Jobs that an earlier process planned for the wave and did not end run as
    they were planned.
    """
    started = context.store.clock.monotonic()
    unplanned = await _list_unplanned(context, work)
    if unplanned:
        rows = await _plan_jobs(context, unplanned, work.granted)
        jobs = await context.store.write(
            lambda tx: observation_jobs.plan(tx, context.wave.wave_id, rows)
        )
    elif work.has_open_jobs:
        jobs = await context.store.read(
            lambda connection: observation_jobs.select_open(connection, context.wave.wave_id)
        )
    elif work.granted:
        jobs = []
    else:
        return
    wave = context.wave
    look = ObservingWave(
        context.session.session_id,
        wave.wave_id,
        wave.ordinal,
        wave.pinned_now,
        work.full_facts,
        frozenset(request.request_id for request in work.granted if _is_unasked(request)),
    )
    unwritten = await _run_jobs(context, look, jobs)
    latency_ms = round((context.store.clock.monotonic() - started) * 1000)
    await context.store.write(
        lambda tx: _close_jobs(tx, context, look, work.granted, unwritten, latency_ms)
    )


async def _list_unplanned(context: WaveContext, work: ObservationWork) -> list[tuple[str, str]]:
    """Return (request id or ``REFRESH``, item) of everything that has no job yet."""
    unplanned = [
        (request.request_id, item)
        for request in work.granted
        if request.request_id not in work.planned
        for item in request.approved
    ]
    if work.earlier_reads and job_planner.REFRESH not in work.planned:
        changed = await find_stale(open_gateway(context).ground, work.earlier_reads)
        unplanned += [(job_planner.REFRESH, item) for item in changed]
    return unplanned


async def _plan_jobs(
    context: WaveContext,
    unplanned: Sequence[tuple[str, str]],
    granted: Sequence[ContextRequest],
) -> list[JobRow]:
    items = [parse_item(item) for _, item in unplanned]
    expanded = await open_gateway(context).expand(items)
    candidates = [
        Candidate(request_id, part.kind, item, str(part))
        for (request_id, item), parts in zip(unplanned, expanded, strict=True)
        for part in parts
    ]
    profile = context.store.read_now(lambda connection: load_pinned_profile(connection, context))
    max_jobs = context.engine.settings.observe.max_jobs
    return job_planner.plan_jobs(
        candidates,
        profile.rules,
        max_jobs=max_jobs,
        rule_quotas=quotas_by_request(granted, profile),
    )


async def _run_jobs(
    context: WaveContext, look: ObservingWave, jobs: Sequence[JobRow]
) -> list[JobResult]:
    """Run the jobs and write batches of ended ones; returns those that are not written yet."""
    if not jobs:
        return []
    gateway = open_gateway(context)
    ended_jobs = _EndedJobs(jobs, gateway.why)
    running = asyncio.create_task(
        gateway.read(
            [parse_item(row.item) for row in jobs],
            ended_jobs.add,
            now=context.store.clock.monotonic,
        )
    )
    most = context.engine.settings.observe.max_facts
    try:
        while not running.done():
            await ended_jobs.wait_for_batch(running, context.store.clock)
            if not running.done():
                batch = ended_jobs.take()
                await context.store.write(
                    partial(observation_jobs.record_results, wave=look, results=batch, most=most)
                )
        await running
    finally:
        # No job outlives this, whatever ends it: a cancellation, a full disk.
        if not running.done():
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    return ended_jobs.take()


class _EndedJobs:
    """Jobs that have ended and are not written yet."""

    def __init__(
        self,
        jobs: Sequence[JobRow],
        explain: Callable[[JobOutcome[list[Fact]]], str],
    ) -> None:
        self._jobs = jobs
        self._explain = explain
        self._ended: list[JobResult] = []
        self._batch_is_full = asyncio.Event()

    def add(self, number: int, outcome: JobOutcome[list[Fact]]) -> None:
        """Add the outcome of the job with that index."""
        reason = "" if outcome.status == "done" else self._explain(outcome)
        latency_ms = round(outcome.took_s * 1000)
        self._ended.append(
            JobResult(self._jobs[number], outcome.status, outcome.value or (), reason, latency_ms)
        )
        if len(self._ended) >= BATCH_JOBS:
            self._batch_is_full.set()

    async def wait_for_batch(self, running: asyncio.Task[None], clock: Clock) -> None:
        """Wait until a batch is due or every job has ended."""
        full = asyncio.create_task(self._batch_is_full.wait())
        due = asyncio.create_task(clock.sleep(BATCH_S))
        try:
            await asyncio.wait({running, full, due}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            full.cancel()
            due.cancel()

    def take(self) -> list[JobResult]:
        """Return the ended jobs and forget them."""
        batch, self._ended = self._ended, []
        self._batch_is_full.clear()
        return batch


def _close_jobs(
    tx: Tx,
    context: WaveContext,
    look: ObservingWave,
    granted: Sequence[ContextRequest],
    unwritten: Sequence[JobResult],
    latency_ms: int,
) -> None:
    """Write the last batch, supersede older content, answer the requests and count the jobs."""
    wave_id, max_facts = context.wave.wave_id, context.engine.settings.observe.max_facts
    observation_jobs.record_results(tx, look, unwritten, most=max_facts)
    observation_jobs.finish_wave(tx, look, most=max_facts)
    for request in granted:
        outcomes = observation_jobs.summarize_items(
            tx.connection, look, request.request_id, job_planner.REASON_TEXTS
        )
        context_requests.record_fetched(
            tx, request.request_id, wave_id=wave_id, outcomes=outcomes, latency_ms=latency_ms
        )
    context.journal(
        tx, observation_jobs.summarize_wave(tx.connection, wave_id), latency_ms=latency_ms
    )
