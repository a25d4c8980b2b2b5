"""Starting a chain when an external agent's session ends (``[headless] on_session_end``).

The decision is made in the transaction that starts the chain, so that of two sessions ending at once
only one starts it. See ``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3

from msgspec.structs import replace

from cockpit.chains.claim_batch import has_work, scope_of
from cockpit.chains.create_chain import ChainOptions, create_chain, resume_chain
from cockpit.chains.decide_next_worker import chain_usage, limit_reached
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.text import pluralize
from cockpit.store.backlog.queue_scope import count_ready
from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.agents import AgentHook
from cockpit.store.journal.details.chains import ChainNoted
from cockpit.store.journal.details.detail import decode_detail
from cockpit.store.journal.event_types import Action


class NoChainStarted(CockpitError):
    """No chain starts after the session; the message says why."""

    code = "not_followed"


async def start_after_session(
    store: Store, place: ProjectPaths, options: ChainOptions, seq: int, *, create: bool
) -> Chain:
    """Start the chain that follows the session whose end is journal row ``seq``, owned by this process.

    That is the newest unfinished chain, else with ``create`` a new one from ``options``. Raises
    :class:`NoChainStarted`, :class:`NotFound` where that row is not a session's end, and the errors of
    :func:`~cockpit.chains.create_chain.create_chain`.
    """
    ended = store.read_now(lambda connection: _load_ended_session(connection, seq))
    resumed = await store.write(lambda tx: _resume_unfinished(tx, ended, create))
    if resumed is not None:
        return resumed
    return await create_chain(
        store, place, options, within=lambda tx, chain: _check_new_chain(tx, chain, ended)
    )


def session_before(connection: sqlite3.Connection, chain: Chain) -> ChainNoted | None:
    """Return the session that the chain was started or resumed after; None where the user did that."""
    row = connection.execute(
        "SELECT action, detail_json FROM journal WHERE seq=(SELECT max(seq) FROM journal"
        " WHERE action IN ('chain.noted','chain.changed')"
        " AND json_extract(detail_json, '$.what') IN ('created','resumed','followed')"
        " AND json_extract(detail_json, '$.chain_id')=?)",
        (chain.chain_id,),
    ).fetchone()
    if row is None or row[0] != Action.CHAIN_NOTED:
        return None
    return decode_detail(ChainNoted, row[1])


def _load_ended_session(connection: sqlite3.Connection, seq: int) -> ChainNoted:
    """Return what a chain that follows the session is journalled with, but for the chain."""
    row = connection.execute(
        "SELECT detail_json FROM journal WHERE seq=? AND action=?",
        (seq, str(Action.AGENT_HOOK)),
    ).fetchone()
    ended = None if row is None else decode_detail(AgentHook, row[0])
    if ended is None or ended.event != "SessionEnd":
        raise NotFound(f"Journal row {seq} is not the end of an agent's session.")
    return ChainNoted(
        chain_id="",
        what="followed",
        after=seq,
        agent=ended.agent,
        agent_session=ended.agent_session,
        reason=ended.reason,
    )


def _resume_unfinished(tx: Tx, ended: ChainNoted, create: bool) -> Chain | None:
    """Resume the newest unfinished chain; return None where a new one is to be created."""
    connection = tx.connection
    _refuse_while_running(connection)
    unfinished = chains.find_unfinished(connection)
    if unfinished is not None:
        obstacle = _obstacle(connection, unfinished)
        if not obstacle and has_work(connection, unfinished, tx.now()):
            resumed = resume_chain(tx, unfinished.chain_id, {}, more_workers=0)
            _journal_followed(tx, resumed, ended)
            return resumed
        (newest,) = chains.select(connection, 1)
        if obstacle and (newest == unfinished or not create):
            raise NoChainStarted(f"{unfinished.chain_id} {obstacle}")
    if not create:
        raise NoChainStarted("no unfinished chain has a task that is ready")
    return None


def _check_new_chain(tx: Tx, chain: Chain, ended: ChainNoted) -> None:
    """Refuse a new chain while another one runs, and one without a ready task."""
    _refuse_while_running(tx.connection, but=chain.chain_id)
    if not count_ready(tx.connection, scope_of(chain)):
        raise NoChainStarted("no task is ready")
    _journal_followed(tx, chain, ended)


def _refuse_while_running(connection: sqlite3.Connection, but: str = "") -> None:
    for chain in chains.select(connection):
        if chain.chain_id != but and chain.status in chains.OPEN and chains.is_watched(chain):
            raise NoChainStarted(f"{chain.chain_id} is running already")


def _obstacle(connection: sqlite3.Connection, chain: Chain) -> str:
    """Return why only the user may resume the chain; empty where cockpit may."""
    if chain.status in ("stopped", "draining"):
        return "was stopped"
    used = chain_usage(connection, chain)
    if used.workers >= chain.max_chains:
        return f"had all of its {pluralize(chain.max_chains, 'worker')}"
    reached = limit_reached(chain, used)
    return f"has reached {reached}" if reached else ""


def _journal_followed(tx: Tx, chain: Chain, ended: ChainNoted) -> None:
    followed = replace(ended, chain_id=chain.chain_id)
    tx.journal(followed, actor="policy:on_session_end")
