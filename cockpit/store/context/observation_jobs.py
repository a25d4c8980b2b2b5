"""Observation jobs: planned durably, settled with their facts, so that a crash repeats only the rest.

Source: RFC-003 §10.1, §14.1 (``observation_jobs_total``, ``observation_job_latency_ms``), §15.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cockpit.core.secrets import mask
from cockpit.store.context import ingest_facts
from cockpit.store.context.facts import Fact, ObservingWave
from cockpit.store.context.ingest_facts import JOB_PLACES, JobFacts
from cockpit.store.db.transaction import Tx

PLANNED, REFUSED = "planned", "refused"
FACT_CAP = "fact_cap"
"""The reason of facts past the wave's cap."""


_MANY = 2_000


@dataclass(frozen=True, slots=True)
class JobRow:
    """One row of ``observation_jobs``.

    ``position`` is its place in the wave's plan, from 1. ``job`` names what it is for (a request's id,
    ``refresh``), ``asked`` the approved item, ``item`` what is read for it (one file of a glob). A
    refused row stands for ``jobs`` jobs of one reason. ``over`` counts facts past the wave's cap.
    """

    position: int
    job: str
    source_type: str
    approved_item: str
    item: str
    status: str = PLANNED
    reason: str = ""
    jobs: int = 1
    facts: int = 0
    tokens: int = 0
    over: int = 0
    latency_ms: int | None = None


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: ``status`` is done, failed or timed_out, ``reason`` says why not done."""

    row: JobRow
    status: str
    facts: Sequence[Fact] = ()
    reason: str = ""
    latency_ms: int = 0


_COLUMNS = (
    "position, job, source_type, asked, item, status, reason, jobs, facts, tokens, over, latency_ms"
)
_SELECT = f"SELECT {_COLUMNS} FROM observation_jobs WHERE wave_id=?"  # noqa: S608 - fixed columns


def plan(tx: Tx, wave_id: str, rows: Sequence[JobRow]) -> list[JobRow]:
    """Write a plan, counted on from the wave's jobs so far; returns all that have not ended."""
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
    """All rows of a wave's plan, in order."""
    return [JobRow(*row) for row in connection.execute(f"{_SELECT} ORDER BY position", (wave_id,))]


def select_open(connection: sqlite3.Connection, wave_id: str) -> list[JobRow]:
    """The jobs that have not ended yet, in order: after a crash, those to run again."""
    rows = connection.execute(f"{_SELECT} AND status='planned' ORDER BY position", (wave_id,))
    return [JobRow(*row) for row in rows]


def select_names(connection: sqlite3.Connection, wave_id: str) -> frozenset[str]:
    """What the wave has planned jobs for already."""
    rows = connection.execute(
        "SELECT DISTINCT job FROM observation_jobs WHERE wave_id=?", (wave_id,)
    )
    return frozenset(name for (name,) in rows)


def record_results(tx: Tx, wave: ObservingWave, results: Sequence[JobResult], *, most: int) -> None:
    """Settle a batch of jobs and store what they found, at once. A job ends once.

    ``most`` is the cap of the wave's facts: a batch that brings many is cut to it right away.
    """
    tx.connection.executemany(
        "UPDATE observation_jobs SET status=?, reason=?, facts=?, tokens=?, latency_ms=?"
        " WHERE wave_id=? AND position=? AND status='planned'",
        [
            (
                result.status,
                mask(result.reason) if result.reason else "",
                len(result.facts),
                sum(fact.full.tokens for fact in result.facts),
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
    """All jobs of the wave have ended: of what they found, the first ``most`` facts in the order of the
    plan are kept, newer content supersedes older, and near-duplicates are told."""
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
    """What came of each item that was approved for ``job``: the items of ``context.fetched``.

    Of an item's ``facts`` so many are ``new``: the session had the others already, in full in the
    packet. ``words`` puts the reasons of refusals into words for a model.
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


def summarize_wave(connection: sqlite3.Connection, wave_id: str) -> dict[str, Any]:
    """A wave's jobs in numbers: the detail of ``observation.jobs``.

    Milliseconds are of jobs that ran; a percentile is one of them (the nearest rank).
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
    return {
        "planned": planned,
        **counted,
        "refused": refused,
        "sources": sources,
        "latency_ms": {
            "p50": _rank(took, 50),
            "p95": _rank(took, 95),
            "max": took[-1] if took else 0,
        },
    }


def _rank(ordered: Sequence[int], percent: int) -> int:
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else 0
