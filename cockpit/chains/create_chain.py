"""Create a chain, and resume one that ended.

See ``docs/reference/chains.md``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from cockpit.access.git_folders import locate_git_folders
from cockpit.chains.claim_batch import has_work
from cockpit.chains.decide_next_worker import chain_usage, limit_reached
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES
from cockpit.store.chains import chains, worktrees
from cockpit.store.chains.chains import Chain
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.chains import ChainNoted
from cockpit.store.journal.event_types import Action
from cockpit.tasks.git import WorktreeError, git, try_git
from cockpit.tasks.worktree import branch_prefix, ensure_chain_worktree, head_commit


class ChainRefused(CockpitError):
    """A chain cannot start or resume like this."""

    code = "usage"


class ChainOptions(Struct, frozen=True):
    """What ``cockpit work`` asks a chain to do."""

    scope_kind: str
    """``epic``, ``story`` or ``all``."""
    scope_id: str = ""
    headless: bool = False
    batch: str = "auto"
    """``auto`` or the number of tasks at once."""
    approve: str = "ask"
    """The approval policy of the roles' sessions."""
    model: str | None = None
    runner: str | None = None
    max_chains: int = 10
    """The largest number of workers."""
    max_cost: float | None = None
    """Limit in US dollars."""
    max_wall_s: float | None = None
    """Limit in seconds that workers run."""
    resume_until: str | None = None
    """As of :class:`~cockpit.store.chains.chains.Chain`."""


async def create_chain(
    store: Store,
    place: ProjectPaths,
    options: ChainOptions,
    *,
    within: Callable[[Tx, Chain], None] | None = None,
) -> Chain:
    """Create a chain with its branch and worktree, owned by this process.

    ``within`` runs in the creating transaction; an error of it leaves no chain. Raises
    :class:`ChainRefused` for a scope without tasks, ``NotFound`` for an unknown scope, and
    ``WorktreeError``.
    """
    base_commit = await head_commit(place)
    symbolic = await try_git(place.root, "symbolic-ref", "--quiet", "--short", "HEAD")
    branch = symbolic.text.strip()
    prefix = await branch_prefix(place)
    branches = await git(
        place.home, "for-each-ref", "--format=%(refname:short)", f"refs/heads/{prefix}"
    )
    taken = frozenset(branches.splitlines())

    def insert(tx: Tx) -> Chain:
        fields = {
            **structs.asdict(options),
            "scope_id": _scope_id(tx.connection, options),
            "model": _absolute_model(options.model),
        }
        chain = chains.create(
            tx, **fields, base_branch=branch, base_commit=base_commit, prefix=prefix, taken=taken
        )
        if within is not None:
            within(tx, chain)
        if not has_work(tx.connection, chain, tx.now()):
            raise ChainRefused(_nothing_to_do(tx.connection, chain))
        return chain

    _check_writable(place)
    chain = await store.write(insert)
    try:
        await ensure_chain_worktree(store, place, chain.branch, chain_id=chain.chain_id)
    except (WorktreeError, OSError) as error:
        reason = str(error)
        await store.write(lambda tx: _end_unborn(tx, chain, reason))
        raise
    return chain


def _check_writable(place: ProjectPaths) -> None:
    """Raise ``WorktreeError`` for a repository in which no branch can be made."""
    folders = locate_git_folders(place.home)
    if folders is not None and not os.access(folders.common, os.W_OK):
        raise WorktreeError(
            f"{folders.common} cannot be written, and a chain needs a branch there. Make it writable, or"
            " run the chain in a clone (`git clone`)."
        )


def _end_unborn(tx: Tx, chain: Chain, reason: str) -> None:
    """End a chain whose branch could not be made; its worktree is not there."""
    for worktree in worktrees.select(tx.connection):
        if worktree.task_id is None and worktree.chain_id == chain.chain_id:
            worktrees.set_status(tx, worktree.name, "removed")
    chains.end(tx, chain.chain_id, "failed", f"it could not begin: {reason}"[:500])


def _nothing_to_do(connection: sqlite3.Connection, chain: Chain) -> str:
    """Say why no task of a new chain's scope can start, and what to do."""
    progress = chains.count_progress(connection, chain)
    if not progress.total:
        return (
            f"There is no task in {chain.scope} to do. Add some with `cockpit tasks add` or"
            " `cockpit plan`."
        )
    waiting = progress.total - progress.blocked - progress.under_way
    parts = [
        f"{progress.blocked} blocked (`cockpit tasks move ID unblocked`)"
        if progress.blocked
        else "",
        f"{progress.under_way} in progress elsewhere" if progress.under_way else "",
        f"{waiting} waiting for others (`cockpit tasks queue --why`)" if waiting else "",
    ]
    return f"No task in {chain.scope} can start: {', '.join(filter(None, parts))}."


def resume_chain(tx: Tx, chain_id: str, changes: Mapping[str, Any], *, more_workers: int) -> Chain:
    """Run a chain again that has stopped, owned by this process.

    ``changes`` are new values of fields of :class:`ChainOptions`. A chain that had all of its workers
    gets ``more_workers``. Raises :class:`ChainRefused` where a limit of cost or time would end it at
    once, ``Stale`` while another process runs it, and ``IllegalTransition`` for a complete one.
    """
    chain = chains.acquire(tx, chain_id)
    limits = dict(changes)
    if "model" in limits:
        limits["model"] = _absolute_model(limits["model"])
    used = chain_usage(tx.connection, chain)
    if "max_chains" not in limits and used.workers >= chain.max_chains:
        limits["max_chains"] = used.workers + more_workers
    resumed = chains.resume(tx, chain_id, **limits)
    if reached := limit_reached(resumed, used):
        raise ChainRefused(
            f"{chain_id} has reached {reached}. Raise it with the same option, or start a new chain,"
            " which resumes its tasks."
        )
    return resumed


def _scope_id(connection: sqlite3.Connection, options: ChainOptions) -> str:
    if options.scope_kind == "epic":
        return EPICS.load(connection, options.scope_id).epic_id
    if options.scope_kind == "story":
        return STORIES.load(connection, options.scope_id).story_id
    return ""


def _absolute_model(model: str | None) -> str | None:
    """Return the model's name so that it means the same in any directory."""
    kind, _, path = (model or "").partition(":")
    return f"script:{Path(path).absolute()}" if kind == "script" else model


class ChainRequest(Struct, frozen=True):
    """Who asks for a chain."""

    by: str
    """The principal, as the journal names it."""
    request: str
    """The id of the request, which names one chain."""


def record_request(tx: Tx, chain: Chain, request: ChainRequest) -> None:
    """Journal that ``request`` started the chain.

    Raises :class:`ChainRefused` where the same request did so before.
    """
    earlier = find_requested(tx.connection, request.request)
    if earlier:
        raise ChainRefused(f"This request has started {earlier} already.")
    note = ChainNoted(chain_id=chain.chain_id, what="requested", request=request.request)
    tx.journal(note, actor=request.by)


def find_requested(connection: sqlite3.Connection, request: str) -> str:
    """Return the chain that the request started; empty for none."""
    row = connection.execute(
        "SELECT json_extract(detail_json, '$.chain_id') FROM journal WHERE action=?"
        " AND json_extract(detail_json, '$.request')=?",
        (str(Action.CHAIN_NOTED), request),
    ).fetchone()
    return "" if row is None else str(row[0])
