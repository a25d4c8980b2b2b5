"""Evolve: one session from a want to an adopted tool, with the user's word in between.

See ``docs/reference/evolve.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from functools import partial

from cockpit.act.own_tools.adopt_tool import ADOPT
from cockpit.act.own_tools.run_child import require_sandbox
from cockpit.core.errors import CockpitError, Stale
from cockpit.core.secrets import mask
from cockpit.core.text import end_sentence
from cockpit.decide.known_prices import require_price
from cockpit.decide.model import ModelError
from cockpit.evolve.grow_tool import Grower, Grown, Wish, require_writer
from cockpit.evolve.growth import MAX_ROUNDS
from cockpit.evolve.growth_dialogue import TASK_TYPE
from cockpit.evolve.propose_grown_tool import carry_out, conclude_confirmed, propose_tool
from cockpit.loop.runtime import EVOLVE
from cockpit.loop.wave_context import Engine
from cockpit.store.context import profiles
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.evolution import EvolutionEnded
from cockpit.store.journal.details.sessions import SessionCompleted, SessionWaiting
from cockpit.store.sessions import messages, outbox, proposals, sessions
from cockpit.store.sessions.hold_session import hold_session
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session

LONGEST_WANT = 4_000


class EvolveRefused(CockpitError):
    """Nothing can be grown: what is wanted is not said, or the machine cannot confine it."""

    code = "evolve_refused"


async def begin_evolution(engine: Engine, want: str, *, task_id: str | None = None) -> str:
    """Store a session that grows a tool for ``want``; returns its id. Nothing runs yet.

    Raises :class:`EvolveRefused`, ``NoModel``, ``ModelError``, and ``NoSandbox`` where nothing can be tried.
    """
    want = mask(" ".join(want.split()))
    if not want or len(want) > LONGEST_WANT:
        raise EvolveRefused(
            f"Say in 1 to {LONGEST_WANT:,} characters what the tool has to do; nothing was started."
        )
    require_writer(engine.model(None))
    require_sandbox(engine.ground.sandbox)
    model = engine.model(None).name
    if engine.settings.limits.max_cost is not None:
        require_price(model, engine.settings.model.prices)
    place = engine.place

    def create(tx: Tx) -> str:
        session = sessions.create(
            tx,
            task_type=TASK_TYPE,
            title=want[:100],
            words=want,
            target={},
            model=model,
            policy="ask",
            interactive=False,
            root=place.root,
            rev=None,
            profile_id=profiles.ensure_default(tx, engine.settings.token_budget).profile_id,
            limits={},
            project=engine.repo or place.root.name,
            branch="",
            task_id=task_id,
            transport=EVOLVE,
        )
        messages.complete(tx, session_id=session.session_id, role="person", text=want)
        return session.session_id

    return await engine.store.write(create)


async def find_growth(engine: Engine, session_id: str = "") -> Session:
    """Return the growth that can go on: the one of that id, or the last one whose tool was not adopted.

    Raises :class:`EvolveRefused` where there is none, and ``NotFound`` for an unknown id.
    """
    session = await engine.store.read(partial(_find_growth, session_id))
    if session is None:
        raise EvolveRefused('No growth is left to continue. Start one: `cockpit evolve "…"`.')
    if session.transport != EVOLVE:
        raise EvolveRefused(
            f"{session_id} grows no tool; continue it with `cockpit run --continue`."
        )
    if session.result.get("status") == "done":
        raise EvolveRefused(f"{session_id} has ended: {session.result.get('summary', '')}")
    return session


def _find_growth(session_id: str, connection: sqlite3.Connection) -> Session | None:
    if session_id:
        return sessions.load(connection, session_id)
    row = connection.execute(
        "SELECT session_id FROM sessions WHERE transport=?"
        " AND json_extract(result_json, '$.status') IS NOT 'done' ORDER BY updated_at DESC LIMIT 1",
        (EVOLVE,),
    ).fetchone()
    return None if row is None else sessions.load(connection, row[0])


async def evolve(engine: Engine, session_id: str, *, rounds: int = MAX_ROUNDS) -> Session:
    """Grow the tool of a session, propose it, wait for the user, and go on from their words.

    What another process has grown, proposed or adopted is not done again. Returns the session as it ended:
    ``done`` with an adopted tool, else ``blocked`` with the reason. Cancel to stop; what was proposed can
    still be adopted. Raises ``Stale`` where another process runs the session.
    """
    work = asyncio.current_task()
    async with hold_session(engine.store, session_id) as lost:
        watch = asyncio.create_task(_cancel_when(lost, work))
        try:
            return await _grow_and_propose(engine, session_id, rounds)
        except asyncio.CancelledError:
            if lost.is_set():
                raise Stale(f"Another process took over session {session_id}.") from None
            raise
        except ModelError:
            raise  # it can be resumed with another model
        except CockpitError as error:
            return await _close(engine, session_id, "blocked", str(error))
        finally:
            watch.cancel()


async def _cancel_when(lost: asyncio.Event, work: asyncio.Task[object] | None) -> None:
    await lost.wait()
    if work is not None:
        work.cancel()


async def _grow_and_propose(engine: Engine, session_id: str, rounds: int) -> Session:
    store = engine.store
    session = await store.read(lambda c: sessions.load(c, session_id))
    await store.write(partial(_set_running, session_id))
    wish = Wish(session.words)
    grower = Grower(engine, engine.model(session.model), session_id, wish, rounds=rounds)
    proposal = await store.read(partial(_find_proposal, session_id))
    if proposal is not None and proposal.status == "approved":
        # The process that decided may have died before all of it was done.
        await carry_out(engine)
        await conclude_confirmed(engine, session_id)
    while True:
        if proposal is not None and proposal.status == "discussed":
            words = await _read_words(engine, session_id, proposal)
            await grower.discuss(proposal.proposal_id, words)
        if proposal is None or proposal.status == "discussed":
            grown = await grower.grow()
            if grown.outcome != "green":
                return await _end(engine, session_id, grown)
            proposal = await propose_tool(engine, session_id, grown, proposal)
        if proposal.status == "pending":
            proposal = await _await_decision(engine, session_id, proposal)
        if proposal.status == "approved":
            return await _await_adoption(engine, session_id)
        if proposal.status != "discussed":
            why = f"{proposal.status} by {proposal.decided_by}"
            reason = f": {proposal.reason}" if proposal.reason else ""
            return await _close(
                engine, session_id, "blocked", end_sentence(f"The tool was {why}{reason}")
            )


def _set_running(session_id: str, tx: Tx) -> None:
    if (
        sessions.load_in(tx, session_id).result.get("status") != "done"
    ):  # adopted elsewhere meanwhile
        sessions.set_status(tx, session_id, "running")


def _find_proposal(session_id: str, connection: sqlite3.Connection) -> Proposal | None:
    """Return the newest proposal of the tool; each one revises the one before."""
    proposed = proposals.select_for_session(connection, session_id)
    revised = {proposal.revises for proposal in proposed}
    return next((each for each in proposed if each.proposal_id not in revised), None)


async def _await_decision(engine: Engine, session_id: str, proposal: Proposal) -> Proposal:
    store = engine.store
    waiting = SessionWaiting(for_="proposal", why=proposal.title)
    await store.write(lambda tx: sessions.set_status(tx, session_id, "waiting", detail=waiting))

    def read_decided() -> Proposal | None:
        current = store.read_now(lambda c: proposals.load(c, proposal.proposal_id))
        return None if current.status == "pending" else current

    decided = await engine.change_waiter.wait_for(read_decided)
    await store.write(lambda tx: sessions.set_status(tx, session_id, "running"))
    return decided


async def _read_words(engine: Engine, session_id: str, decided: Proposal) -> str:
    """Return the user's words about a discussed tool; they may follow the decision."""
    if decided.reason:
        return decided.reason
    store, since = engine.store, decided.decided_at or ""

    def read() -> str | None:
        spoken = [
            message.text
            for message in store.read_now(lambda c: messages.select_for_session(c, session_id))
            if message.role == "person" and message.created_at >= since
        ]
        return spoken[-1] if spoken else None

    return await engine.change_waiter.wait_for(read)


