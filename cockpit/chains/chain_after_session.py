"""A chain that follows the end of an agent's session: whether, which one, and why it is there.

Decided in the transaction that begins it, so that of two sessions that end at once only one is followed.
Source: seed 004, solution 7 ("Session Exit Hook").
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from cockpit.chains.chain_lifecycle import (
    ChainOptions,
    chain_usage,
    create_chain,
    limit_reached,
    resume_chain,
)
from cockpit.chains.unfinished import has_work, scope_of
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.text import pluralize
from cockpit.store.backlog.queue_scope import count_ready
from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action


class NoChainStarted(CockpitError):
    """Nothing follows the session; the words say why."""

    code = "not_followed"


@dataclass(frozen=True, slots=True)
class EndedSession:
    """An agent's session that has ended: row ``seq`` of the journal, the agent's name for it, and its
    reason."""

    seq: int
    agent: str
    session: str
    reason: str


async def start_after_session(
    store: Store, place: ProjectPaths, order: ChainOptions, seq: int, *, anew: bool
) -> Chain:
    """The chain that follows the session whose end is row ``seq``, owned by this process: the newest
    unfinished one, else where ``anew`` a new one as ``order`` says.

    Raises :class:`NoChainStarted` where none does, :class:`NotFound` where that row tells of no end, and
    what :func:`~cockpit.chains.chain_lifecycle.create_chain` raises.
    """
    ended = store.read_now(lambda seen: _ended(seen, seq))
    found = await store.write(lambda tx: _gone_on_with(tx, ended, anew))
    if found is not None:
        return found
    return await create_chain(store, place, order, within=lambda tx, made: _alone(tx, made, ended))


def session_before(connection: sqlite3.Connection, chain: Chain) -> EndedSession | None:
    """The session that the chain was begun or gone on with after; None where a person did that."""
    row = connection.execute(
        "SELECT action, detail_json FROM journal WHERE seq=(SELECT max(seq) FROM journal"
        " WHERE action IN ('chain.created','chain.resumed','chain.followed')"
        " AND json_extract(detail_json, '$.chain_id')=?)",
        (chain.chain_id,),
    ).fetchone()
    if row is None or row[0] != Action.CHAIN_FOLLOWED:
        return None
    told = json.loads(row[1])
    return EndedSession(told["after"], told["agent"], told["agent_session"], told["reason"])


def _ended(connection: sqlite3.Connection, seq: int) -> EndedSession:
    row = connection.execute(
        "SELECT detail_json FROM journal WHERE seq=? AND action=?",
        (seq, str(Action.AGENT_SESSION_ENDED)),
    ).fetchone()
    if row is None:
        raise NotFound(f"Row {seq} of the journal does not tell that an agent's session ended.")
    told = json.loads(row[0])
    return EndedSession(seq, told["agent"], told["agent_session"], told["reason"])


def _gone_on_with(tx: Tx, ended: EndedSession, anew: bool) -> Chain | None:
    """The chain that rests and goes on now; None where a new one is to begin."""
    seen = tx.connection
    _nobody_works(seen)
    resting = chains.find_unfinished(seen)
    if resting is not None:
        held_back = _held_back(seen, resting)
        if not held_back and has_work(seen, resting, tx.now()):
            made = resume_chain(tx, resting.chain_id, {}, sessions=0)
            _tell(tx, made, ended)
            return made
        (newest,) = chains.select(seen, 1)
        if held_back and (newest == resting or not anew):
            raise NoChainStarted(f"{resting.chain_id} {held_back}")
    if not anew:
        raise NoChainStarted("no unfinished chain has a task that is ready")
    return None


def _alone(tx: Tx, made: Chain, ended: EndedSession) -> None:
    """The new chain is the only one that runs, and finds something to do; else there is none."""
    _nobody_works(tx.connection, but=made.chain_id)
    if not count_ready(tx.connection, scope_of(made)):
        raise NoChainStarted("no task is ready")
    _tell(tx, made, ended)


def _nobody_works(connection: sqlite3.Connection, but: str = "") -> None:
    for one in chains.select(connection):
        if one.chain_id != but and one.status in chains.OPEN and chains.is_watched(one):
            raise NoChainStarted(f"{one.chain_id} runs already")


def _held_back(connection: sqlite3.Connection, chain: Chain) -> str:
    """Why only a person goes on with the chain; empty where nothing speaks against it."""
    if chain.status in ("stopped", "draining"):
        return "was stopped"
    used = chain_usage(connection, chain)
    if used.sessions >= chain.max_chains:
        return f"had all of its {pluralize(chain.max_chains, 'session')}"
    reached = limit_reached(chain, used)
    return f"has reached {reached}" if reached else ""


def _tell(tx: Tx, chain: Chain, ended: EndedSession) -> None:
    tx.journal(
        Action.CHAIN_FOLLOWED,
        actor="policy:on_session_end",
        detail={
            "chain_id": chain.chain_id,
            "after": ended.seq,
            "agent": ended.agent,
            "agent_session": ended.session,
            "reason": ended.reason,
        },
    )
