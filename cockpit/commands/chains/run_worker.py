"""Run one worker of a chain in this process. The supervisor of the chain starts it, never a user."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import find_project, load_project_settings, open_store
from cockpit.commands.terminal import say
from cockpit.core.errors import IllegalTransition
from cockpit.core.processes import stop_on_interrupt
from cockpit.store.chains import chains

if TYPE_CHECKING:
    from cockpit.config.load_settings import Settings
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.store.chains.workers import Worker
    from cockpit.store.db.database import Store


def run_worker(chain_id: str, ordinal: int) -> Exit:
    """Run worker ``ordinal`` of the chain to its end; return the exit code.

    The first signal stops the chain after its steps in progress, the second one at once.
    """
    place = find_project()
    with open_store(place) as store:
        worker = asyncio.run(_run(store, place, chain_id, ordinal))
    return Exit.DONE if worker.status == "clean" else Exit.INTERRUPTED


async def _run(store: Store, place: ProjectPaths, chain_id: str, ordinal: int) -> Worker:
    from cockpit.loop.views.copy_journal import recorded

    chain = store.read_now(lambda connection: chains.load(connection, chain_id))
    settings = load_project_settings(
        place, {"[approval] policy": chain.approve, "[model] name": chain.model}
    )
    async with recorded(store, settings.runtime):
        return await _run_logged(store, place, settings, chain_id, ordinal)


async def _run_logged(
    store: Store, place: ProjectPaths, settings: Settings, chain_id: str, ordinal: int
) -> Worker:
    from cockpit.chains import worker as chain_worker
    from cockpit.chains.report.chain_report import write_report_if_set

    async with draining(store, chain_id):
        worker = await chain_worker.run_worker(
            store,
            place,
            settings.runtime,
            settings.work,
            chain_id,
            ordinal,
            say=say,
            scale=settings.scale,
        )
    chain = store.read_now(lambda connection: chains.load(connection, chain_id))
    if chain.status not in chains.OPEN:  # the supervisor is gone, so this process writes the report
        await write_report_if_set(store, place, settings.headless.report, chain)
    return worker


@asynccontextmanager
async def draining(store: Store, chain_id: str, notice: str = "") -> AsyncIterator[None]:
    """Stop the chain on an interrupt: after its steps in progress, saying ``notice``; at once on a second."""
    requests: list[asyncio.Task[None]] = []

    def stop() -> None:
        requests.append(asyncio.create_task(request_stop(store, chain_id, now=bool(requests))))
        if notice and len(requests) == 1:
            say(notice)

    loop = asyncio.get_running_loop()
    stop_on_interrupt(loop, stop)  # the command line turns SIGTERM into SIGINT
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        await asyncio.gather(*requests)


async def request_stop(store: Store, chain_id: str, *, now: bool) -> None:
    """Ask the chain to stop after its steps in progress, or at once; ignore a chain that has ended."""
    try:
        await store.write(lambda tx: chains.drain(tx, chain_id, now=now))
    except IllegalTransition:
        return
