"""Observe: everything that enters a wave's context.

The first wave takes in the baseline and the task type's deterministic context. A later wave waits for the
decisions on the context requests of the wave before, runs the granted jobs, and takes in the results of
that wave's calls and the user's messages. See ``docs/reference/loop.md``, phases.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from cockpit.loop.decisions import task_type_tool
from cockpit.loop.decisions.await_decision import DISCUSS_NOTICE, DecidedProposal, await_decision
from cockpit.loop.intake.baseline_facts import tools_fact
from cockpit.loop.knowledge.gather_knowledge import (
    request_knowledge,
)
from cockpit.loop.phases.fetch_by_rules import (
    has_acted,
    request_by_rules,
)
from cockpit.loop.phases.orienting import load_pinned_profile
from cockpit.loop.phases.run_observation_jobs import list_work, run_observation_jobs
from cockpit.loop.phases.session_tools import read_evidence, tools_of_session
from cockpit.loop.phases.take_in_task import (
    find_opening,
    propose_written,
    record_facts,
    take_in_task,
    tell_of_missing,
)
from cockpit.loop.phases.tool_results import (
    Exchange,
    pinned_text_fact,
    read_exchanges,
    release_kept_results,
)
from cockpit.loop.phases.wave_prompt import estimate_overheads, tools_of_wave
from cockpit.loop.reentry.reads_before_action import request_evidence
from cockpit.loop.repeated_calls import read_repeat, repeat_notice
from cockpit.loop.skills.session_skills import refresh_skills, take_in_skills
from cockpit.loop.skills.skill_vectors import compare_skills
from cockpit.loop.tools.offer_tools import is_newly_offered, list_added, offer_tools
from cockpit.loop.user_message import USER_MESSAGE_SENT
from cockpit.loop.wave_context import EVENT_LEASE_S, WaveContext
from cockpit.observe.fan_out import MAX_JOBS
from cockpit.observe.stale_files import FileRead
from cockpit.store.context import regranted_facts
from cockpit.store.context.facts import Fact, ObservingWave
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionWaiting
from cockpit.store.sessions import (
    context_requests,
    events,
    messages,
    plans,
    sessions,
    waves,
)
from cockpit.store.sessions.context_requests import (
    ContextRequest,
)
from cockpit.store.sessions.waves import Wave

KEPT_SHARE = 16
"""Results that are kept for their meaning take at most this part of the budget; older ones compete."""


async def observe(context: WaveContext) -> Wave:
    """Take a wave from ``observing`` to ``orienting``.

    Raises :class:`~cockpit.loop.decisions.await_decision.DeadlinePassed` when no decision comes in time.
    """
    await refresh_skills(context.engine)
    await compare_skills(context)
    opening = context.store.read_now(lambda connection: find_opening(connection, context.wave))
    if opening is not None:
        await take_in_task(context, opening)
        await propose_written(context, opening)
    await _await_requests(context)
    await _await_discussion(context)
    await request_evidence(context)
    await request_by_rules(context)
    await request_knowledge(context)
    work = context.store.read_now(
        lambda connection: list_work(connection, context, _list_changed_files(connection, context))
    )
    await run_observation_jobs(context, work)
    return await context.store.write(lambda tx: _take_in_results(tx, context))


async def _await_requests(context: WaveContext) -> None:
    """Wait for the decision on every pending request of the session, and store it with the request."""
    pending = context.store.read_now(
        lambda connection: context_requests.select_by_status(
            connection, context.session.session_id, "pending"
        )
    )
    for request in pending:
        if request.proposal_id is None:
            continue
        decided = await await_decision(context, request.proposal_id)
        await context.store.write(_settle_request(request, decided))


def _settle_request(
    request: ContextRequest, decided: DecidedProposal
) -> Callable[[Tx], ContextRequest]:
    offered = [str(item["item"]) for item in request.items if not item.get("refused")]
    narrowed = decided.proposal.narrowed
    remaining = [item for item in offered if narrowed is None or item in narrowed]
    granted = remaining if decided.status == "approved" else []
    by = decided.proposal.decided_by or ""
    return lambda tx: context_requests.apply_decision(
        tx, request.request_id, decided.status, approved=granted, decided_by=by
    )


async def _await_discussion(context: WaveContext) -> None:
    """After a discussion that began without a message, wait for the user's message.

    Only in an interactive session. The first wave's own proposal may be the discussed one.
    """
    if not context.session.interactive:
        return
    since = context.store.read_now(lambda connection: _find_silent_discussion(connection, context))
    if since is None:
        return
    session_id = context.session.session_id
    detail = SessionWaiting(for_="person", why="what is on your mind?")
    await context.store.write(
        lambda tx: sessions.set_status(tx, session_id, "waiting", detail=detail)
    )

    def read_message() -> bool | None:
        return context.store.read_now(
            lambda connection: _has_message_since(connection, session_id, since) or None
        )

    await context.engine.change_waiter.wait_for(read_message)
    await context.store.write(lambda tx: sessions.set_status(tx, session_id, "running"))


def _find_silent_discussion(connection: sqlite3.Connection, context: WaveContext) -> str | None:
    """Return when the last discussion without a message began, if no message has come since."""
    session_id = context.session.session_id
    row = connection.execute(
        "SELECT max(decided_at) FROM proposals WHERE session_id=? AND status='discussed'"
        " AND reason='' AND wave_id IN (?,?)",
        (session_id, _previous_wave_id(context), context.wave.wave_id),
    ).fetchone()
    if row is None or row[0] is None:
        return None
    return None if _has_message_since(connection, session_id, row[0]) else str(row[0])


def _has_message_since(connection: sqlite3.Connection, session_id: str, since: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM messages WHERE session_id=? AND role='person' AND created_at>=? LIMIT 1",
        (session_id, since),
    ).fetchone()
    return row is not None


def _list_changed_files(connection: sqlite3.Connection, context: WaveContext) -> list[FileRead]:
    """List the granted files of the session, when an action of the wave before may have changed them.

    The grant covers the path: a file that changed is read again, and replaces what was read before.
    """
    if not has_acted(connection, context):
        return []
    rows = connection.execute(
        "SELECT s.source_ref, json_extract(f.provenance_json, '$.path'),"
        " json_extract(f.provenance_json, '$.sha256')"
        " FROM session_facts AS s JOIN observed_facts AS f USING(fact_id)"
        " WHERE s.session_id=? AND s.source_type='file' AND s.superseded_at IS NULL"
        " ORDER BY s.ordinal, s.position LIMIT ?",
        (context.session.session_id, MAX_JOBS),
    )
    return [FileRead(str(item), str(path), str(sha256)) for item, path, sha256 in rows]


def _take_in_results(tx: Tx, context: WaveContext) -> Wave:
    """Store the results of the wave before and the user's messages, and step to ``orienting``."""
    new_facts: list[Fact] = []
    results: list[Exchange] = []
    messages = _user_messages(tx, context)
    if context.wave.ordinal == 1:
        new_facts += tell_of_missing(tx, context)
    if context.wave.ordinal > 1:
        previous = waves.load_in(tx, _previous_wave_id(context))
        if previous.phase == "failed_terminal":
            new_facts.append(_given_up_notice(tx, previous))
            results = []
        else:
            results = read_exchanges(tx.connection, previous)
        evidence = read_evidence(
            context,
            connection=tx.connection,
            results=results,
            messages=[message.full.text for message in messages],
        )
        offer_tools(tx, context.engine, context.session, context.wave, evidence)
        new_facts += [result.fact() for result in results]
        new_facts += _notices(tx, context, previous)
        new_facts += _repeat_notice(tx, context, results)
        changed = _changed_type(tx, context)
        new_facts += changed
        if not changed and is_newly_offered(context):
            new_facts.append(tools_fact((*tools_of_session(context), *list_added(context))))
    new_facts += messages
    record_facts(tx, context, new_facts, job="words")
    take_in_skills(tx, context)
    if context.wave.ordinal > 1:
        profile = load_pinned_profile(tx.connection, context)
        tools = tools_of_wave(tx.connection, context)
        overheads = estimate_overheads(profile, tools, context.wave.ordinal)
        most = profile.total_token_budget // KEPT_SHARE
        release_kept_results(tx, context.wave, results, most)
        regranted_facts.pin_for_wave(tx, _look_of(context), profile, overheads)
    return waves.advance(tx, context.wave.wave_id, "orienting")


