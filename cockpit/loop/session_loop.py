"""The session loop: one wave after another until the session finishes, waits, fails or reaches a limit.

One process owns a session at a time. The next process resumes a wave in the phase in which it was cut off;
work that is stored is not repeated. See ``docs/reference/loop.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import UNSET, Struct, UnsetType

from cockpit.core.errors import CockpitError, Stale, find_machine_fault
from cockpit.learn.decision_quality import measure_version
from cockpit.learn.notes.reflect import reflect
from cockpit.loop.decisions.await_decision import DeadlinePassed
from cockpit.loop.decisions.profile_change_expiry import pin_profile
from cockpit.loop.phases.acting import act
from cockpit.loop.phases.deciding import decide
from cockpit.loop.phases.learning import CONTINUED, learn
from cockpit.loop.phases.observing import observe
from cockpit.loop.phases.orienting import orient
from cockpit.loop.phases.project_change import find_finish
from cockpit.loop.phases.retry_over_budget import retake_inputs
from cockpit.loop.phases.session_tools import read_evidence
from cockpit.loop.phases.tool_results import read_exchanges
from cockpit.loop.reentry.kept_actions import describe_return, read_held_in
from cockpit.loop.repeated_calls import describe_repeat, read_repeat
from cockpit.loop.runtime_settings import DEFAULT_DEADLINE_S
from cockpit.loop.tools.offer_tools import forget_offers, offer_tools
from cockpit.loop.tools.run_added import open_dispatcher
from cockpit.loop.wave_context import EVENT_LEASE_S, Engine, WaveContext
from cockpit.store.context import prune
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import (
    SessionCompleted,
    SessionFailed,
    SessionStopped,
    SessionWaiting,
)
from cockpit.store.journal.details.waves import WaveStarted
from cockpit.store.sessions import events, messages, plans, proposals, sessions, waves
from cockpit.store.sessions.events import WaitingEvents
from cockpit.store.sessions.sessions import STUCK, Session
from cockpit.store.sessions.waves import Wave

HEARTBEAT_S = 15.0
"""Seconds between renewals of the lease on a session."""

TASK_SUBMITTED = "task.submitted"
"""The event that a session's first wave begins for."""

_RESUMABLE_PHASES = ("observing", "orienting", "deciding", "acting", "learning")


async def run_session(
    engine: Engine, session_id: str, *, interactive: bool | None = None
) -> Session:
    """Run the session until it ends or waits for the user; returns the session.

    ``interactive`` says whether a user is at the screen from now on; None leaves it unchanged. Without a
    user every proposal gets a deadline.

    Raises :class:`Stale` when another live process owns the session, ``ModelError`` when the model cannot
    be reached, and other :class:`CockpitError` with the session marked failed. A passing fault of the machine
    (:func:`~cockpit.core.errors.find_machine_fault`) is raised with the session waiting within its
    wave. Cancelling stops the session within its wave, and it can be resumed.
    """
    store = engine.store
    forget_offers(engine, session_id)
    lease = await _take_lease(store, session_id, interactive)
    runner = asyncio.current_task()
    lease_errors: list[Stale] = []
    heartbeat = asyncio.create_task(_renew_lease(store, lease, runner, lease_errors))
    try:
        return await _run_waves(engine, lease)
    except asyncio.CancelledError:
        if lease_errors:
            raise lease_errors[0] from None
        await asyncio.shield(_mark_stopped(store, session_id))
        raise
    finally:
        heartbeat.cancel()
        await asyncio.gather(heartbeat, return_exceptions=True)
        if not lease.is_over:
            await asyncio.shield(sessions.end_lease(store, session_id, lease.token))


class _Lease(Struct):
    """The lease of the session that runs."""

    session_id: str
    token: str
    is_over: bool = False
    """Whether it was given up in the transaction after which the session stops."""


def _set_interactive(tx: Tx, session_id: str, interactive: bool) -> None:
    session = sessions.load(tx.connection, session_id)
    if session.interactive != interactive:
        sessions.change(tx, session_id, actor="engine", interactive=interactive)
    if not interactive:
        deadline_s = float(session.limits.get("deadline_s", DEFAULT_DEADLINE_S))
        proposals.set_deadline(tx, session_id, deadline_s)


