"""The supervisor of a chain: it starts one worker process after another until the chain ends.

It finds workers that died and frees their leases; the next worker resumes their tasks. A supervisor may
die as well: its worker continues, and the next supervisor finds it. See ``docs/reference/chains.md``.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cockpit.chains.decide_next_worker import ChainDecision, count_crashes, decide_chain
from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError, find_machine_fault
from cockpit.core.failure_lines import clip_start
from cockpit.core.processes import is_process_alive
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.chains import chains, retry_delays, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.tasks.outage import NO_ROOM, is_passing

POLL_S = 0.1
"""Seconds between two looks at the worker."""
SILENT_S = 300.0
"""A worker without a heartbeat for so many seconds is dead, even if its process runs."""
STOP_PATIENCE_S = 4.0
"""Seconds that a worker may take to stop at once before it is killed: a user waits for it."""
MAX_FAILED_STARTS = 3
"""So many processes in a row that never became a worker fail the chain."""
COMMAND = (sys.executable, "-P", "-m", "cockpit", "work")
"""The command of a worker, before its chain and ordinal. ``-P``: it starts in the project, whose files
must not be imported."""
_LOG_TAIL = 300


class Supervision(Struct, frozen=True):
    """What the supervisor of a chain needs."""

    store: Store
    place: ProjectPaths
    environment: Mapping[str, str]
    """The whole environment of a worker process."""
    command: tuple[str, ...] = COMMAND
    before_end: Callable[[Chain], Awaitable[object]] | None = None
    """Receives the chain as it is about to end. If the supervisor dies there, the chain has not ended,
    and the next supervisor ends it the same way."""


def log_path(place: ProjectPaths, chain_id: str, ordinal: int) -> Path:
    """Return the file that holds the worker's output."""
    return place.state / "chains" / f"{chain_id}-s{ordinal}.log"


async def supervise(supervision: Supervision, chain_id: str) -> Chain:
    """Run worker after worker until the chain ends; return the ended chain.

    When cancelled, the running worker continues alone. Raises the store's errors, and after the chain's
    end those of ``before_end``.
    """
    store = supervision.store
    failed_starts, why, waited_for = 0, "", (0, 0)
    while True:
        running = await store.write(lambda tx: _running_worker(tx, chain_id))
        if running is not None:
            await _await_worker(
                supervision,
                chain_id,
                running.ordinal,
                running.pid,
                partial(_has_ended, running.process),
            )
            continue
        ordinal = _next_ordinal(store, chain_id)
        decision = _decide(supervision, chain_id, failed_starts, why)
        if not decision.continues:
            return await _end_chain(supervision, chain_id, decision)
        if waited_for != (ordinal, failed_starts):
            waited_for = (ordinal, failed_starts)
            await _wait_before_retry(supervision, chain_id, ordinal, failed_starts, why)
            continue  # the chain may have been stopped meanwhile
        try:
            child = _start_worker(supervision, chain_id, ordinal)
        except OSError as error:
            fault = find_machine_fault(error)
            why = f"{NO_ROOM}: {fault}" if fault else str(error)
            failed_starts += 1
            continue
        await _await_worker(supervision, chain_id, ordinal, child.pid, partial(_has_exited, child))
        failed_starts = failed_starts + 1 if _next_ordinal(store, chain_id) == ordinal else 0
        why = _log_tail(log_path(supervision.place, chain_id, ordinal)) if failed_starts else ""


def mark_dead_workers(tx: Tx, chain_id: str) -> tuple[Worker, ...]:
    """Mark the chain's workers whose process is gone as crashed, free their leases, and return them."""
    chain = chains.load(tx.connection, chain_id)
    return tuple(
        workers.record_crash(tx, chain, worker.ordinal, reason)
        for worker in workers.select_for_chain(tx.connection, chain_id)
        if (reason := workers.explain_death(worker))
    )


def request_stop(tx: Tx, chain_id: str, *, now: bool, by: str = "person") -> Chain:
    """Ask the chain to stop after the current steps, or with ``now`` at once; ``by`` is the journal's actor.

    A chain without a living process ends here. Raises ``IllegalTransition`` for a chain that has ended,
    and ``NotFound``.
    """
    chain = chains.drain(tx, chain_id, now=now, by=by)
    mark_dead_workers(tx, chain_id)
    running = any(
        worker.status == "running" for worker in workers.select_for_chain(tx.connection, chain_id)
    )
    if chains.is_watched(chain) or running:
        return chain
    return chains.end(tx, chain_id, "stopped", "no worker was running")


def _running_worker(tx: Tx, chain_id: str) -> Worker | None:
    mark_dead_workers(tx, chain_id)
    chain_workers = workers.select_for_chain(tx.connection, chain_id)
    return next((worker for worker in chain_workers if worker.status == "running"), None)


def _decide(supervision: Supervision, chain_id: str, failed_starts: int, why: str) -> ChainDecision:
    now = format_time(supervision.store.clock.now())
    decision = supervision.store.read_now(
        lambda connection: decide_chain(connection, chains.load(connection, chain_id), now)
    )
    if decision.continues and failed_starts >= MAX_FAILED_STARTS:
        if is_passing(why):
            return ChainDecision("stopped", why)
        return ChainDecision("failed", f"its workers could not start: {why}")
    return decision


async def _end_chain(supervision: Supervision, chain_id: str, decision: ChainDecision) -> Chain:
    store, report_error = supervision.store, None
    if supervision.before_end is not None:
        chain = store.read_now(lambda connection: chains.load(connection, chain_id))
        ended_at = format_time(store.clock.now())
        try:
            await supervision.before_end(
                replace(chain, status=decision.status, reason=decision.reason, ended_at=ended_at)
            )
        except CockpitError as error:
            report_error = error
    ended = await store.write(lambda tx: chains.end(tx, chain_id, decision.status, decision.reason))
    if report_error is not None:
        raise report_error
    return ended


