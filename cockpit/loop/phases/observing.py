"""Observe: everything that enters a wave's context, through the gateway and nothing else.

The first wave takes in the baseline and the task type's deterministic context; a later one waits for
the decision on what the wave before it asked for, reads what was granted, and takes in what came back
and what the person said. Source: RFC-003 §10.1; RFC-09 (single gateway); design of Observe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from cockpit.act.tools import ACTIONS, TOOLS
from cockpit.loop.decisions.await_decision import DISCUSS, Verdict, await_verdict
from cockpit.loop.intake.baseline_facts import baseline, task_fact
from cockpit.loop.phases.observation_fan_out import fan, pinned_profile, wanted
from cockpit.loop.phases.tool_exchange import spoken
from cockpit.loop.phases.tool_results import exchanges
from cockpit.loop.wave_context import Here
from cockpit.observe.fan_out import MAX_JOBS
from cockpit.observe.stale_files import Read
from cockpit.store.context import facts, observation_jobs, regranted_facts
from cockpit.store.context.facts import Fact, ObservingWave
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionWaiting
from cockpit.store.journal.details.waves import WaveObserved
from cockpit.store.sessions import context_requests, messages, outbox, sessions, waves
from cockpit.store.sessions.context_requests import ContextRequest
from cockpit.store.sessions.waves import Wave


async def observe(here: Here) -> Wave:
    """Take a wave from ``observing`` to ``orienting``.

    Raises :class:`~cockpit.loop.decisions.await_decision.DeadlinePassed` when nobody decides in time.
    """
    if here.wave.ordinal == 1:
        await _open(here)
    else:
        await _settle_requests(here)
        await _hear_discussion(here)
    await fan(
        here,
        here.store.read_now(
            lambda connection: wanted(connection, here, _granted_files(connection, here))
        ),
    )
    return await here.store.write(lambda tx: _take_in(tx, here))


async def _open(here: Here) -> None:
    """The first wave's own facts: identity, capabilities, the task as it was put."""
    opening = here.store.read_now(lambda connection: _opening(connection, here.wave))
    root, user_dir = here.engine.place.root, here.engine.settings.user_dir
    # A review's opening carries the object of the task; other tasks are words.
    band = "situational" if here.session.target else "objectives"
    made = [*baseline(root, user_dir, _tools(here)), task_fact(opening["text"], band=band)]
    scope = [str(item) for item in opening["scope_items"]]
    auto = f"task_type:{here.session.task_type}"

    def step(tx: Tx) -> None:
        _record(tx, here, made, job="baseline")
        if scope:
            _ask_automatically(tx, here, scope, auto, bool(opening["included"]))

    await here.store.write(step)


def _ask_automatically(tx: Tx, here: Here, scope: Sequence[str], auto: str, included: bool) -> None:
    """Declared deterministic: logged like any other request, approved in the task type's name."""
    items = [
        {
            "item": item,
            "level": "full",
            "tokens": 0,
            "band": "situational",
            "refused": "",
            "note": "",
        }
        for item in scope
    ]
    made = context_requests.create(
        tx,
        request_id=f"q-{here.wave.wave_id}",
        session_id=here.session.session_id,
        wave_id=here.wave.wave_id,
        call_id="",
        purpose=f"{here.session.task_type}: the object of the request",
        question="What is this task about?",
        escalation="",
        items=items,
        proposal_id=None,
        auto=True,
        decided_by=auto,
    )
    if included and made.status == "approved":
        # The opening holds it already, fetched whole before the session began.
        outcomes = [
            {"item": item, "facts": 0, "new": 0, "tokens": 0, "error": ""} for item in scope
        ]
        context_requests.record_fetched(
            tx, made.request_id, wave_id=here.wave.wave_id, outcomes=outcomes
        )


async def _settle_requests(here: Here) -> None:
    """Wait for the decision on every pending request of the session and carry it over."""
    pending = here.store.read_now(
        lambda connection: context_requests.select_by_status(
            connection, here.session.session_id, "pending"
        )
    )
    for request in pending:
        if request.proposal_id is None:
            continue
        await here.store.write(_settled(request, await await_verdict(here, request.proposal_id)))


def _settled(request: ContextRequest, verdict: Verdict) -> Callable[[Tx], ContextRequest]:
    offered = [str(item["item"]) for item in request.items if not item.get("refused")]
    narrowed = verdict.proposal.narrowed
    kept = [item for item in offered if narrowed is None or item in narrowed]
    granted = kept if verdict.status == "approved" else []
    by = verdict.proposal.decided_by or ""
    return lambda tx: context_requests.apply_decision(
        tx, request.request_id, verdict.status, approved=granted, decided_by=by
    )


async def _hear_discussion(here: Here) -> None:
    """After an Escape without words, an interactive session waits for what is on the mind."""
    if not here.session.interactive:
        return
    since = here.store.read_now(lambda connection: _silent_discussion(connection, here))
    if since is None:
        return
    session_id = here.session.session_id
    why = SessionWaiting(for_="person", why="what is on your mind?")
    await here.store.write(lambda tx: sessions.set_status(tx, session_id, "waiting", detail=why))

    def ask() -> bool | None:
        return here.store.read_now(lambda connection: _spoke_since(connection, session_id, since))

    await here.engine.pulse.until(ask)
    await here.store.write(lambda tx: sessions.set_status(tx, session_id, "running"))


