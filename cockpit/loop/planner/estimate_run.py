"""The estimate of a task's run: made before its first step, and learned from when it is done.

It counts all roles together. A run that ends blocked teaches nothing. See ``docs/reference/planner.md``,
tasks and chains.
"""

from __future__ import annotations

import os
import sqlite3

from msgspec import Struct

from cockpit.decide.choose_model import model_named
from cockpit.decide.planner.estimate import Used
from cockpit.loop.planner.estimate_session import make_estimate, read_price
from cockpit.loop.planner.follow_session import count_waves, learn_row, measure_work
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.backlog.tasks import Task
from cockpit.store.db.transaction import Tx
from cockpit.store.estimates import estimates
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import RUNNER_PREFIX


class RunInput(Struct, frozen=True):
    """What the estimate of a run needs beside the history."""

    model: str
    """The full name of the model, or of the runner."""
    price: float | None
    """What a token costs; None where no price is known."""


def prepare_run_estimate(
    settings: RuntimeSettings, model: str | None, runner: str | None
) -> RunInput:
    """Find the model's price. May load the price list: call it in a thread.

    ``runner`` is the external agent that plays the roles; None for the built-in agent.
    """
    environment = {**os.environ, **settings.environment}
    name = f"{RUNNER_PREFIX}{runner}" if runner else model_named(model, settings.model, environment)
    return RunInput(name, read_price(settings, name))


def begin_run_estimate(tx: Tx, task: Task, run: int, prepared: RunInput) -> None:
    """Estimate a run of the task, once."""
    subject = run_subject(task.task_id, run)
    if estimates.find(tx.connection, subject) is None:
        make_estimate(
            tx,
            subject=subject,
            unit="task",
            kind=task.task_type,
            model=prepared.model,
            price=prepared.price,
        )


def learn_run(tx: Tx, task_id: str, run: int) -> None:
    """Make a run that is done history, with what its roles' sessions took together."""
    row = estimates.find(tx.connection, run_subject(task_id, run))
    if row is not None:
        learn_row(tx, row, _add_up(tx.connection, task_id, run))


def run_subject(task_id: str, run: int) -> str:
    """Return the name of a run's estimate, for example ``T-4/1``."""
    return f"{task_id}/{run}"


def _add_up(connection: sqlite3.Connection, task_id: str, run: int) -> Used:
    rows = connection.execute(
        "SELECT DISTINCT session_id FROM task_runs WHERE task_id=? AND run=?"
        " AND session_id IS NOT NULL",
        (task_id, run),
    ).fetchall()
    of_run = [sessions.load(connection, str(session_id)) for (session_id,) in rows]
    costs = [each.cost_usd for each in of_run if each.input_tokens or each.output_tokens]
    is_priced = bool(costs) and None not in costs
    return Used(
        waves=sum(count_waves(connection, each) for each in of_run),
        tokens=sum(each.input_tokens + each.output_tokens for each in of_run),
        cost_usd=sum(cost or 0.0 for cost in costs) if is_priced else None,
        work_ms=sum(measure_work(connection, each.session_id) for each in of_run),
    )
