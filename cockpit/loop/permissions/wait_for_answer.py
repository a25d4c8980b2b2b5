"""Propose what an external agent asks for and wait until it is decided, taken back, or its run ends.

See ``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cockpit.core.clock import format_time
from cockpit.core.errors import StoreError
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.permissions.waiting_permission import load_newest
from cockpit.loop.permissions.withdrawal import STOPPED, Ending, Withdrawal, ending_of
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionWaiting
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session


async def wait_for_answer(
    store: Store,
    change_waiter: ChangeWaiter,
    withdrawn: Withdrawal,
    *,
    propose: Callable[[Tx], bool],
    read_decided: Callable[[], Proposal | None],
    withdraw: Callable[[Tx, Ending], None],
) -> bool:
    """Store a proposal with ``propose``, and wait until ``read_decided`` has its decision.

    ``withdrawn`` closes it by ``withdraw``, as cancelling this call does. False where ``propose`` refused.
    """
    waiting: list[asyncio.Task[object]] = []
    try:
        if not await store.write(propose):
            return False
        decided = asyncio.create_task(change_waiter.wait_for(read_decided))
        taken_back = asyncio.create_task(withdrawn.wait())
        waiting += [decided, taken_back]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if decided.done():
            decided.result()
        else:
            ending = taken_back.result()
            await store.write(lambda tx: withdraw(tx, ending))
    except BaseException as error:  # cancelled, or the store failed: nothing will use an answer
        ending = ending_of(error) if isinstance(error, asyncio.CancelledError) else STOPPED
        why = withdrawn.ending or ending
        try:
            await asyncio.shield(store.write(lambda tx: withdraw(tx, why)))
        except StoreError:
            pass  # it is closed or locked: the proposal is withdrawn as one whose process ended
        raise
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return True


def read_newest(store: Store, proposal_id: str) -> Proposal:
    """Return a proposal's newest revision, expired where that is due."""
    current = store.read_now(lambda connection: load_newest(connection, proposal_id))
    now = format_time(store.clock.now())
    if current.status == "pending" and (current.expires_at or "~") <= now:
        store.write_now(proposals.expire_due)
        current = store.read_now(lambda connection: load_newest(connection, proposal_id))
    return current


def name_proposal(tx: Tx) -> str:
    """Return an id that no proposal has: creating one is idempotent, and an old answer must not count."""
    proposal_id = tx.ids.new("p")
    while proposals.find(tx.connection, proposal_id) is not None:
        proposal_id = tx.ids.new("p")
    return proposal_id


def let_wait(tx: Tx, session: Session, title: str) -> None:
    """Note that a session waits for the decision on its proposal."""
    if session.status == "running":
        detail = SessionWaiting(for_="proposal", why=title)
        sessions.set_status(tx, session.session_id, "waiting", detail=detail)


def let_run(tx: Tx, session_id: str) -> None:
    """Let a session run on, unless another of its proposals waits."""
    session = sessions.load(tx.connection, session_id)
    pending = tx.execute(
        "SELECT 1 FROM proposals WHERE session_id=? AND status='pending' LIMIT 1", (session_id,)
    ).fetchone()
    if session.status == "waiting" and pending is None:
        sessions.set_status(tx, session_id, "running")