async def _take_lease(store: Store, session_id: str, interactive: bool | None) -> _Lease:
    """Take the lease of the session; cancelled meanwhile, mark it stopped, as if it had run."""

    def take(tx: Tx) -> _Lease:
        lease = _Lease(session_id, sessions.acquire(tx, session_id))
        if interactive is not None:
            _set_interactive(tx, session_id, interactive)
        return lease

    taking = asyncio.ensure_future(store.write(take))
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        lease = await taking
        await _mark_stopped(store, session_id)
        await sessions.end_lease(store, session_id, lease.token)
        raise


class SessionPruned(CockpitError):
    """The session's facts were archived; it cannot resume without them."""

    code = "pruned"


async def _run_waves(engine: Engine, lease: _Lease) -> Session:
    """Run waves until the session stops."""
    store, session_id = engine.store, lease.session_id
    if await store.read(lambda connection: prune.was_pruned(connection, session_id)):
        raise SessionPruned(
            f"Session {session_id} cannot resume: its facts were pruned. Restore them with"
            " `cockpit prune --restore ARCHIVE`, or start a new session. `cockpit debug state .` names the"
            " archives' folder."
        )
    await store.write(lambda tx: sessions.set_status(tx, session_id, "running"))
    await open_dispatcher(engine).recover(session_id)
    wave: Wave | None = None
    try:
        while True:
            session, wave = await store.write(lambda tx: _begin_or_stop(tx, lease, engine))
            if wave is None:
                lease.is_over = True
                return session
            await _run_wave(engine, wave)
    except DeadlinePassed as error:
        return await store.write(_mark_waiting(session_id, "expired", str(error)))
    except Exception as error:
        if fault := find_machine_fault(error):
            await store.write(_mark_waiting(session_id, "paused", fault))
            raise
        if isinstance(error, CockpitError):
            await store.write(_mark_failed(session_id, wave, error.code, str(error)))
            raise
        message = f"{type(error).__name__}: {error}"[:2000]
        await store.write(_mark_failed(session_id, wave, type(error).__name__, message))
        raise


async def _run_wave(engine: Engine, wave: Wave) -> None:
    """Take the wave through its phases, from the one it is in to its end."""
    session_id = wave.session_id
    while wave.phase != "completed":
        session = engine.store.read_now(lambda c: sessions.load(c, session_id))
        context = WaveContext(engine, session, wave)
        match wave.phase:
            case "observing":
                wave = await observe(context)
            case "orienting":
                wave = await orient(await retake_inputs(context))
            case "deciding":
                wave = await decide(context)
            case "acting":
                wave = await act(context)
            case _:
                wave = await learn(context)


def _begin_or_stop(tx: Tx, lease: _Lease, engine: Engine) -> tuple[Session, Wave | None]:
    """Find the wave to run; without one the session stops and is given up."""
    session = sessions.load_in(tx, lease.session_id)
    if session.status != "completed":
        wave = _next_wave(tx, lease.session_id, engine)
        if wave is not None:
            return sessions.load_in(tx, lease.session_id), wave
        session = _stop_without_wave(tx, lease.session_id)
    sessions.release(tx, lease.session_id, lease.token)
    return session, None


def _begin_wave(tx: Tx, wave: Wave, engine: Engine) -> Wave:
    """Enter ``observing`` with the profile's version and the tools pinned for the whole wave."""
    session = sessions.load_in(tx, wave.session_id)
    if wave.ordinal == 1:
        # A later wave's are decided once it knows what came of the calls before.
        offer_tools(tx, engine, session, wave, read_evidence(WaveContext(engine, session, wave)))
    pinned = pin_profile(tx, engine.settings, session.profile_id, measure_version, wave)
    waves_left = UNSET if pinned.waves_left is None else pinned.waves_left
    return waves.advance(
        tx,
        wave.wave_id,
        "observing",
        profile_version=pinned.version,
        detail=WaveStarted(waves_left=waves_left, returns=_why_it_returns(tx, wave)),
    )


