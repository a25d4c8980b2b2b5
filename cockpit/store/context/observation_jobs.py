"""Observation jobs: planned durably and ended together with their facts.

After a crash only the jobs that had not ended run again. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.core.secrets import mask
from cockpit.store.context import ingest_facts
from cockpit.store.context.facts import Fact, ObservingWave
from cockpit.store.context.ingest_facts import JOB_PLACES, JobFacts
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import ObservationJobs

PLANNED, REFUSED = "planned", "refused"
FACT_CAP = "fact_cap"
"""The reason given for facts beyond the wave's limit."""
LATENCY_BUCKETS_MS = (
    1,
    2,
    5,
    10,
    25,
    50,
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    30_000,
    60_000,
)
"""Upper bounds of the buckets in which latencies are counted, in milliseconds."""
MORE = "+Inf"
"""The bucket of longer latencies."""

_MANY = 2_000
"""A batch with more facts than this is cut to the wave's limit at once."""


class JobRow(Struct, frozen=True):
    """One row of ``observation_jobs``."""

    position: int
    """Its place in the wave's plan, from 1."""
    job: str
    """What it reads for: a request's id, or ``refresh``."""
    source_type: str
    approved_item: str
    """The scope item that was approved."""
    item: str
    """The item that this job reads: one file of a glob."""
    status: str = PLANNED
    reason: str = ""
    jobs: int = 1
    """Jobs that the row stands for; a refused row stands for all that have one reason."""
    facts: int = 0
    tokens: int = 0
    over: int = 0
    """Facts beyond the wave's limit."""
    latency_ms: int | None = None


class JobResult(Struct, frozen=True):
    """How a job ended."""

    row: JobRow
    status: str
    """``done``, ``failed`` or ``timed_out``."""
    facts: Sequence[Fact] = ()
    reason: str = ""
    """Why it is not ``done``."""
    latency_ms: int = 0


_COLUMNS = (
    "position, job, source_type, asked, item, status, reason, jobs, facts, tokens, over, latency_ms"
)
_SELECT = f"SELECT {_COLUMNS} FROM observation_jobs WHERE wave_id=?"  # noqa: S608 - fixed columns


def plan(tx: Tx, wave_id: str, rows: Sequence[JobRow]) -> list[JobRow]:
    """Store jobs, numbered on from the wave's jobs so far; returns all that have not ended."""
    (last,) = tx.execute(
        "SELECT coalesce(max(position), 0) FROM observation_jobs WHERE wave_id=?", (wave_id,)
    ).fetchone()
    tx.connection.executemany(
        f"INSERT INTO observation_jobs(wave_id, {_COLUMNS})"  # noqa: S608 - fixed columns
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [
            (
                wave_id,
                last + row.position,
                row.job,
                row.source_type,
                mask(row.approved_item),
                mask(row.item),
                row.status,
                row.reason,
                row.jobs,
                row.facts,
                row.tokens,
                row.over,
                row.latency_ms,
            )
            for row in rows
        ],
    )
    return select_open(tx.connection, wave_id)


def select_for_wave(connection: sqlite3.Connection, wave_id: str) -> list[JobRow]:
    """Read all jobs of a wave, in order."""
    return [JobRow(*row) for row in connection.execute(f"{_SELECT} ORDER BY position", (wave_id,))]


def select_open(connection: sqlite3.Connection, wave_id: str) -> list[JobRow]:
    """Read the jobs that have not ended, in order: after a crash, those to run again."""
    rows = connection.execute(f"{_SELECT} AND status='planned' ORDER BY position", (wave_id,))
    return [JobRow(*row) for row in rows]


def select_names(connection: sqlite3.Connection, wave_id: str) -> frozenset[str]:
    """Read what the wave has planned jobs for."""
    rows = connection.execute(
        "SELECT DISTINCT job FROM observation_jobs WHERE wave_id=?", (wave_id,)
    )
    return frozenset(name for (name,) in rows)


def select_read_before(
    connection: sqlite3.Connection, session_id: str, items: Sequence[str]
) -> frozenset[str]:
    """Return those of ``items`` that a job of the session has read, or that were approved and read."""
    written = {mask(item): item for item in items}
    marks = ",".join("?" * len(written))
    rows = connection.execute(
        "SELECT DISTINCT item, asked FROM wave_runs CROSS JOIN observation_jobs USING (wave_id)"  # noqa: S608 - only placeholders
        " WHERE session_id=? AND observation_jobs.status='done'"
        f" AND (item IN ({marks}) OR asked IN ({marks}))",
        (session_id, *written, *written),
    )
    return frozenset(written[text] for row in rows for text in row if text in written)


def select_last_size(connection: sqlite3.Connection, session_id: str, item: str) -> int | None:
    """Return the tokens of ``item`` when the session last read it; None where it has not."""
    row = connection.execute(
        "SELECT tokens FROM wave_runs CROSS JOIN observation_jobs USING (wave_id)"
        " WHERE session_id=? AND observation_jobs.status='done' AND item=?"
        " ORDER BY ordinal DESC, position DESC LIMIT 1",
        (session_id, mask(item)),
    ).fetchone()
    return None if row is None else int(row[0])


