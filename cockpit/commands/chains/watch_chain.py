"""Start or resume a chain from the command line, supervise it, print its events and its end."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cockpit.chains.report.chain_document import chain_document
from cockpit.commands.chains.run_worker import draining, request_stop
from cockpit.commands.chains.work_on_task import say_uncommitted
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import open_store
from cockpit.commands.terminal import is_terminal, output_width, ring_terminal, say, show, show_json
from cockpit.commands.unconfined import (
    record_unconfined,
    require_reading_sandbox,
    settle_unconfined,
)
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.text import pluralize
from cockpit.loop.views.quoted_text import cut_columns
from cockpit.store.chains import chains, task_runs
from cockpit.store.journal import journal
from cockpit.store.journal.follow import follow

if TYPE_CHECKING:
    from cockpit.chains.create_chain import ChainOptions, ChainRequest
    from cockpit.chains.progress_lines import ProgressLines
    from cockpit.config.load_settings import Settings
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.store.chains.chains import Chain
    from cockpit.store.db.database import Store

_CODES = {
    "completed": Exit.DONE,
    "limited": Exit.WAITING,
    "failed": Exit.FAILED,
    "stopped": Exit.INTERRUPTED,
}


async def start_and_watch(
    store: Store,
    place: ProjectPaths,
    settings: Settings,
    order: ChainOptions,
    as_json: bool,
    request: ChainRequest | None = None,
) -> Exit:
    """Start a chain and supervise it to its end; return the exit code.

    ``request`` is that of the program that asked for it."""
    from cockpit.chains.create_chain import create_chain, record_request

    await say_uncommitted(place, "Tasks do")
    await _say_unmerged(store, place)
    after = await store.read(journal.last_seq)
    unconfined = await settle_unconfined(settings, order.runner)
    record = None if request is None else partial(record_request, request=request)
    chain = await create_chain(store, place, order, within=record)
    await record_unconfined(store, chain, unconfined)
    return await supervise_and_print(store, place, settings, chain, after, as_json)


def read_request(principal: str | None, request: str | None) -> ChainRequest | None:
    """Return the request of a program for a chain, as its server names it; None for the user's own."""
    from cockpit.access.principals import check_namespace
    from cockpit.chains.create_chain import ChainRequest

    if not principal or not request:
        return None
    return ChainRequest(check_namespace(principal), request)


async def _say_unmerged(store: Store, place: ProjectPaths) -> None:
    """Name the branches of earlier chains that the new chain does not start from."""
    from cockpit.tasks.worktree import unmerged_branches

    branches = await unmerged_branches(store, place)
    if branches:
        say(
            f"Not merged into your branch yet: {', '.join(branches)}. Only tasks that depend on this work"
            f" will start from it. To include it for all tasks, run: git merge {' '.join(branches)}"
        )


async def resume_and_watch(
    store: Store,
    place: ProjectPaths,
    settings: Settings,
    chain_id: str | None,
    replaced: Mapping[str, Any],
    as_json: bool,
    *,
    no_sandbox: bool = False,
) -> Exit:
    """Resume a chain (None: the newest unfinished one) and supervise it; return the exit code.

    ``replaced`` maps fields of the chain's order to their new values; ``no_sandbox`` resumes it also where
    nothing confines what its policy lets run.
    """
    from cockpit.chains.create_chain import resume_chain
    from cockpit.decide.choose_model import model_named
    from cockpit.decide.known_prices import TOKENS_OF_CHAIN, require_price
    from cockpit.tasks.worktree import ensure_chain_worktree

    if chain_id is None:
        newest = store.read_now(chains.find_unfinished)
        if newest is None:
            raise NotFound("No chain is unfinished. Start one with `cockpit work`.")
        chain_id = newest.chain_id
    named, after = chain_id, await store.read(journal.last_seq)
    more = settings.headless.max_chains
    stored = store.read_now(lambda connection: chains.load(connection, named))
    order = {
        "model": stored.model,
        "runner": stored.runner,
        "max_cost": stored.max_cost,
        "approve": stored.approve,
        **replaced,
    }
    if not no_sandbox:
        await require_reading_sandbox(settings, order["approve"])
    if order["max_cost"] is not None and order["runner"] is None:
        named_model = model_named(order["model"], settings.runtime.model, os.environ)
        prices = settings.runtime.model.prices
        await asyncio.to_thread(require_price, named_model, prices, otherwise=TOKENS_OF_CHAIN)
    if stored.status != "completed":
        # Without its worktree, as while the user has its branch checked out, every task would block.
        await ensure_chain_worktree(store, place, stored.branch, chain_id=named)
    unconfined = await settle_unconfined(settings, order["runner"])

    chain = await store.write(lambda tx: resume_chain(tx, named, replaced, more_workers=more))
    await record_unconfined(store, chain, unconfined)
    return await supervise_and_print(store, place, settings, chain, after, as_json)


