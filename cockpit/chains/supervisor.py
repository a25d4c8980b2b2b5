"""Watching over a chain: one process for each of its sessions, one after another, until it has ended.

A session that dies is found, its leases are freed, and the next one takes up what it left. Whoever
watches may die as well: the session goes on, and the next watcher finds it. Source: design of work,
"Chains"; seed 004, solution 7.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cockpit.chains.chain_lifecycle import ChainDecision, decide_chain
from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError, StoreUnwritable
from cockpit.core.processes import is_process_alive
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.chains import chains, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

LOOK_S = 0.1
"""How often a watcher looks how its session stands, in seconds."""
SILENT_S = 300.0
"""How long a session may be silent before it counts as dead although its process is there."""
STOP_PATIENCE_S = 20.0
"""How long a session that is to stop now may take for that, in seconds."""
MOST_UNBORN = 3
"""So many processes one after another that never became a session fail the chain."""
COMMAND = (sys.executable, "-P", "-m", "cockpit", "work")
"""What begins a session, with its chain and its ordinal behind it. ``-P``: it begins in the project,
whose files are none of its modules."""
_LAST_WORDS = 300


@dataclass(frozen=True, slots=True)
class Supervision:
    """What a watcher needs: ``environment`` is the whole one of a session's process.

    ``before_end`` is given the chain as it is about to end: one whose watcher dies there has not ended,
    and is gone on with to the same end.
    """

    store: Store
    place: ProjectPaths
    environment: Mapping[str, str]
    command: tuple[str, ...] = COMMAND
    before_end: Callable[[Chain], Awaitable[object]] | None = None


def log_path(place: ProjectPaths, chain_id: str, ordinal: int) -> Path:
    """Where the words of that session's process are kept."""
    return place.state / "chains" / f"{chain_id}-s{ordinal}.log"


async def supervise(watch: Supervision, chain_id: str) -> Chain:
    """See the chain through to its end, session after session; returns it as it then is.

    Cancelled, the session that runs goes on alone. Raises the store's errors, and when the chain has
    ended those of ``before_end``.
    """
    unborn = 0
    while True:
        running = await watch.store.write(lambda tx: _running(tx, chain_id))
        if running is not None:
            await _see_out(watch, chain_id, running.ordinal, running.pid, _ends(running.process))
            continue
        ordinal = _next(watch.store, chain_id)
        coming = _coming(watch, chain_id, ordinal, unborn)
        if not coming.goes_on:
            return await _ended(watch, chain_id, coming)
        child = _spawn(watch, chain_id, ordinal)
        await _see_out(watch, chain_id, ordinal, child.pid, _child_ends(child))
        unborn = unborn + 1 if _next(watch.store, chain_id) == ordinal else 0


def mark_dead_workers(tx: Tx, chain_id: str) -> tuple[Worker, ...]:
    """Give up the sessions of the chain that are dead; returns them. What they held is free."""
    chain = chains.load(tx.connection, chain_id)
    return tuple(
        workers.record_crash(tx, chain, one.ordinal, why)
        for one in workers.select_for_chain(tx.connection, chain_id)
        if (why := workers.explain_death(one))
    )


def _running(tx: Tx, chain_id: str) -> Worker | None:
    mark_dead_workers(tx, chain_id)
    known = workers.select_for_chain(tx.connection, chain_id)
    return next((one for one in known if one.status == "running"), None)


def _coming(watch: Supervision, chain_id: str, ordinal: int, unborn: int) -> ChainDecision:
    now = format_time(watch.store.clock.now())
    coming = watch.store.read_now(lambda seen: decide_chain(seen, chains.load(seen, chain_id), now))
    if coming.goes_on and unborn >= MOST_UNBORN:
        told = _last_words(log_path(watch.place, chain_id, ordinal))
        return ChainDecision("failed", f"its sessions could not begin: {told}")
    return coming


async def _ended(watch: Supervision, chain_id: str, coming: ChainDecision) -> Chain:
    store, lost = watch.store, None
    if watch.before_end is not None:
        known = store.read_now(lambda found: chains.load(found, chain_id))
        at = format_time(store.clock.now())
        try:
            await watch.before_end(
                replace(known, status=coming.status, reason=coming.reason, ended_at=at)
            )
        except CockpitError as error:
            lost = error
    made = await store.write(lambda tx: chains.end(tx, chain_id, coming.status, coming.reason))
    if lost is not None:
        raise lost
    return made


def _next(store: Store, chain_id: str) -> int:
    known = store.read_now(lambda found: workers.select_for_chain(found, chain_id))
    return known[-1].ordinal + 1 if known else 1


def _spawn(watch: Supervision, chain_id: str, ordinal: int) -> subprocess.Popen[bytes]:
    """Begin that session in a process group of its own: the terminal's Ctrl+C is its watcher's."""
    path = log_path(watch.place, chain_id, ordinal)
    argv = (*watch.command, "--chain", chain_id, "--session", str(ordinal))
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("ab") as log:
            return subprocess.Popen(
                argv,
                cwd=watch.place.root,
                env=dict(watch.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise StoreUnwritable(
            f"The next session of {chain_id} could not be begun ({error.strerror or error}). When that "
            "is mended: `cockpit work --continue`."
        ) from error


def _ends(process: str) -> Callable[[], bool]:
    """Whether a process that another one began is gone by now."""
    return lambda: not is_process_alive(process)


def _child_ends(child: subprocess.Popen[bytes]) -> Callable[[], bool]:
    return lambda: child.poll() is not None


async def _see_out(
    watch: Supervision, chain_id: str, ordinal: int, pid: int, gone: Callable[[], bool]
) -> None:
    """Wait until that session's process is gone. One that does not stop when it must, or is silent for
    too long, is killed with all that it began."""
    store = watch.store
    patience: float | None = None
    # Not by the clock on the wall: a machine that slept has silenced nobody.
    heard, heard_at = "", store.clock.monotonic()
    while not gone():
        now, beat = store.clock.monotonic(), _beat(store, chain_id, ordinal)
        if beat != heard:
            heard, heard_at = beat, now
        if patience is None and store.read_now(lambda seen: chains.load(seen, chain_id)).stop_now:
            patience = now + STOP_PATIENCE_S
        silent = now - heard_at > SILENT_S
        if silent or (patience is not None and now > patience):
            _kill_group(pid)
        if silent and heard:
            await store.write(lambda tx: _given_up(tx, chain_id, ordinal))
        await store.clock.sleep(LOOK_S)


def _beat(store: Store, chain_id: str, ordinal: int) -> str:
    """When the session was last heard of; empty before it began."""
    known = store.read_now(lambda found: workers.select_for_chain(found, chain_id))
    return next((one.beat_at for one in known if one.ordinal == ordinal), "")


def _given_up(tx: Tx, chain_id: str, ordinal: int) -> None:
    known = workers.load(tx.connection, chain_id, ordinal)
    if known.status == "running":
        chain = chains.load(tx.connection, chain_id)
        workers.record_crash(tx, chain, ordinal, f"it was silent for {SILENT_S:.0f} s")


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # it went by itself


def _last_words(path: Path) -> str:
    try:
        said = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "they said nothing"
    return said[-_LAST_WORDS:] or "they said nothing"