def _why_it_returns(tx: Tx, wave: Wave) -> str | UnsetType:
    """Say why a wave goes back to Orient for an action of the wave before, where it does."""
    if wave.ordinal == 1:
        return UNSET
    previous = waves.wave_id_of(wave.session_id, wave.ordinal - 1)
    return describe_return(read_held_in(tx.connection, previous)) or UNSET


def _next_wave(tx: Tx, session_id: str, engine: Engine) -> Wave | None:
    """Return the open wave, or a new one for the events that arrived; None when there is neither."""
    session = sessions.load_in(tx, session_id)
    last = waves.find_latest_in(tx, session_id)
    if last is not None and last.phase == "failed_retryable":
        events.reclaim(tx, source=session.source, owner=last.wave_id, lease_s=EVENT_LEASE_S)
        last = waves.reenter(tx, last.wave_id)
    if last is not None and last.phase == "created":
        return _begin_wave(tx, last, engine)
    if last is not None and last.phase not in ("completed", "failed_terminal"):
        return last
    waiting = events.select_waiting(tx, session.source)
    if not waiting.has_new:
        _refuse_given_up(session, last)
        return None
    if _end_at_limit(tx, session, last) or _stop_if_stuck(tx, session, last, waiting):
        return None
    owner = waves.wave_id_of(session_id, last.ordinal + 1 if last else 1)
    # Every message that has arrived belongs to this wave; the task, or else the first event, is named as its
    # cause. They are the wave's until it ends: handled with it, or returned when it fails.
    claimed = events.claim_waiting(tx, waiting, owner=owner, lease_s=EVENT_LEASE_S)
    if not claimed:
        return None
    # A message that was sent before the first wave has come may be claimed before the task.
    cause = next((event for event in claimed if event.event_type == TASK_SUBMITTED), claimed[0])
    wave = waves.create(
        tx, session_id=session_id, trace_id=session.trace_id, event_id=cause.event_id
    )
    return _begin_wave(tx, wave, engine)


class DeadLetter(CockpitError):
    """The session's last wave failed too often; nothing is left to run."""

    code = "dead_letter"


def _refuse_given_up(session: Session, last: Wave | None) -> None:
    if last is not None and last.phase == "failed_terminal" and not session.interactive:
        raise DeadLetter(_given_up_text(last.ordinal, last.event_id or ""))


def _given_up_text(ordinal: int, event_id: str) -> str:
    return (
        f"Wave {ordinal} failed too often and is not tried again. `cockpit debug events {event_id}` shows"
        f" its event, and `cockpit debug events {event_id} --retry` lets the session try it in a new wave."
    )


def _end_at_limit(tx: Tx, session: Session, last: Wave | None) -> bool:
    """Complete the session if it has reached one of its limits; returns whether it has."""
    max_waves, max_cost = session.limits.get("max_waves"), session.limits.get("max_cost")
    max_tokens = session.limits.get("max_tokens")
    tokens = session.input_tokens + session.output_tokens
    reason = ""
    if max_waves is not None and last is not None and last.ordinal >= max_waves:
        reason = f"The limit of {max_waves} waves is reached."
    elif max_cost is not None and session.cost_usd is not None and session.cost_usd >= max_cost:
        reason = f"The limit of ${max_cost:.2f} is reached (${session.cost_usd:.2f} spent)."
    elif max_cost is not None and (
        unpriced := sessions.count_unpriced_tokens(tx, session.session_id)
    ):
        reason = (
            f"The limit of ${max_cost:.2f} cannot be kept: no price is known for {session.model}, which"
            f" spent {unpriced:,} tokens."
        )
    elif max_tokens is not None and max_tokens <= tokens:
        reason = f"The limit of {max_tokens:,} tokens is reached ({tokens:,} spent)."
    if not reason:
        return False
    result = {
        "status": "limit",
        "summary": f"{reason} The work is kept; resume the session with a higher limit, or without it.",
    }
    if session.result.get("status") != "limit" or session.status != "completed":
        detail = SessionCompleted(**result)
        reflect(
            tx,
            sessions.set_status(tx, session.session_id, "completed", detail=detail, result=result),
        )
    return True