def follow_and_watch(
    place: ProjectPaths, settings: Settings, order: ChainOptions, seq: int, *, start_new: bool
) -> Exit:
    """Supervise a chain that follows an external agent's session; return the exit code.

    ``seq`` is the journal row of the session's end. The newest unfinished chain is resumed, or with
    ``start_new`` a new one starts where there is none. Without a chain the reason also goes to the log
    of the hooks, because this process has no terminal. Specified in ``docs/reference/chains.md``.
    """
    from cockpit.hook import hook_log

    try:
        with open_store(place) as store:
            return asyncio.run(_follow_session(store, place, settings, order, seq, start_new))
    except CockpitError as error:
        hook_log.append_line(str(place.state), f"no chain after the session's end: {error}")
        raise


async def _follow_session(
    store: Store,
    place: ProjectPaths,
    settings: Settings,
    order: ChainOptions,
    seq: int,
    start_new: bool,
) -> Exit:
    from cockpit.chains.start_after_agent import start_after_session

    last = await store.read(journal.last_seq)
    unfinished = await store.read(chains.find_unfinished)
    if unfinished is not None:  # a new one has the policy of the settings
        await require_reading_sandbox(settings, unfinished.approve)
    unconfined = await settle_unconfined(settings, order.runner)
    chain = await start_after_session(store, place, order, seq, create=start_new)
    await record_unconfined(store, chain, unconfined)
    return await supervise_and_print(store, place, settings, chain, last, as_json=False)


async def supervise_and_print(
    store: Store, place: ProjectPaths, settings: Settings, chain: Chain, after: int, as_json: bool
) -> Exit:
    """Supervise the chain to its end and print its events after journal row ``after``."""
    from cockpit.loop.views.copy_journal import recorded

    async with recorded(store, settings.runtime, after=after):
        return await _supervise_and_print(store, place, settings, chain, after, as_json)


async def _supervise_and_print(
    store: Store, place: ProjectPaths, settings: Settings, chain: Chain, after: int, as_json: bool
) -> Exit:
    from cockpit.chains.progress_lines import describe_status
    from cockpit.chains.report.chain_report import write_report_if_set
    from cockpit.chains.supervisor import Supervision, supervise
    from cockpit.tasks.outage import is_passing

    chain_id = chain.chain_id
    printer = ChainPrinter(store, settings, chain_id, after, quiet=as_json)
    report = partial(write_report_if_set, store, place, settings.headless.report)
    supervision = Supervision(store, place, os.environ, before_end=report)
    supervising = asyncio.ensure_future(supervise(supervision, chain_id))
    printing = asyncio.create_task(printer.follow())
    notice = "Stopping after the steps in progress. Press Ctrl+C again to stop now."
    try:
        async with draining(store, chain_id, notice):
            await asyncio.wait({supervising, printing}, return_when=asyncio.FIRST_COMPLETED)
            if printing.done():  # the reader of stdout is gone
                await request_stop(store, chain_id, now=False)
            ended = await supervising
    finally:
        printing.cancel()
        (failure,) = await asyncio.gather(printing, return_exceptions=True)
    if isinstance(failure, Exception):
        raise failure
    await printer.print_rest()
    status = describe_status(ended.status, ended.reason)
    await printer.notify(f"{chain_id} {status}", ended.reason or ended.scope)
    _print_end(store, ended, as_json)
    if is_passing(ended.reason):
        return Exit.WAITING
    if ended.status == "completed" and ended.reason:  # it left tasks
        left = store.read_now(lambda connection: chains.count_progress(connection, ended))
        return Exit.FAILED if left.blocked else Exit.WAITING
    return _CODES[ended.status]


