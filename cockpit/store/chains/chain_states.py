"""Chains with what a list shows of each: the running ones, the last that ended, their steps and costs."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker

_LIVE_MOST = 50


class ChainStep(msgspec.Struct, frozen=True):
    """One step of a task in a chain; ``moment`` orders steps by their last change."""

    task_id: str
    ordinal: int
    step: str
    attempt: int
    session_id: str
    outcome: str
    summary: str
    moment: int


class Usage(msgspec.Struct, frozen=True):
    """What one session of a chain's task used."""

    task_id: str
    tokens: int
    cost_usd: float | None


def select_shown(connection: sqlite3.Connection, ended: int) -> list[Chain]:
    """Read the chains that run, and the ``ended`` that ended last, the newest at the end."""
    live: list[str] = []
    for status in chains.OPEN:
        live += _ids(
            connection,
            "SELECT chain_id FROM chains WHERE status=? ORDER BY number DESC LIMIT ?",
            (status, _LIVE_MOST),
        )
    over = _ids(
        connection,
        "SELECT chain_id FROM chains WHERE status NOT IN ('running','draining')"
        " ORDER BY ended_at DESC LIMIT ?",
        (ended,),
    )
    running = sorted(
        (chains.load(connection, each) for each in live), key=lambda chain: chain.began_at
    )
    return [*(chains.load(connection, each) for each in reversed(over)), *running]


def select_named(connection: sqlite3.Connection, chain_id: str) -> list[Chain]:
    """Read the chain of that exact id; none for an unknown id."""
    ids = _ids(connection, "SELECT chain_id FROM chains WHERE chain_id=?", (chain_id,))
    return [chains.load(connection, each) for each in ids]


def select_steps(connection: sqlite3.Connection, chain_id: str) -> list[ChainStep]:
    """Read the steps that a chain took, in the order in which its tasks began."""
    rows = connection.execute(
        "SELECT task_id, ordinal, step, attempt, coalesce(session_id, ''), coalesce(outcome, ''),"
        " coalesce(json_extract(detail_json, '$.summary'), ''), started_at, coalesce(ended_at, '')"
        " FROM task_runs WHERE chain_id=? ORDER BY task_id, run, position",
        (chain_id,),
    ).fetchall()
    moments = {at: place for place, at in enumerate(sorted({at for row in rows for at in row[7:]}))}
    began: dict[str, str] = {}
    for row in rows:
        began.setdefault(row[0], row[7])
    steps: list[ChainStep] = []
    for *columns, summary, started, ended in rows:
        columns += [str(summary)[:1_000], moments[max(started, ended)]]
        steps.append(ChainStep(*columns))
    return sorted(steps, key=lambda step: began[step.task_id])


def count_done(connection: sqlite3.Connection, chain_id: str) -> int:
    """Return how many tasks are done that the chain worked on."""
    row = connection.execute(
        "SELECT count(DISTINCT r.task_id) FROM task_runs r JOIN tasks t ON t.task_id=r.task_id"
        " WHERE r.chain_id=? AND t.status='done'",
        (chain_id,),
    ).fetchone()
    return int(row[0])


def session_usage(connection: sqlite3.Connection, chain_id: str) -> list[Usage]:
    """Return what each session of a chain's steps used."""
    rows = connection.execute(
        "SELECT DISTINCT r.task_id, s.session_id, s.input_tokens+s.output_tokens, s.cost_usd"
        " FROM task_runs r JOIN sessions s ON s.session_id=r.session_id WHERE r.chain_id=?",
        (chain_id,),
    )
    return [Usage(task_id, tokens, cost) for task_id, _, tokens, cost in rows]


def worker_usage(
    connection: sqlite3.Connection, chain_id: str, workers: Sequence[Worker]
) -> dict[int, tuple[int, float | None]]:
    """Return tokens and cost of the sessions that began under each worker, by the worker's number.

    A step that a later worker resumed names that worker; its session belongs to the earlier one.
    """
    rows = connection.execute(
        "SELECT DISTINCT r.ordinal, s.session_id, s.created_at, s.input_tokens+s.output_tokens, s.cost_usd"
        " FROM task_runs r JOIN sessions s ON s.session_id=r.session_id WHERE r.chain_id=?",
        (chain_id,),
    )
    usage: dict[int, tuple[int, float | None]] = {}
    for resumed_by, _, created_at, tokens, cost in rows:
        began = [each for each in workers if each.started_at <= created_at]
        ordinal = min(resumed_by, began[-1].ordinal) if began else resumed_by
        before_tokens, before_cost = usage.get(ordinal, (0, None))
        priced = [each for each in (before_cost, cost) if each is not None]
        usage[ordinal] = (before_tokens + tokens, sum(priced) if priced else None)
    return usage


def _ids(connection: sqlite3.Connection, sql: str, values: tuple[object, ...]) -> list[str]:
    return [chain_id for (chain_id,) in connection.execute(sql, values)]
