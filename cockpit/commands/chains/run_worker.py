"""The process of one session of a chain: begun by whoever watches over the chain, never by hand."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import find_project, load_project_settings, open_store
from cockpit.commands.terminal import say
from cockpit.core.errors import IllegalTransition
from cockpit.store.chains import chains

if TYPE_CHECKING:
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.store.chains.workers import Worker
    from cockpit.store.db.database import Store


def be_session(chain_id: str, ordinal: int) -> Exit:
    """Be that session until it ends. A signal lets the chain come to rest, a second one stops it."""
    place = find_project()
    with open_store(place) as store:
        ended = asyncio.run(_run(store, place, chain_id, ordinal))
    return Exit.DONE if ended.status == "clean" else Exit.INTERRUPTED


async def _run(store: Store, place: ProjectPaths, chain_id: str, ordinal: int) -> Worker:
    from cockpit.chains.report.chain_report import write_report_if_set
    from cockpit.chains.worker import run_worker

    chain = store.read_now(lambda found: chains.load(found, chain_id))
    settings = load_project_settings(
        place, {"[approval] policy": chain.approve, "[model] name": chain.model}
    )
    working = asyncio.ensure_future(
        run_worker(store, place, settings.runtime, settings.work, chain_id, ordinal, say=say)
    )
    asked: list[asyncio.Task[None]] = []

    def stop() -> None:
        asked.append(asyncio.create_task(ask_to_stop(store, chain_id, now=bool(asked))))

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stop)  # the command line turns the others into it
    try:
        ended = await working
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        await asyncio.gather(*asked)
    chain = store.read_now(lambda found: chains.load(found, chain_id))
    if chain.status not in chains.OPEN:  # nobody else is there to report it
        await write_report_if_set(store, place, settings.headless.report, chain)
    return ended


async def ask_to_stop(store: Store, chain_id: str, *, now: bool) -> None:
    """Let the chain come to rest, or stop it ``now``; one that has ended by itself is left alone."""
    try:
        await store.write(lambda tx: chains.drain(tx, chain_id, now=now))
    except IllegalTransition:
        return
