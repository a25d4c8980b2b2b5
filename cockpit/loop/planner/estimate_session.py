"""Estimating a session before it begins, from past sessions of its kind in this project.

The estimate is stored and journalled in the transaction that creates the session. See
``docs/reference/planner.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from statistics import median

from msgspec.structs import replace

from cockpit.decide.known_prices import find_token_prices
from cockpit.decide.planner.defaults import ALL_ROLES, find_agent_default, find_default
from cockpit.decide.planner.estimate import MOST_HISTORY, OWN_HISTORY, Used, estimate_task
from cockpit.decide.planner.estimate_total import NOTHING
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.transaction import Tx
from cockpit.store.estimates import estimates
from cockpit.store.estimates.estimates import Family, Unit
from cockpit.store.journal.details.detail import detail_json
from cockpit.store.journal.details.estimates import EstimateMade, Expected
from cockpit.store.sessions.sessions import EXTERNAL_AGENT, RUNNER_PREFIX, Session

OUTPUT_SHARE = 0.03
"""Share of a session's tokens that the model writes, where the project has no history with a cost."""
_AGENT_MODELS = (RUNNER_PREFIX, f"{EXTERNAL_AGENT}:")


async def find_price(settings: RuntimeSettings, model: str) -> float | None:
    """Return what a token costs by the prices, without a cache; None where no price is known."""
    return await asyncio.to_thread(read_price, settings, model)


def read_price(settings: RuntimeSettings, model: str) -> float | None:
    """Return what :func:`find_price` returns. May load the price list: call it in a thread."""
    prices = find_token_prices(model, settings.model.prices.get(model))
    return None if prices is None else prices.blend(cached_share=0.0, output_share=OUTPUT_SHARE)


def kind_of_session(session: Session) -> str:
    """Return the task type, with its role in a chain; for an external agent its name instead."""
    name = session.agent or session.task_type
    if not session.agent and session.model.startswith(RUNNER_PREFIX):
        name = session.model.removeprefix(RUNNER_PREFIX)
    return f"{name}/{session.role}" if session.role else name


def begin_estimate(tx: Tx, session: Session, price: float | None) -> None:
    """Estimate a session that this transaction has created; store and journal the estimate."""
    make_estimate(
        tx,
        subject=session.session_id,
        unit="session",
        kind=kind_of_session(session),
        model=session.model,
        price=price,
        session=session,
    )


def make_estimate(
    tx: Tx,
    *,
    subject: str,
    unit: Unit,
    kind: str,
    model: str,
    price: float | None,
    session: Session | None = None,
) -> None:
    """Estimate a subject, store the estimate and journal it."""
    expected = estimate_kind(tx.connection, unit, kind, model, price)
    estimates.create(
        tx,
        subject=subject,
        unit=unit,
        kind=kind,
        family=_family_of(model),
        model=model,
        made_json=detail_json(expected),
    )
    event = EstimateMade(subject=subject, unit=unit, kind=kind, expected=expected, model=model)
    tx.journal(
        event,
        session_id=session.session_id if session else "",
        trace_id=session.trace_id if session else "",
    )


def estimate_kind(
    connection: sqlite3.Connection, unit: Unit, kind: str, model: str, listed: float | None
) -> Expected:
    """Estimate a task of a kind, from what the project has learned of it.

    ``listed`` is the price of a token; what past sessions of the same model paid, with their cache, goes
    before it.
    """
    family = _family_of(model)
    rows = estimates.select_history(connection, unit, kind, family, 2 * MOST_HISTORY)
    same = [row for row in rows if row.model == model]
    # Another model may take other ways: its sessions count only until there are enough of the same one.
    past = same if len(same) >= OWN_HISTORY else rows
    paid = [row.cost_usd / row.tokens for row in same if row.cost_usd is not None and row.tokens]
    return estimate_task(
        [Used(row.waves, row.tokens, row.cost_usd, row.work_ms or 0) for row in past],
        _find_default(unit, kind, family),
        median(paid) if paid else listed,
    )


def _find_default(unit: Unit, kind: str, family: Family) -> Expected:
    if family == "agent" and unit == "session":
        return find_agent_default()
    task_type, _, role = kind.partition("/")
    default = find_default(task_type, ALL_ROLES if unit == "task" else role)
    return replace(default, tokens=NOTHING) if family == "offline" else default


def _family_of(model: str) -> Family:
    """Return what kind of model it is; only sessions of one family are compared."""
    if model.startswith(_AGENT_MODELS):
        return "agent"
    if model == "offline":
        return "offline"
    return "script" if model.startswith("script:") else "model"
