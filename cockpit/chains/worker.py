"""A worker in its own process: it starts, runs its batches, obeys a stop, and ends cleanly.

See ``docs/reference/chains.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cockpit.backlog.work_settings import WorkSettings
from cockpit.chains.batch_loop import run_batches
from cockpit.chains.create_chain import ChainRefused
from cockpit.chains.decide_next_worker import chain_usage, decide_chain, worker_limits
from cockpit.chains.dispatcher import open_dispatcher
from cockpit.chains.remote.scale_settings import ScaleSettings
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

STOP_POLL_S = 0.5
"""Seconds between two looks whether the worker has to stop."""


async def run_worker(
    store: Store,
    place: ProjectPaths,
    settings: RuntimeSettings,
    work: WorkSettings,
    chain_id: str,
    ordinal: int,
    *,
    say: Callable[[str], None],
    scale: ScaleSettings | None = None,
) -> Worker:
    """Run as the chain's worker ``ordinal`` until it ends; return its row.

    When the chain drains, the worker finishes its steps and ends; when the chain stops now, it leaves
    its tasks in progress. ``scale`` says whether other machines do the tasks. Any error is stored as the
    reason of the worker's crash and raised.
    """
    chain = store.read_now(lambda connection: chains.load(connection, chain_id))
    if chain.status not in chains.OPEN:
        raise ChainRefused(
            f"{chain_id} is {chain.status}. Resume it with `cockpit work --continue`."
        )
    await store.write(
        lambda tx: workers.start(tx, chain, ordinal, token_limit=work.session_token_limit)
    )
    context = TaskContext(
        store=store,
        place=place,
        settings=settings,
        chain_id=chain_id,
        ordinal=ordinal,
        chain_branch=chain.branch,
        approve=chain.approve,
        model=chain.model or settings.model.model,
        runner=chain.runner,
        work=work,
        before_decay=collect_before_decay(chain_id),
    )
    used = store.read_now(lambda connection: chain_usage(connection, chain))
    limits = worker_limits(chain, used, tokens=work.session_token_limit)

    async def run() -> str:
        async with open_dispatcher(scale or ScaleSettings(), context, chain, say) as dispatcher:
            return await run_batches(
                context, chain, ordinal, limits=limits, say=say, dispatcher=dispatcher
            )

    batches = asyncio.ensure_future(run())
    stop_watch = asyncio.create_task(_watch_for_stop(store, context, chain_id, batches))
    try:
        await asyncio.wait([batches])
        ended = ("stopped", "stopped") if batches.cancelled() else ("clean", batches.result())
    except (Exception, asyncio.CancelledError) as error:
        reason = f"it broke off: {error or type(error).__name__}"[:500]
        await store.write(lambda tx: _record_crash(tx, chain, ordinal, reason))
        raise
    finally:
        stop_watch.cancel()
    return await store.write(lambda tx: _record_end(tx, chain, ordinal, *ended))


def _record_end(tx: Tx, chain: Chain, ordinal: int, status: str, reason: str) -> Worker:
    """End the worker, and a draining chain that has no supervisor."""
    worker = workers.end(tx, chain, ordinal, status, reason)
    chain_now = chains.load(tx.connection, chain.chain_id)
    if chain_now.status == "draining" and not chains.is_watched(chain_now):
        decision = decide_chain(tx.connection, chain_now, tx.now())
        chains.end(tx, chain.chain_id, decision.status, decision.reason)
    return worker


async def _watch_for_stop(
    store: Store, context: TaskContext, chain_id: str, batches: asyncio.Future[str]
) -> None:
    while True:
        chain = store.read_now(lambda connection: chains.load(connection, chain_id))
        if chain.status != "running":
            context.stop.set()
        if chain.stop_now:
            batches.cancel()
            return
        await store.clock.sleep(STOP_POLL_S)


def _record_crash(tx: Tx, chain: Chain, ordinal: int, reason: str) -> None:
    try:
        workers.record_crash(tx, chain, ordinal, reason)
    except IllegalTransition:
        return  # the supervisor has declared it dead already