def record_results(tx: Tx, wave: ObservingWave, results: Sequence[JobResult], *, most: int) -> None:
    """End a batch of jobs and store their facts. A job ends once.

    ``most`` is the wave's limit of facts: a large batch is cut to it at once.
    """
    tx.connection.executemany(
        "UPDATE observation_jobs SET status=?, reason=?, facts=?, tokens=?, latency_ms=?"
        " WHERE wave_id=? AND position=? AND status='planned'",
        [
            (
                result.status,
                mask(result.reason) if result.reason else "",
                len(result.facts),
                sum(fact.cost.full for fact in result.facts),
                result.latency_ms,
                wave.wave_id,
                result.row.position,
            )
            for result in results
        ],
    )
    ingest_facts.ingest(
        tx,
        wave,
        [
            JobFacts(result.row.position, result.row.job, result.facts)
            for result in results
            if result.facts
        ],
    )
    if sum(len(result.facts) for result in results) > _MANY:
        _cap(tx, wave, most)


def finish_wave(tx: Tx, wave: ObservingWave, *, most: int) -> None:
    """Finish after all jobs of the wave have ended.

    The first ``most`` facts in the order of the plan are kept, newer content supersedes older, and
    near-duplicates are clustered.
    """
    _cap(tx, wave, most)
    ingest_facts.finish_wave(tx, wave)


def _cap(tx: Tx, wave: ObservingWave, most: int) -> None:
    tx.connection.executemany(
        "UPDATE observation_jobs SET over=over+? WHERE wave_id=? AND position=?",
        [
            (count, wave.wave_id, position)
            for position, count in ingest_facts.limit_facts(tx, wave, most).items()
        ],
    )


def summarize_items(
    connection: sqlite3.Connection, wave: ObservingWave, job: str, words: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Summarize what reading each approved item of ``job`` gave: the items of ``context.fetched``.

    ``new`` counts the facts that the session did not have in full already. ``words`` maps reasons
    of refusals to text for a model.
    """
    new: dict[int, int] = dict(
        connection.execute(
            f"SELECT position / {JOB_PLACES}, count(*) FROM session_facts WHERE session_id=?"  # noqa: S608 - a whole number
            f" AND ordinal=? AND position>={JOB_PLACES} GROUP BY 1",
            (wave.session_id, wave.ordinal),
        ).fetchall()
    )
    by_item: dict[str, dict[str, Any]] = {}
    errors: dict[str, list[str]] = {}
    for row in select_for_wave(connection, wave.wave_id):
        if row.job != job:
            continue
        outcome = by_item.setdefault(
            row.approved_item,
            {"item": row.approved_item, "facts": 0, "new": 0, "tokens": 0, "error": ""},
        )
        outcome["facts"] += row.facts - row.over
        outcome["new"] += new.get(row.position, 0)
        outcome["tokens"] += row.tokens
        messages = errors.setdefault(row.approved_item, [])
        if row.status == REFUSED:
            subject = "" if row.item == row.approved_item else f"{row.jobs:,} of its files: "
            messages.append(f"{subject}{words.get(row.reason, row.reason)}")
        elif row.reason:
            messages.append(
                row.reason if row.item == row.approved_item else f"{row.item}: {row.reason}"
            )
        if row.over:
            messages.append(f"{row.over:,} facts: {words.get(FACT_CAP, FACT_CAP)}")
    for item, messages in errors.items():
        more = f"; and {len(messages) - 3:,} more" if len(messages) > 3 else ""
        by_item[item]["error"] = f"{'; '.join(messages[:3])}{more}"
    return list(by_item.values())


def summarize_wave(connection: sqlite3.Connection, wave_id: str) -> ObservationJobs:
    """Count a wave's jobs: the detail of ``observation.jobs``.

    Latencies are in milliseconds, of jobs that ran; a percentile is one of them (nearest rank).
    """
    counted: dict[str, int] = {"done": 0, "failed": 0, "timed_out": 0}
    refused: dict[str, int] = {}
    sources: dict[str, dict[str, int]] = {}
    planned = 0
    for source, status, reason, jobs, over in connection.execute(
        "SELECT source_type, status, CASE status WHEN 'refused' THEN reason ELSE '' END, sum(jobs),"
        " sum(over) FROM observation_jobs WHERE wave_id=? GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
        (wave_id,),
    ):
        by_status = sources.setdefault(source, {})
        by_status[status] = by_status.get(status, 0) + jobs
        if status == REFUSED:
            refused[reason] = refused.get(reason, 0) + jobs
        else:
            planned += jobs
            counted[status] = counted.get(status, 0) + jobs
        if over:
            refused[FACT_CAP] = refused.get(FACT_CAP, 0) + over
    took = [
        latency
        for (latency,) in connection.execute(
            "SELECT latency_ms FROM observation_jobs WHERE wave_id=? AND latency_ms IS NOT NULL"
            " ORDER BY latency_ms",
            (wave_id,),
        )
    ]
    return ObservationJobs(
        planned=planned,
        done=counted["done"],
        failed=counted["failed"],
        timed_out=counted["timed_out"],
        refused=refused,
        sources=sources,
        latency_ms={
            "p50": _rank(took, 50),
            "p95": _rank(took, 95),
            "max": took[-1] if took else 0,
        },
        latency_buckets=count_latencies(took),
        latency_sum_ms=sum(took),
    )


def count_latencies(ordered: Sequence[int]) -> dict[str, int]:
    """Count latencies by the upper bound of their bucket; empty buckets are left out."""
    counts: dict[str, int] = {}
    below = 0
    for bound in LATENCY_BUCKETS_MS:
        within = bisect_right(ordered, bound)
        if within > below:
            counts[str(bound)] = within - below
        below = within
    if len(ordered) > below:
        counts[MORE] = len(ordered) - below
    return counts


def _rank(ordered: Sequence[int], percent: int) -> int:
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else 0
