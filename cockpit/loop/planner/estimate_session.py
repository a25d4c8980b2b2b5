"""Estimating a session before it begins, from past sessions of its kind in this project.

The estimate is stored and journalled in the transaction that creates the session. See
``docs/reference/planner.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from statistics import median

from msgspec import Struct

from cockpit.decide.known_prices import find_token_prices
from cockpit.decide.planner.estimate import (
    MOST_HISTORY,
    OWN_HISTORY,
    Estimate,
    PastTask,
    estimate_task,
)
from cockpit.loop.planner.estimate_kinds import family_of, kind_of_session, prior_of
from cockpit.loop.planner.measure_size import measure_size
from cockpit.loop.planner.stored_estimate import describe_expected, write_estimate
from cockpit.loop.wave_context import Engine
from cockpit.store.db.transaction import Tx
from cockpit.store.estimates import estimates
from cockpit.store.estimates.estimates import EstimateRow, Unit
from cockpit.store.journal.details.estimates import EstimateMade
from cockpit.store.sessions.sessions import Session

OUTPUT_SHARE = 0.03
"""Share of a session's tokens that the model writes, where the project has no history with a cost."""


class EstimateInput(Struct, frozen=True):
    """What an estimate needs beside the history."""

    size: int
    """Tokens of the task's text and files."""
    usd_a_token: float | None = None
    """What a token costs by the prices, without a cache; None where no price is known."""


async def prepare_estimate(
    engine: Engine,
    model: str,
    text: str,
    items: Iterable[str] = (),
    *,
    in_text: Collection[str] = (),
) -> EstimateInput:
    """Measure the size of a task and find its model's price."""
    listed = tuple(items)

    def look() -> EstimateInput:
        size = measure_size(text, listed, engine.place.root, in_text=in_text)
        prices = find_token_prices(model, engine.settings.model.prices.get(model))
        if prices is None:
            return EstimateInput(size)
        return EstimateInput(size, prices.blend(cached_share=0.0, output_share=OUTPUT_SHARE))

    return await asyncio.to_thread(look)


def begin_estimate(tx: Tx, session: Session, given: EstimateInput) -> Estimate:
    """Estimate a session that this transaction has created; store and journal the estimate."""
    return make_estimate(
        tx,
        subject=session.session_id,
        unit="session",
        kind=kind_of_session(session),
        model=session.model,
        agent=session.agent,
        given=given,
        session_id=session.session_id,
        trace_id=session.trace_id,
    )


def make_estimate(
    tx: Tx,
    *,
    subject: str,
    unit: Unit,
    kind: str,
    model: str,
    agent: str = "",
    given: EstimateInput,
    session_id: str = "",
    trace_id: str = "",
) -> Estimate:
    """Estimate a subject, store the estimate and journal it."""
    family = family_of(model, agent)
    estimate = estimate_kind(tx.connection, unit, kind, family, model, given)
    estimates.create(
        tx,
        subject=subject,
        unit=unit,
        kind=kind,
        family=family,
        model=model,
        size=given.size,
        made_json=write_estimate(estimate),
    )
    event = EstimateMade(
        subject=subject,
        unit=unit,
        kind=kind,
        expected=describe_expected(estimate),
        model=model,
        size=given.size,
    )
    tx.journal(event, session_id=session_id, trace_id=trace_id)
    return estimate


def estimate_kind(
    connection: sqlite3.Connection,
    unit: Unit,
    kind: str,
    family: str,
    model: str,
    given: EstimateInput,
) -> Estimate:
    """Estimate a task of a kind, from what the project has learned of it."""
    rows = estimates.select_history(connection, unit, kind, family, 2 * MOST_HISTORY)
    same = [row for row in rows if row.model == model]
    prior = prior_of(kind, family, unit=unit)
    # Another model may take other ways: its sessions count only until there are enough of the same one.
    past = same if len(same) >= OWN_HISTORY else rows
    price = _price_of(same, given.usd_a_token)
    return estimate_task([_past(row) for row in past], prior, given.size, usd_a_token=price)


def _price_of(same: Sequence[EstimateRow], listed: float | None) -> float | None:
    """Return what a token of the model costs: as past sessions paid, with their cache, else as listed."""
    paid = [
        row.cost_usd / row.tokens for row in same if row.cost_usd is not None and row.tokens > 0
    ]
    return median(paid[:MOST_HISTORY]) if paid else listed


def _past(row: EstimateRow) -> PastTask:
    return PastTask(
        waves=row.waves,
        tokens=row.tokens,
        size=row.size,
        cost_usd=row.cost_usd,
        work_ms=row.work_ms or None,
    )