def _print_end(store: Store, ended: Chain, as_json: bool) -> None:
    if as_json:
        show_json(
            store.read_now(
                lambda connection: chain_document(
                    connection, chains.load(connection, ended.chain_id)
                )
            )
        )
        return
    progress = store.read_now(lambda connection: chains.count_progress(connection, ended))
    if store.read_now(lambda connection: task_runs.has_merged(connection, ended.chain_id)):
        show(f"Look at the finished tasks with: cockpit chain diff {ended.chain_id}")
        show(f"Merge them with: cockpit chain take {ended.chain_id}, or git merge {ended.branch}")
    if progress.blocked:
        count = pluralize(progress.blocked, "task")
        show(f"{count} blocked. List with: cockpit tasks --status blocked")
    waiting = (
        progress.total - progress.done - progress.blocked - progress.under_way - progress.ready
    )
    if waiting:
        show(
            f"{pluralize(waiting, 'task')} waiting for other tasks. See: cockpit tasks queue --why"
        )
    if ended.status != "completed":
        show(f"Resume with: cockpit work --continue {ended.chain_id}")


class ChainPrinter:
    """Prints the events of a chain as they happen, and notifies the user when it waits for them.

    ``after`` is the sequence number of the last row that is not printed; ``quiet`` prints on stderr,
    and only on a terminal.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        chain_id: str,
        after: int,
        *,
        quiet: bool = False,
    ) -> None:
        from cockpit.chains.progress_lines import ProgressLines, running_roles

        self._store = store
        self._settings = settings
        self._chain_id = chain_id
        self._seq = after
        self._quiet = quiet
        roles = store.read_now(lambda connection: running_roles(connection, chain_id))
        self._story: ProgressLines = ProgressLines(chain_id, roles)

    async def follow(self) -> None:
        """Print new rows until cancelled. Raises ``ReaderGone``."""
        async for rows in follow(self._store, after=self._seq):
            await self._print(rows)

    async def print_rest(self) -> None:
        """Print the rows that are written and not printed yet."""
        async for rows in self._unread():
            await self._print(rows)

    async def follow_to_end(self) -> None:
        """Print new rows until the chain has ended."""
        async for rows in follow(self._store, after=self._seq):
            await self._print(rows)
            chain = self._store.read_now(lambda connection: chains.load(connection, self._chain_id))
            if chain.status not in chains.OPEN:
                return

    async def notify(self, title: str, text: str, *, urgent: bool = False) -> None:
        """Notify the user, unless their settings say otherwise."""
        if self._settings.headless.notify == "none":
            return
        from cockpit.access.notices import Notice, Notifier, NotifySettings, has_desktop

        ring = ring_terminal if is_terminal(sys.stderr) else None
        notifier = Notifier(NotifySettings(desktop=has_desktop(os.environ)), ring=ring)
        await notifier.send(Notice(text, title, urgent=urgent))

    async def _unread(self) -> AsyncIterator[Sequence[journal.Row]]:
        while rows := await self._store.read(
            lambda connection: journal.rows(connection, after=self._seq)
        ):
            yield rows

    async def _print(self, rows: Sequence[journal.Row]) -> None:
        for row in rows:
            if row.seq <= self._seq:
                continue
            self._seq = row.seq
            line = self._story.line_for(row)
            if line is None:
                continue
            if not self._quiet:
                show(_hang(line.line, output_width()))
            elif is_terminal(sys.stderr):
                say(_hang(line.line, output_width(sys.stderr)))
            if line.needs_user:
                await self.notify(f"{self._chain_id} waits for you", line.line.strip(), urgent=True)


def _hang(line: str, width: int) -> str:
    """Return the line cut to a terminal's columns, so that none of it begins where another line would."""
    return "\n        ┆ ".join(cut_columns(line, width - 12)) if width > 40 else line
