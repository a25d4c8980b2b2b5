"""Watching over a chain from a terminal: told as it goes, stopped by Ctrl+C, reported at its end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cockpit.commands.chains.run_worker import ask_to_stop
from cockpit.commands.chains.show_chain import document
from cockpit.commands.chains.work_one_task import say_unseen
from cockpit.commands.exit_codes import Exit
from cockpit.commands.terminal import is_terminal, ring_terminal, say, show, show_json
from cockpit.core.errors import NotFound
from cockpit.core.text import pluralize
from cockpit.store.chains import chains, task_runs
from cockpit.store.journal import journal
from cockpit.store.journal.follow import follow

if TYPE_CHECKING:
    from cockpit.chains.chain_lifecycle import ChainOptions
    from cockpit.chains.progress_lines import ProgressLines
    from cockpit.config.load_settings import Settings
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.store.chains.chains import Chain
    from cockpit.store.db.database import Store

_CODES = {
    "completed": Exit.DONE,
    "limited": Exit.DONE,
    "failed": Exit.FAILED,
    "stopped": Exit.INTERRUPTED,
}


async def start_and_watch(
    store: Store, place: ProjectPaths, settings: Settings, order: ChainOptions, as_json: bool
) -> Exit:
    """Begin a chain and see it through; returns the exit code."""
    from cockpit.chains.chain_lifecycle import create_chain

    await say_unseen(place, "tasks do")
    await _say_untaken(store, place)
    after = await store.read(journal.last_seq)
    chain = await create_chain(store, place, order)
    return await see_through(store, place, settings, chain, after, as_json)


async def _say_untaken(store: Store, place: ProjectPaths) -> None:
    """Say what earlier chains made and the new one does not begin with."""
    from cockpit.tasks.worktree import unmerged_branches

    branches = await unmerged_branches(store, place)
    if branches:
        say(
            f"Not in your branch yet: {', '.join(branches)}. What is done now does not begin with that, "
            f"but for tasks that depend on it; take it first with: git merge {' '.join(branches)}"
        )


async def resume_and_watch(
    store: Store,
    place: ProjectPaths,
    settings: Settings,
    chain_id: str | None,
    replaced: Mapping[str, Any],
    as_json: bool,
) -> Exit:
    """Go on with a chain (None: the newest that is not complete); ``replaced`` are fields of its order
    with what they are from now on."""
    from cockpit.chains.chain_lifecycle import resume_chain
    from cockpit.tasks.worktree import ensure_chain_worktree

    if chain_id is None:
        found = store.read_now(chains.find_unfinished)
        if found is None:
            raise NotFound("There is no unfinished chain; begin one with `cockpit work`.")
        chain_id = found.chain_id
    named, after = chain_id, await store.read(journal.last_seq)
    more = settings.headless.max_chains
    resting = store.read_now(lambda found: chains.load(found, named))
    if resting.status != "completed":
        # Where it cannot stand, as while a person has its branch checked out, every task would be blocked.
        await ensure_chain_worktree(store, place, resting.branch, chain_id=named)
    chain = await store.write(lambda tx: resume_chain(tx, named, replaced, sessions=more))
    return await see_through(store, place, settings, chain, after, as_json)


async def see_through(
    store: Store, place: ProjectPaths, settings: Settings, chain: Chain, after: int, as_json: bool
) -> Exit:
    """Watch over the chain until it has ended, and tell what happened from row ``after`` on."""
    from cockpit.chains.report.chain_report import write_report_if_set
    from cockpit.chains.supervisor import Supervision, supervise

    chain_id = chain.chain_id
    teller = Teller(store, place, settings, chain_id, after, quiet=as_json)
    report = partial(write_report_if_set, store, place, settings.headless.report)
    watch = Supervision(store, place, os.environ, before_end=report)
    watching = asyncio.ensure_future(supervise(watch, chain_id))
    telling = asyncio.create_task(teller.follow())
    asked: list[asyncio.Task[None]] = []

    def stop() -> None:
        asked.append(asyncio.create_task(ask_to_stop(store, chain_id, now=bool(asked))))
        if len(asked) == 1:
            say("It comes to rest; Ctrl+C again stops it now. Nothing is lost either way.")

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stop)  # the command line turns the others into it
    try:
        await asyncio.wait({watching, telling}, return_when=asyncio.FIRST_COMPLETED)
        if telling.done():  # whoever read it went away
            await ask_to_stop(store, chain_id, now=False)
        ended = await watching
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        telling.cancel()
        (unread,) = await asyncio.gather(telling, return_exceptions=True)
        await asyncio.gather(*asked)
    if isinstance(unread, Exception):
        raise unread
    await teller.rest()
    await teller.call(f"{chain_id} is {ended.status}", ended.reason or ended.scope)
    _conclude(store, ended, as_json)
    return _CODES[ended.status]


def _conclude(store: Store, ended: Chain, as_json: bool) -> None:
    if as_json:
        show_json(store.read_now(lambda found: document(found, chains.load(found, ended.chain_id))))
        return
    known = store.read_now(lambda found: chains.count_progress(found, ended))
    if store.read_now(lambda found: task_runs.has_merged(found, ended.chain_id)):
        show(f"Take what is done with: git merge {ended.branch}")
    if known.blocked:
        show(f"{pluralize(known.blocked, 'task')} blocked: `cockpit tasks list --status blocked`.")
    waiting = known.total - known.done - known.blocked - known.under_way - known.ready
    if waiting:
        show(f"{pluralize(waiting, 'task')} waiting for others: `cockpit tasks queue --why`.")
    if ended.status != "completed":
        show(f"Go on with: cockpit chain resume {ended.chain_id}")


class Teller:
    """Tells a chain as it goes, and calls a person when one is waited for."""

    def __init__(
        self,
        store: Store,
        place: ProjectPaths,
        settings: Settings,
        chain_id: str,
        after: int,
        *,
        quiet: bool = False,
    ) -> None:
        from cockpit.chains.progress_lines import ProgressLines, running_roles

        self._store = store
        self._place = place
        self._settings = settings
        self._chain_id = chain_id
        self._seq = after
        self._quiet = quiet
        roles = store.read_now(lambda found: running_roles(found, chain_id))
        self._story: ProgressLines = ProgressLines(chain_id, roles)

    async def follow(self) -> None:
        """Tell what comes, until it is cancelled. Raises ``ReaderGone``."""
        async for rows in follow(self._store, after=self._seq):
            await self._tell(rows)

    async def rest(self) -> None:
        """Tell what was written and not told yet."""
        async for rows in self._unread():
            await self._tell(rows)

    async def until_ended(self) -> None:
        """Tell what comes until the chain has ended."""
        async for rows in follow(self._store, after=self._seq):
            await self._tell(rows)
            chain = self._store.read_now(lambda found: chains.load(found, self._chain_id))
            if chain.status not in chains.OPEN:
                return

    async def call(self, title: str, words: str, *, urgent: bool = False) -> None:
        """Call the person, in the way that is set."""
        from cockpit.chains.notify import Notice, notify

        await notify(
            Notice(title, words, urgent=urgent),
            self._settings.headless.notify,
            terminal=ring_terminal if is_terminal(sys.stderr) else None,
            environment=os.environ,
            cwd=self._place.root,
        )

    async def _unread(self) -> AsyncIterator[Sequence[journal.Row]]:
        while rows := await self._store.read(lambda found: journal.rows(found, after=self._seq)):
            yield rows

    async def _tell(self, rows: Sequence[journal.Row]) -> None:
        for row in rows:
            if row.seq <= self._seq:
                continue
            self._seq = row.seq
            told = self._story.tell(row)
            if told is None:
                continue
            if not self._quiet:
                show(told.line)
            elif is_terminal(sys.stderr):
                say(told.line)
            if told.calls:
                await self.call(f"{self._chain_id} waits for you", told.line.strip(), urgent=True)