def _stop_if_stuck(tx: Tx, session: Session, last: Wave | None, waiting: WaitingEvents) -> bool:
    """Stop a session whose calls repeat without anything new; returns whether it did.

    At the screen it waits for the user, whose words go on with it.
    """
    if last is None or waiting.of_type(CONTINUED) != waiting:
        return False
    repeat = read_repeat(tx.connection, session, read_exchanges(tx.connection, last))
    if repeat is None or not repeat.ends:
        return False
    summary = f"Stuck: {describe_repeat(repeat)}."
    if session.interactive:
        if session.status != "waiting":
            text = f"{summary} Say what to do instead."
            messages.complete(tx, session_id=session.session_id, role="notice", text=text)
        detail = SessionWaiting(for_="person", why=summary)
        sessions.set_status(tx, session.session_id, "waiting", detail=detail)
        return True
    ended = sessions.set_status(
        tx,
        session.session_id,
        "completed",
        detail=SessionCompleted(status=STUCK, summary=summary),
        result={"status": STUCK, "summary": summary, "wave": str(last.ordinal)},
    )
    reflect(tx, ended)
    return True


def _stop_without_wave(tx: Tx, session_id: str) -> Session:
    """Wait for the user's next message; headless, end the session as it stands.

    Only ``finish`` says that the work is done. Without it the last words are a question or an offer, and the
    session needs an answer. One that had ended and got no new message ends as it had ended; one that waits
    has said why.
    """
    session = sessions.load(tx.connection, session_id)
    if session.status in ("completed", "waiting"):
        return session
    if session.interactive:
        detail = SessionWaiting(for_="person", why="your turn")
        return sessions.set_status(tx, session_id, "waiting", detail=detail)
    last = waves.find_latest(tx.connection, session_id)
    plan = plans.find(tx.connection, last.wave_id) if last else None
    outside = session.task_type == sessions.EXTERNAL_AGENT  # it ends where its calls end
    status = "done" if outside else sessions.NEEDS_ANSWER
    result = {"status": status, "summary": plan.text.strip() if plan else ""}
    if plan is not None and session.result and find_finish(plan) is not None:
        result = {name: str(session.result.get(name, "")) for name in result}
    ended = sessions.set_status(
        tx, session_id, "completed", detail=SessionCompleted(**result), result=result
    )
    reflect(tx, ended)
    return ended


def _mark_waiting(session_id: str, why_for: str, message: str) -> Callable[[Tx], Session]:
    """Let the session wait in its wave, which resumes where it is."""
    detail = SessionWaiting(for_=why_for, why=message)
    result = {"status": why_for, "summary": message}
    return lambda tx: sessions.set_status(tx, session_id, "waiting", detail=detail, result=result)


def _mark_failed(
    session_id: str, wave: Wave | None, code: str, message: str
) -> Callable[[Tx], None]:
    def mark(tx: Tx) -> None:
        summary = message
        if wave is not None and waves.load(tx.connection, wave.wave_id).phase in _RESUMABLE_PHASES:
            dead = events.nack_owned(tx, wave.wave_id, f"{code}: {message}")
            waves.fail(tx, wave.wave_id, retryable=not dead, error_class=code, message=message)
            if dead:
                summary = f"{message} {_given_up_text(wave.ordinal, wave.event_id or dead[0])}"
        sessions.set_status(
            tx,
            session_id,
            "failed",
            error_code=code,
            detail=SessionFailed(message=summary),
            result={"status": "failed", "summary": summary},
        )

    return mark


async def _mark_stopped(store: Store, session_id: str) -> None:
    def stop(tx: Tx) -> None:
        if sessions.load(tx.connection, session_id).status == "completed":
            return  # its last wave had ended when it was interrupted
        sessions.set_status(
            tx, session_id, "stopped", actor="person", detail=SessionStopped(reason="interrupted")
        )

    await store.write(stop)


async def _renew_lease(
    store: Store,
    lease: _Lease,
    runner: asyncio.Task[object] | None,
    lease_errors: list[Stale],
) -> None:
    """Renew the lease until cancelled; when it is lost, record why and cancel the runner."""
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        try:
            await store.write(lambda tx: sessions.renew(tx, lease.session_id, lease.token))
        except Stale as error:
            if lease.is_over:
                return
            lease_errors.append(error)
            if runner is not None:
                runner.cancel()
            return