def _given_up_notice(tx: Tx, previous: Wave) -> Fact:
    """Tell the agent that the wave before was given up: what it planned may have run."""
    (error,) = tx.execute(
        "SELECT coalesce(error_detail, '') FROM wave_runs WHERE wave_id=?", (previous.wave_id,)
    ).fetchone()
    text = (
        f"Wave {previous.ordinal} was given up: {error} What it planned may have run, wholly, in part or"
        " not at all: look first."
    )
    return pinned_text_fact("notice", f"notice:{previous.ordinal}", text)


def _notices(tx: Tx, context: WaveContext, previous: Wave) -> list[Fact]:
    """Return cockpit's notice to the agent that its last answer was interrupted or cut, if it was."""
    plan = plans.find(tx.connection, previous.wave_id)
    match plan.stop if plan is not None else "":
        case "interrupted" if context.session.interactive:
            text = f"The user interrupted you. {DISCUSS_NOTICE}"
        case "interrupted":
            text = "Your last answer was interrupted. Continue with the task."
        case "length":
            text = "Your last answer was cut at its length limit. Continue."
        case "cut":
            text = "Your last answer was cut off by the connection. Continue."
        case _:
            return []
    return [pinned_text_fact("notice", f"notice:{previous.ordinal}", text)]


def _repeat_notice(tx: Tx, context: WaveContext, results: Sequence[Exchange]) -> list[Fact]:
    """Return the notice that the session repeats itself; one that was stuck begins with it again."""
    was_stuck = context.session.result.get("wave") == str(context.wave.ordinal - 1)
    repeat = read_repeat(tx.connection, context.session, results, is_resumed=was_stuck)
    return [] if repeat is None else [repeat_notice(repeat)]


