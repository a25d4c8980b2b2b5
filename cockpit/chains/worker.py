"""One session of a chain, in the process that is its own: it begins, heeds a stop, and ends in order.

Source: design of work, "Chains"; seed 004, solution 7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cockpit.backlog.work_settings import WorkSettings
from cockpit.chains.batch_loop import WorkerEnd, run_batches
from cockpit.chains.chain_lifecycle import ChainRefused, chain_usage, decide_chain, worker_limits
from cockpit.chains.report.chain_report import collect_before_decay
from cockpit.core.errors import IllegalTransition
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.chains import chains, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.tasks.task_context import TaskContext

HEED_S = 0.5
"""How often a session looks whether it is to stop, in seconds."""


async def run_worker(
    store: Store,
    place: ProjectPaths,
    settings: RuntimeSettings,
    work: WorkSettings,
    chain_id: str,
    ordinal: int,
    *,
    say: Callable[[str], None],
) -> Worker:
    """Be the chain's session ``ordinal`` until it ends; returns its row.

    A chain that drains lets it finish its steps and end; one that stops now has it put down what it
    does. Raises what broke it off, after that was kept as the reason of its crash.
    """
    chain = store.read_now(lambda found: chains.load(found, chain_id))
    if chain.status not in chains.OPEN:
        raise ChainRefused(f"{chain_id} is {chain.status}; `cockpit chain resume` goes on with it.")
    await store.write(
        lambda tx: workers.start(tx, chain, ordinal, token_limit=work.session_token_limit)
    )
    desk = _desk(store, place, settings, work, chain, ordinal)
    used = store.read_now(lambda found: chain_usage(found, chain))
    quota = worker_limits(chain, used, tokens=work.session_token_limit)
    working = asyncio.ensure_future(run_batches(desk, chain, ordinal, quota=quota, say=say))
    heeding = asyncio.create_task(_heed(store, desk, chain_id, working))
    try:
        ended = await _outcome(working)
    except (Exception, asyncio.CancelledError) as error:
        reason = f"it broke off: {error or type(error).__name__}"[:500]
        await store.write(lambda tx: _broke(tx, chain, ordinal, reason))
        raise
    finally:
        heeding.cancel()
    status, reason = ("stopped", "stopped") if ended is None else ("clean", ended.reason)
    return await store.write(lambda tx: _over(tx, chain, ordinal, status, reason))


def _over(tx: Tx, chain: Chain, ordinal: int, status: str, reason: str) -> Worker:
    """The session has ended; so has a chain that comes to rest and that nobody watches over."""
    ended = workers.end(tx, chain, ordinal, status, reason)
    known = chains.load(tx.connection, chain.chain_id)
    if known.status == "draining" and not chains.is_watched(known):
        coming = decide_chain(tx.connection, known, tx.now())
        chains.end(tx, chain.chain_id, coming.status, coming.reason)
    return ended


def _desk(
    store: Store,
    place: ProjectPaths,
    settings: RuntimeSettings,
    work: WorkSettings,
    chain: Chain,
    ordinal: int,
) -> TaskContext:
    return TaskContext(
        store=store,
        place=place,
        settings=settings,
        chain_id=chain.chain_id,
        ordinal=ordinal,
        chain_branch=chain.branch,
        approve=chain.approve,
        model=chain.model or settings.model.model,
        runner=chain.runner,
        work=work,
        before_decay=collect_before_decay(chain.chain_id),
    )


async def _outcome(working: asyncio.Future[WorkerEnd]) -> WorkerEnd | None:
    """What came of it; None when it was stopped within its steps."""
    await asyncio.wait([working])
    return None if working.cancelled() else working.result()


async def _heed(
    store: Store, desk: TaskContext, chain_id: str, working: asyncio.Future[WorkerEnd]
) -> None:
    while True:
        found = store.read_now(lambda seen: chains.load(seen, chain_id))
        if found.status != "running":
            desk.stop.set()
        if found.stop_now:
            working.cancel()
            return
        await store.clock.sleep(HEED_S)


def _broke(tx: Tx, chain: Chain, ordinal: int, reason: str) -> None:
    try:
        workers.record_crash(tx, chain, ordinal, reason)
    except IllegalTransition:
        return  # whoever watches over the chain was sooner to give it up
