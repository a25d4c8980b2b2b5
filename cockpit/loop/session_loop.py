"""A session: wave after wave until it is finished, limited, waiting or stopped.

One process owns a session at a time. Whatever phase a process died in, the next one takes the wave up
there: what is stored is not done twice. Source: RFC-003 §15; design of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import UNSET

from cockpit.act.dispatch_actions import Dispatcher
from cockpit.core.errors import CockpitError, Stale
from cockpit.core.processes import current_process
from cockpit.decide.model import ModelError
from cockpit.learn.decision_quality import measured
from cockpit.loop.decisions import profile_change_expiry
from cockpit.loop.decisions.await_decision import DeadlinePassed
from cockpit.loop.phases.acting import act
from cockpit.loop.phases.deciding import decide
from cockpit.loop.phases.learning import learn
from cockpit.loop.phases.observing import observe
from cockpit.loop.phases.orienting import orient
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.wave_context import Engine, Here
from cockpit.store.context import prune
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import (
    SessionCompleted,
    SessionFailed,
    SessionStopped,
    SessionWaiting,
)
from cockpit.store.journal.details.waves import WaveStarted
from cockpit.store.sessions import events, plans, proposals, sessions, waves
from cockpit.store.sessions.sessions import Session
from cockpit.store.sessions.waves import Wave

HEARTBEAT_S = 15.0
SAID = "person.said"
SUBMITTED = "task.submitted"

OPEN = ("observing", "orienting", "deciding", "acting", "learning")
"""The phases in which a wave can be taken up."""


async def run_session(
    engine: Engine, session_id: str, *, interactive: bool | None = None
) -> Session:
    """Run the session until it ends or rests; returns it as it stands then.

    ``interactive`` says whether a person sits before it from now on (None: as before); without one
    every proposal has a deadline.

    Raises :class:`Stale` when another live process has it, ``ModelError`` when the model cannot be
    reached, and other :class:`CockpitError` with the session marked failed. Cancelling stops it
    within the wave, resumable.
    """
    store = engine.store
    token = await _owned(engine, session_id)
    runner = asyncio.current_task()
    lost: list[Stale] = []
    beat = asyncio.create_task(_heartbeat(engine, session_id, token, runner, lost))
    try:
        if interactive is not None:
            await store.write(lambda tx: _attended(tx, session_id, interactive))
        return await _rounds(engine, session_id)
    except asyncio.CancelledError:
        if lost:
            raise lost[0] from None
        await asyncio.shield(_stopped(engine, session_id))
        raise
    finally:
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)
        await asyncio.shield(store.write(lambda tx: sessions.release(tx, session_id, token)))


def _attended(tx: Tx, session_id: str, interactive: bool) -> None:
    session = sessions.load(tx.connection, session_id)
    if session.interactive != interactive:
        sessions.change(tx, session_id, actor="engine", interactive=interactive)
    if not interactive:
        deadline_s = float(session.limits.get("deadline_s", 3600.0))
        proposals.set_deadline(tx, session_id, deadline_s)


async def _owned(engine: Engine, session_id: str) -> str:
    """The lease of the session. Cancelled meanwhile, it is stopped like one that ran."""
    store = engine.store
    taking = asyncio.ensure_future(store.write(lambda tx: sessions.acquire(tx, session_id)))
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        token = await taking
        await _stopped(engine, session_id)
        await store.write(lambda tx: sessions.release(tx, session_id, token))
        raise


class SessionPruned(CockpitError):
    """The session's facts were archived; it cannot go on without them."""

    code = "pruned"


async def _rounds(engine: Engine, session_id: str) -> Session:
    store = engine.store
    if await store.read(lambda connection: prune.was_pruned(connection, session_id)):
        raise SessionPruned(
            f"The facts of session {session_id} were pruned. Put them back with `cockpit prune "
            "--restore ARCHIVE` (the archives stand in .cockpit/state/archive), or begin a new session."
        )
    await store.write(lambda tx: sessions.set_status(tx, session_id, "running"))
    await Dispatcher(store, engine.ground).recover(session_id)
    wave: Wave | None = None
    try:
        session, wave = await store.write(lambda tx: _turn(tx, session_id, engine.settings))
        while wave is not None:
            session, wave = await _drive(engine, session, wave)
        return session
    except DeadlinePassed as passed:
        return await store.write(_unanswered(session_id, str(passed)))
    except (CockpitError, ModelError) as error:
        await store.write(_failed(session_id, wave, error.code, str(error)))
        raise
    except Exception as error:
        await store.write(_failed(session_id, wave, type(error).__name__, _brief(error)))
        raise


def _unanswered(session_id: str, words: str) -> Callable[[Tx], Session]:
    why = SessionWaiting(for_="proposal", why=words)
    result = {"status": "expired", "summary": words}
    return lambda tx: sessions.set_status(tx, session_id, "waiting", detail=why, result=result)


async def _drive(engine: Engine, session: Session, wave: Wave) -> tuple[Session, Wave | None]:
    """One step of the wave; the session then, and the wave to go on with (None to rest).

    What nothing outside happens between is one transaction: a packet and the call that it is for, a
    wave's end and the next one's beginning.
    """
    store, here = engine.store, Here(engine, session, wave)
    match wave.phase:
        case "observing":
            moved = await observe(here)
        case "orienting":
            moved = await decide(here, await orient(here))
        case "deciding":
            moved = await decide(here)
        case "acting":
            closing = await act(here)
            return await store.write(lambda tx: _ended(tx, here, closing))
        case _:
            return await store.write(lambda tx: _ended(tx, here, None))
    return store.read_now(lambda connection: sessions.load(connection, session.session_id)), moved