def _changed_type(tx: Tx, context: WaveContext) -> list[Fact]:
    """Return the tools and the Definition of Done of a session whose task type was changed."""
    kind = context.engine.task_types.get(context.session.task_type)
    count = sessions.count_type_changes(tx, context.session.session_id)
    if not count or kind is None:
        return []
    text = task_type_tool.describe_change(kind, context.session.words)
    return [
        tools_fact((*tools_of_session(context), *list_added(context))),
        pinned_text_fact("notice", f"notice:task-type-{count}", text),
    ]


def _user_messages(tx: Tx, context: WaveContext) -> list[Fact]:
    """Return every message of the user after the task itself, numbered, as pinned facts.

    Those that came since the wave began are the wave's as well: no other wave begins for them.
    """
    wave, session = context.wave, context.session
    sent = messages.select_for_session(tx.connection, session.session_id, role="person")
    if sent and sent[-1].created_at >= wave.pinned_now:
        waiting = events.select_waiting(tx, session.source).of_type(USER_MESSAGE_SENT)
        events.claim_waiting(tx, waiting, owner=wave.wave_id, lease_s=EVENT_LEASE_S)
    return [
        pinned_text_fact("person", f"person:{number}", message.text)
        for number, message in enumerate(sent)
        if number > 0
    ]


def _look_of(context: WaveContext) -> ObservingWave:
    wave = context.wave
    return ObservingWave(context.session.session_id, wave.wave_id, wave.ordinal, wave.pinned_now)


def _previous_wave_id(context: WaveContext) -> str:
    return f"{context.session.session_id}-w{context.wave.ordinal - 1}"
