"""The tools of a session: its role's, and no actions for a task type that only reads.

A session of such a type may propose to become another one, which the user decides. Rare tools are offered
where something asks for them. See ``docs/reference/actions.md``, tools.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from cockpit.act.model_tools import ACTIONS, GROW, PLANNING, RESUME, TOOLS, WITH_TASK, ToolDef
from cockpit.core.text import pluralize
from cockpit.loop.decisions import task_type_tool
from cockpit.loop.phases.tool_results import Exchange
from cockpit.loop.planner.plan_target import PLAN_TYPE
from cockpit.loop.reentry.kept_actions import read_held_in
from cockpit.loop.skills.created_skill import SKILL_TOOL, offers_skills
from cockpit.loop.tools.offer_tools import added_tools_of, rare_tools_of
from cockpit.loop.tools.rare_tools import PROFILE_CHANGE, RARE, Attempt, Evidence
from cockpit.loop.wave_context import WaveContext
from cockpit.store.context import packets, wave_feedback
from cockpit.store.sessions import waves

LOST = ("budget", "band_ceiling", "source_cap", "low_utility")
"""Why facts are dropped that nothing else in the packet says."""


def tools_of_session(context: WaveContext) -> tuple[ToolDef, ...]:
    """Return cockpit's tools that the session's agent is offered in this wave, in their fixed order."""
    return _tools_of(context, rare_tools_of(context))


def callable_tools(context: WaveContext) -> tuple[ToolDef, ...]:
    """Return cockpit's tools that the session's agent may call: also the rare ones without an offer."""
    return _tools_of(context, frozenset(RARE))


def _tools_of(context: WaveContext, rare: frozenset[str]) -> tuple[ToolDef, ...]:
    engine, session = context.engine, context.session
    task_type, role = engine.task_types.get(session.task_type), engine.role(session.role)
    reads_only = task_type is not None and task_type.reads_only
    plans = session.task_type == PLAN_TYPE and role is None
    allowed = {tool.name for tool in TOOLS}
    if role is not None:
        allowed = {*role.tools, RESUME}
    if role is not None or plans or not reads_only:
        allowed -= {task_type_tool.TOOL}
    if reads_only:
        allowed -= set(ACTIONS)
    if not offers_skills(engine.settings):
        allowed -= {SKILL_TOOL}
    if not plans:
        allowed -= set(PLANNING)
    if plans or not grows_tools(context):
        allowed -= {GROW}
    if session.task_id is None:
        allowed -= set(WITH_TASK)
    if not added_tools_of(context).definitions and not allowed & {*ACTIONS, GROW}:
        allowed -= {RESUME}
    return tuple(tool for tool in TOOLS if tool.name in allowed - (set(RARE) - rare))


def read_evidence(
    context: WaveContext,
    *,
    connection: sqlite3.Connection | None = None,
    results: Sequence[Exchange] = (),
    messages: Sequence[str] = (),
) -> Evidence:
    """Return what decides about the rare tools of a wave: ``results`` of the wave before, and the messages.

    ``connection`` reads what happened in the session; without it nothing has.
    """
    session, offered = context.session, rare_tools_of(context)
    before = waves.wave_id_of(session.session_id, context.wave.ordinal - 1)
    kind = context.engine.task_types.get(session.task_type)
    is_local = kind is not None and "range" in session.target and bool(kind.tools_local)
    lines = () if kind is None else kind.tools_local if is_local else kind.tools
    return Evidence(
        allowed=frozenset(tool.name for tool in callable_tools(context)),
        task_type=session.task_type,
        type_lines=lines,
        words="\n".join([session.words, *messages]),
        on_github=context.engine.repo is not None,
        attempts=tuple(_read_attempt(each) for each in results),
        lost=_find_lost(connection, context)
        if connection and PROFILE_CHANGE not in offered
        else "",
        keeps_action=bool(
            connection and RESUME not in offered and read_held_in(connection, before)
        ),
    )


def _read_attempt(exchange: Exchange) -> Attempt:
    is_request = exchange.call == "request_context" and exchange.status != "malformed"
    scope = tuple(map(str, exchange.arguments.get("scope", ()))) if is_request else ()
    return Attempt(exchange.call, scope, exchange.result)


def _find_lost(connection: sqlite3.Connection, context: WaveContext) -> str:
    """Return what the packet before dropped for want of room, or what the agent had to ask for again."""
    session_id, ordinal = context.session.session_id, context.wave.ordinal
    before = packets.find_before(connection, session_id, ordinal)
    drops = before.packet.drops if before else ()
    dropped = sum(count for reason, count in drops if reason in LOST)
    if dropped:
        return f"{pluralize(dropped, 'fact')} had no room"
    # A wave is known to have lacked something once the wave after it has asked for that.
    ids = [waves.wave_id_of(session_id, each) for each in range(max(ordinal - 2, 1), ordinal)]
    judged = wave_feedback.find_latest_by_wave(connection, ids)
    missed = next(
        (each.assessment.missed[0] for each in judged.values() if each.assessment.missed), None
    )
    return f"{missed.item} was missing"[:80] if missed is not None else ""


def grows_tools(context: WaveContext) -> bool:
    """Whether a tool could grow here and be called afterwards."""
    engine = context.engine
    can_grow = engine.settings.grow_tool is not None and engine.added is not None
    return can_grow and engine.ground.sandbox.works