def _ended(
    tx: Tx, here: Here, closing: Callable[[Tx], object] | None
) -> tuple[Session, Wave | None]:
    """The wave's end, and whose turn it is then."""
    if closing is not None:
        closing(tx)
    learn(tx, here)
    session = sessions.load(tx.connection, here.session.session_id)
    if session.status == "completed":
        return session, None
    return _turn(tx, session.session_id, here.engine.settings)


def _turn(tx: Tx, session_id: str, settings: RuntimeSettings) -> tuple[Session, Wave | None]:
    """The session and the wave to drive; without one the session rests."""
    wave = _next_wave(tx, session_id, settings)
    if wave is None:
        return _rest(tx, session_id), None
    return sessions.load(tx.connection, session_id), wave


def _begin(tx: Tx, wave: Wave, settings: RuntimeSettings) -> Wave:
    """Enter ``observing`` with the profile's version pinned for the whole wave (RFC-003 §10.2)."""
    session = sessions.load(tx.connection, wave.session_id)
    pinned = profile_change_expiry.begin(tx, settings, session.profile_id, measured, wave)
    left = UNSET if pinned.waves_left is None else pinned.waves_left
    return waves.advance(
        tx,
        wave.wave_id,
        "observing",
        profile_version=pinned.version,
        detail=WaveStarted(waves_left=left),
    )


def _next_wave(tx: Tx, session_id: str, settings: RuntimeSettings) -> Wave | None:
    """The wave to drive: the open one, or a new one for what has arrived, begun; None to rest."""
    session = sessions.load(tx.connection, session_id)
    last = waves.find_latest(tx.connection, session_id)
    if last is not None and last.phase == "failed_retryable":
        last = waves.reenter(tx, last.wave_id)
    if last is not None and last.phase == "created":
        return _begin(tx, last, settings)
    if last is not None and last.phase not in ("completed", "failed_terminal"):
        return last
    if not events.count_waiting(tx.connection, session.source) or _limited(tx, session, last):
        return None
    first = None
    # All that has been said by now belongs to this wave; one event is named as its cause.
    while True:
        event = events.claim(tx, source=session.source, owner=current_process(), lease_s=60)
        if event is None:
            break
        events.ack(tx, event.event_id, event.lease_token)
        first = first or event
    if first is None:
        return None
    made = waves.create(
        tx, session_id=session_id, trace_id=session.trace_id, event_id=first.event_id
    )
    return _begin(tx, made, settings)


def _limited(tx: Tx, session: Session, last: Wave | None) -> bool:
    """Whether a limit keeps the next wave from beginning; then the session has ended."""
    most, cost = session.limits.get("max_waves"), session.limits.get("max_cost")
    why = ""
    if most is not None and last is not None and last.ordinal >= most:
        why = f"The limit of {most} waves is reached."
    elif cost is not None and session.cost_usd is not None and session.cost_usd >= cost:
        why = f"The limit of ${cost:.2f} is reached (${session.cost_usd:.2f} spent)."
    elif (tokens := session.limits.get("max_tokens")) is not None and tokens <= (
        spent := session.input_tokens + session.output_tokens
    ):
        why = f"The limit of {tokens:,} tokens is reached ({spent:,} spent)."
    if not why:
        return False
    ended = {"status": "limit", "summary": f"{why} The work is kept; continue with a higher one."}
    if session.result.get("status") != "limit" or session.status != "completed":
        detail = SessionCompleted(**ended)
        sessions.set_status(tx, session.session_id, "completed", detail=detail, result=ended)
    return True


def _rest(tx: Tx, session_id: str) -> Session:
    """Nothing to do: the person has the word, or (headless) the last answer was the result."""
    session = sessions.load(tx.connection, session_id)
    if session.status == "completed":
        return session
    if session.interactive:
        why = SessionWaiting(for_="person", why="your turn")
        return sessions.set_status(tx, session_id, "waiting", detail=why)
    last = waves.find_latest(tx.connection, session_id)
    plan = plans.find(tx.connection, last.wave_id) if last else None
    ended = {"status": "done", "summary": plan.text.strip() if plan else ""}
    return sessions.set_status(
        tx, session_id, "completed", detail=SessionCompleted(**ended), result=ended
    )


def _failed(session_id: str, wave: Wave | None, code: str, message: str) -> Callable[[Tx], None]:
    def step(tx: Tx) -> None:
        if wave is not None and waves.load(tx.connection, wave.wave_id).phase in OPEN:
            waves.fail(tx, wave.wave_id, retryable=True, error_class=code, message=message)
        sessions.set_status(
            tx,
            session_id,
            "failed",
            error_code=code,
            detail=SessionFailed(message=message),
            result={"status": "failed", "summary": message},
        )

    return step


async def _stopped(engine: Engine, session_id: str) -> None:
    await engine.store.write(
        lambda tx: sessions.set_status(
            tx, session_id, "stopped", actor="person", detail=SessionStopped(reason="interrupted")
        )
    )


async def _heartbeat(
    engine: Engine,
    session_id: str,
    token: str,
    runner: asyncio.Task[object] | None,
    lost: list[Stale],
) -> None:
    """Renew the lease; when it was lost, stop the runner."""
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        try:
            await engine.store.write(lambda tx: sessions.renew(tx, session_id, token))
        except Stale as error:
            lost.append(error)
            if runner is not None:
                runner.cancel()
            return


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:2000]