def _next_ordinal(store: Store, chain_id: str) -> int:
    chain_workers = store.read_now(
        lambda connection: workers.select_for_chain(connection, chain_id)
    )
    return chain_workers[-1].ordinal + 1 if chain_workers else 1


def _start_worker(supervision: Supervision, chain_id: str, ordinal: int) -> subprocess.Popen[bytes]:
    """Start the worker in its own process group: the terminal's Ctrl+C reaches only the supervisor.

    Raises ``OSError``.
    """
    path = log_path(supervision.place, chain_id, ordinal)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with path.open("ab") as log:
        return subprocess.Popen(
            (*supervision.command, "--chain", chain_id, "--session", str(ordinal)),
            cwd=supervision.place.root,
            env=dict(supervision.environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


async def _wait_before_retry(
    supervision: Supervision, chain_id: str, ordinal: int, failed_starts: int, why: str
) -> None:
    """Wait before another worker starts, if the ones before died or could not start; not once it stops."""
    store = supervision.store

    def plan(tx: Tx) -> str:
        """Return when it may start, journalled; empty for at once."""
        chain = chains.load(tx.connection, chain_id)
        chain_workers = workers.select_for_chain(tx.connection, chain_id)
        if failed_starts:
            failures, failed_at = failed_starts, tx.now()
            reason = f"it could not start: {why}"
        else:
            failures = count_crashes(tx.connection, chain, chain_workers)
            if not failures:
                return ""
            failed_at, reason = chain_workers[-1].ended_at or tx.now(), chain_workers[-1].reason
        starts_at = retry_delays.start_after(failed_at, failures)
        if not retry_delays.seconds_until(starts_at, store.clock.now()):
            return ""
        retry_delays.delay_worker(tx, chain, ordinal, failures, starts_at, reason)
        return starts_at

    starts_at = await store.write(plan)
    if not starts_at:
        return
    # The monotonic clock: the wait stays as long when the machine's time is set.
    until = store.clock.monotonic() + retry_delays.seconds_until(starts_at, store.clock.now())
    while (left := until - store.clock.monotonic()) > 0:
        chain = store.read_now(lambda connection: chains.load(connection, chain_id))
        if chain.status != "running":
            return
        await store.clock.sleep(min(POLL_S, left))


def _has_ended(process: str) -> bool:
    return not is_process_alive(process)


def _has_exited(child: subprocess.Popen[bytes]) -> bool:
    return child.poll() is not None


async def _await_worker(
    supervision: Supervision, chain_id: str, ordinal: int, pid: int, ended: Callable[[], bool]
) -> None:
    """Wait for the worker's process to end.

    Kills the process group of a worker that does not stop in time, or whose heartbeat stopped.
    """
    store = supervision.store
    kill_at: float | None = None
    # The monotonic clock: after the machine slept, no worker has been silent for hours.
    last_beat, beat_seen_at = "", store.clock.monotonic()
    while not ended():
        now, beat = store.clock.monotonic(), _last_beat(store, chain_id, ordinal)
        if beat != last_beat:
            last_beat, beat_seen_at = beat, now
        chain = store.read_now(lambda connection: chains.load(connection, chain_id))
        if kill_at is None and chain.stop_now:
            kill_at = now + STOP_PATIENCE_S
        silent = now - beat_seen_at > SILENT_S
        if silent or (kill_at is not None and now > kill_at):
            _kill_group(pid)
        if silent and last_beat:
            await store.write(lambda tx: _mark_silent(tx, chain_id, ordinal))
        await store.clock.sleep(POLL_S)


def _last_beat(store: Store, chain_id: str, ordinal: int) -> str:
    """Return the time of the worker's last heartbeat; empty before it started."""
    chain_workers = store.read_now(
        lambda connection: workers.select_for_chain(connection, chain_id)
    )
    return next((worker.beat_at for worker in chain_workers if worker.ordinal == ordinal), "")


def _mark_silent(tx: Tx, chain_id: str, ordinal: int) -> None:
    if workers.load(tx.connection, chain_id, ordinal).status == "running":
        chain = chains.load(tx.connection, chain_id)
        workers.record_crash(tx, chain, ordinal, f"it was silent for {SILENT_S:.0f} s")


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # it has ended meanwhile


def _log_tail(path: Path) -> str:
    try:
        output = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "they wrote no output"
    return clip_start(output, _LOG_TAIL) or "they wrote no output"


REASON = "all of its processes died"


def find_dead_chains(connection: sqlite3.Connection) -> list[str]:
    """Return the chains that run by their row and that no process supervises or works for."""
    open_chains = connection.execute(
        "SELECT chain_id FROM chains WHERE status IN ('running','draining') ORDER BY number"
    ).fetchall()
    return [chain_id for (chain_id,) in open_chains if _is_dead(connection, chain_id)]


def close_dead_chains(tx: Tx) -> list[Chain]:
    """End these chains, mark their workers as crashed, and free the leases of their tasks."""
    ended = []
    for chain_id in find_dead_chains(tx.connection):
        chain = chains.load(tx.connection, chain_id)
        mark_dead_workers(tx, chain_id)
        status = "stopped" if chain.status == "draining" else "failed"
        ended.append(chains.end(tx, chain_id, status, REASON))
    return ended


def _is_dead(connection: sqlite3.Connection, chain_id: str) -> bool:
    chain = chains.load(connection, chain_id)
    if chain.owner is None or chains.is_watched(chain):
        return False  # without an owner it is being handed over by a process that lives
    return all(
        worker.status != "running" or workers.explain_death(worker)
        for worker in workers.select_for_chain(connection, chain_id)
    )