def _silent_discussion(connection: Any, here: Here) -> str | None:
    """When the last discussion without words began, if nobody has spoken since."""
    row = connection.execute(
        "SELECT max(decided_at) FROM proposals WHERE session_id=? AND status='discussed'"
        " AND reason='' AND wave_id=?",
        (here.session.session_id, f"{here.session.session_id}-w{here.wave.ordinal - 1}"),
    ).fetchone()
    if row is None or row[0] is None:
        return None
    return None if _spoke_since(connection, here.session.session_id, row[0]) else str(row[0])


def _spoke_since(connection: Any, session_id: str, since: str) -> bool | None:
    row = connection.execute(
        "SELECT 1 FROM messages WHERE session_id=? AND role='person' AND created_at>=? LIMIT 1",
        (session_id, since),
    ).fetchone()
    return True if row else None


def _granted_files(connection: Any, here: Here) -> list[Read]:
    """The files in the session's facts, when an action of the wave before may have changed them.

    The grant covers the place: what has changed is read again, and supersedes what was read.
    """
    if here.wave.ordinal == 1 or here.session.rev is not None:
        return []
    previous = f"{here.session.session_id}-w{here.wave.ordinal - 1}"
    changed = any(
        action.phase == "confirmed" and action.action_type in ACTIONS
        for action in outbox.select_for_wave(connection, previous)
    )
    if not changed:
        return []
    found = connection.execute(
        "SELECT s.source_ref, json_extract(f.provenance_json, '$.path'),"
        " json_extract(f.provenance_json, '$.sha256')"
        " FROM session_facts AS s JOIN observed_facts AS f USING(fact_id)"
        " WHERE s.session_id=? AND s.source_type='file' AND s.superseded_at IS NULL"
        " ORDER BY s.ordinal, s.position LIMIT ?",
        (here.session.session_id, MAX_JOBS),
    )
    return [Read(str(item), str(path), str(sha256)) for item, path, sha256 in found]


def _take_in(tx: Tx, here: Here) -> Wave:
    """What came back and what was said, and the step to ``orienting``."""
    made: list[Fact] = []
    if here.wave.ordinal > 1:
        before = waves.load(tx.connection, f"{here.session.session_id}-w{here.wave.ordinal - 1}")
        made.extend(exchange.fact() for exchange in exchanges(tx.connection, before))
        made.extend(_notices(tx, here, before))
    made.extend(_words(tx, here))
    _record(tx, here, made, job="words")
    if here.wave.ordinal > 1:
        regranted_facts.pin_for_wave(tx, _look(here), lambda: pinned_profile(tx.connection, here))
    (total, new) = tx.execute(
        "SELECT count(*), sum(ordinal=?) FROM session_facts WHERE session_id=?",
        (here.wave.ordinal, here.session.session_id),
    ).fetchone()
    counted = observation_jobs.summarize_wave(tx.connection, here.wave.wave_id)
    observed = WaveObserved(
        facts=total,
        new=new or 0,
        jobs=counted.planned,
        refused=sum(counted.refused.values()),
    )
    return waves.advance(tx, here.wave.wave_id, "orienting", detail=observed)


def _notices(tx: Tx, here: Here, before: Wave) -> list[Fact]:
    """What cockpit tells the agent by itself: an interruption, a wave that failed."""
    row = tx.execute("SELECT stop FROM plans WHERE wave_id=?", (before.wave_id,)).fetchone()
    place = f"notice:{before.ordinal}"
    if row is not None and row[0] == "interrupted" and not here.session.interactive:
        return [spoken("notice", place, "Your last answer was interrupted; go on with the task.")]
    if row is not None and row[0] == "interrupted":
        return [spoken("notice", place, f"The person interrupted you. {DISCUSS}")]
    if row is not None and row[0] == "length":
        return [spoken("notice", place, "Your last answer was cut at its length limit; go on.")]
    if row is not None and row[0] == "cut":
        return [spoken("notice", place, "Your last answer was cut off by the connection; go on.")]
    return []


def _words(tx: Tx, here: Here) -> list[Fact]:
    """Everything that the person said after the task itself, numbered, pinned."""
    said = messages.select_for_session(tx.connection, here.session.session_id, role="person")
    return [
        spoken("person", f"person:{number}", message.text)
        for number, message in enumerate(said)
        if number > 0
    ]


def _look(here: Here) -> ObservingWave:
    wave = here.wave
    return ObservingWave(here.session.session_id, wave.wave_id, wave.ordinal, wave.pinned_now)


def _record(tx: Tx, here: Here, made: Sequence[Fact], *, job: str) -> int:
    return facts.record(
        tx,
        session_id=here.session.session_id,
        wave_id=here.wave.wave_id,
        ordinal=here.wave.ordinal,
        pinned_now=here.wave.pinned_now,
        facts=made,
        job=job,
    )


def _tools(here: Here) -> list[Any]:
    kind = here.engine.types.get(here.session.task_type)
    reads_only = kind is not None and kind.reads_only
    role = here.engine.role(here.session.role)
    return [
        tool
        for tool in TOOLS
        if not (reads_only and tool.name in ACTIONS) and (role is None or tool.name in role.tools)
    ]


def _opening(connection: Any, wave: Wave) -> dict[str, Any]:
    (payload,) = connection.execute(
        "SELECT payload_json FROM events WHERE event_id=?", (wave.event_id,)
    ).fetchone()
    body: dict[str, Any] = json.loads(payload)
    return body
