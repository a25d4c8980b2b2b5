"""How long a worker or a step that broke off waits before it starts again: exponentially, bounded.

The time is stored with the step, so the next worker keeps to it. Specified in
``docs/reference/chains.md``, after a crash.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from cockpit.core.clock import format_time, parse_time
from cockpit.store.chains import task_runs
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.task_runs import Step
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.chains import ChainDelayed

FIRST_S: Final = 2.0
"""Seconds before the second try; each further try waits twice as long."""
LONGEST_S: Final = 60.0
"""The most seconds before any try."""
_LONGEST_REASON = 500
_ORDINALS = (
    "",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
)


def retry_delay(failures: int) -> float:
    """Return the seconds to wait after so many failures in a row; 0 after none."""
    if failures < 1:
        return 0.0
    # The exponent is bounded as well: a counter of any size costs the same and overflows nothing.
    return min(LONGEST_S, FIRST_S * 2.0 ** min(failures - 1, 16))


def start_after(failed_at: str, failures: int) -> str:
    """Return the time from which a try may start that follows ``failures`` at ``failed_at``."""
    return format_time(parse_time(failed_at) + timedelta(seconds=retry_delay(failures)))


def seconds_until(starts_at: str, now: datetime) -> float:
    """Return the seconds until a stored time, from 0 to :data:`LONGEST_S`.

    The upper bound holds when the machine's clock was set back meanwhile.
    """
    return min(LONGEST_S, max(0.0, (parse_time(starts_at) - now).total_seconds()))


def describe_try(number: int) -> str:
    """Return which try it is: ``third try``."""
    return f"{_ORDINALS[number]} try" if 0 < number < len(_ORDINALS) else f"try {number}"


def describe_retry(seconds: float, number: int) -> str:
    """Return when a try starts, as text: ``starts again in 8 s; third try``."""
    return f"starts again in {max(1, round(seconds))} s; {describe_try(number)}"


def delay_worker(
    tx: Tx, chain: Chain, ordinal: int, failures: int, starts_at: str, why: str
) -> None:
    """Journal that the chain's worker ``ordinal`` starts at ``starts_at`` only, and ``why``."""
    event = ChainDelayed(
        chain_id=chain.chain_id,
        ordinal=ordinal,
        attempt=failures + 1,
        delay_s=seconds_until(starts_at, parse_time(tx.now())),
        starts_at=starts_at,
        reason=why[:_LONGEST_REASON],
    )
    tx.journal(event, result="error", error_code="worker_crashed")


def delay_step(tx: Tx, step: Step, failures: int, why: str) -> Step:
    """Let the open ``step`` start again only after its delay; journal it. ``failures`` counts from 1."""
    starts_at = start_after(tx.now(), failures)
    delayed = task_runs.add_detail(tx, step, retry_at=starts_at, retries=failures)
    event = ChainDelayed(
        task_id=step.task_id,
        chain_id=step.chain_id,
        ordinal=step.ordinal,
        step=step.step,
        attempt=failures + 1,
        delay_s=retry_delay(failures),
        starts_at=starts_at,
        reason=why[:_LONGEST_REASON],
    )
    tx.journal(event, session_id=step.session_id or "", result="error", error_code="step_broke_off")
    return delayed


def select_delays(
    connection: sqlite3.Connection, task_ids: Iterable[str], now: str
) -> Mapping[str, float]:
    """Return those of the tasks whose open step has to wait, with the seconds that are left at ``now``."""
    moment, delays = parse_time(now), {}
    for task_id in task_ids:
        steps = task_runs.select_steps(connection, task_id)
        starts_at = steps[-1].detail.get("retry_at") if steps and steps[-1].open else None
        left = seconds_until(starts_at, moment) if isinstance(starts_at, str) else 0.0
        if left > 0:
            delays[task_id] = left
    return delays