async def _await_adoption(engine: Engine, session_id: str) -> Session:
    """Wait until the process that decided, or this one, has carried the adoption out."""
    store = engine.store

    def read() -> tuple[str, str] | None:
        for action in store.read_now(lambda c: outbox.select_for_session(c, session_id)):
            if action.action_type == ADOPT and action.phase in ("confirmed", "failed_terminal"):
                return action.phase, action.last_error
        return None

    phase, error = await engine.change_waiter.wait_for(read)
    if phase == "failed_terminal":
        return await _close(engine, session_id, "blocked", error)

    def read_ended() -> Session | None:
        session = store.read_now(lambda c: sessions.load(c, session_id))
        return session if session.status == "completed" else None

    return await engine.change_waiter.wait_for(read_ended)


async def _end(engine: Engine, session_id: str, grown: Grown) -> Session:
    growth = grown.growth
    detail = EvolutionEnded(
        name=growth.name, outcome=grown.outcome, reason=grown.reason, rounds=growth.rounds
    )
    await engine.store.write(
        lambda tx: tx.journal(detail, session_id=session_id, result="error") and None
    )
    return await _close(engine, session_id, "blocked", grown.why)


async def _close(engine: Engine, session_id: str, status: str, summary: str) -> Session:
    result = {"status": status, "summary": summary}
    return await engine.store.write(
        lambda tx: sessions.set_status(
            tx,
            session_id,
            "completed",
            detail=SessionCompleted(**result),
            result=result,
        )
    )
