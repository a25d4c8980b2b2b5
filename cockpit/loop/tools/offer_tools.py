"""Offer approved tools to sessions: pinned by wave, so that prompts stay the same within an epoch.

A change of the tools counts from the next wave on, and begins an epoch there. See
``docs/reference/tools.md``, sessions.
"""

from __future__ import annotations

import sqlite3

from cockpit.act.model_tools import TOOL_RECORDS, Call, ToolDef, parse_call
from cockpit.act.own_tools.check_arguments import parse_added_call
from cockpit.act.own_tools.tool_definition import (
    ToolDefinition,
    describe_for_model,
    read_definition,
)
from cockpit.loop.tools.added_tools import NOTHING_OFFERED, OfferedTools
from cockpit.loop.tools.rare_tools import Evidence, choose_rare_tools
from cockpit.loop.wave_context import Engine, WaveContext
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions.sessions import Session
from cockpit.store.sessions.waves import Wave
from cockpit.store.tools import offered_tools


def offer_tools(tx: Tx, engine: Engine, session: Session, wave: Wave, evidence: Evidence) -> None:
    """Pin the tools that the session is offered in a wave, where they differ from what it has.

    ``evidence`` decides about the rare ones of cockpit's own.
    """
    added = engine.added
    if added is None:
        return
    usable = _list_callable(engine, session, added.catalog.read_usable(tx.connection))
    sets = _load_sets(tx.connection, engine, session.session_id)
    last = sets[-1] if sets else NOTHING_OFFERED
    if last.ordinal >= wave.ordinal:
        return
    rare = choose_rare_tools(evidence, last.rare)
    if usable == last.definitions and rare == last.rare:
        return
    offered_tools.record(
        tx,
        session.session_id,
        wave.ordinal,
        [definition.body() for definition in usable],
        rare,
        wave_id=wave.wave_id,
        trace_id=session.trace_id,
    )
    sets.append(OfferedTools(wave.ordinal, usable, rare))


def forget_offers(engine: Engine, session_id: str) -> None:
    """Read again what a session was offered: another process may have run it since."""
    if engine.added is not None:
        engine.added.offered.pop(session_id, None)


def added_tools_of(context: WaveContext) -> OfferedTools:
    """Return the tools beside cockpit's own that the session's agent may call in this wave.

    A session that only reads, and a role that may not run commands, have those that cannot write. The same
    object is returned for every wave with the same tools.
    """
    current = _find_current(context)
    # The set of an older version, or of before the session became another type, may have more.
    definitions = _list_callable(context.engine, context.session, current.definitions)
    return OfferedTools(current.ordinal, definitions) if definitions else NOTHING_OFFERED


def rare_tools_of(context: WaveContext) -> frozenset[str]:
    """Return the names of cockpit's rare tools that the session is offered in this wave."""
    return frozenset(_find_current(context).rare)


def _find_current(context: WaveContext) -> OfferedTools:
    added, session_id = context.engine.added, context.session.session_id
    if added is None:
        return NOTHING_OFFERED
    sets = added.offered.get(session_id)
    if sets is None:
        sets = context.store.read_now(
            lambda connection: _load_sets(connection, context.engine, session_id)
        )
    return next(
        (each for each in reversed(sets) if each.ordinal <= context.wave.ordinal), NOTHING_OFFERED
    )


def is_newly_offered(context: WaveContext) -> bool:
    """Tell whether the session's tools are others than in the wave before."""
    added = context.engine.added
    sets = added.offered.get(context.session.session_id, ()) if added is not None else ()
    return any(each.ordinal == context.wave.ordinal for each in sets)


def describe_added(definition: ToolDefinition) -> ToolDef:
    """Return an added tool as a model is told of it."""
    return ToolDef(definition.name, describe_for_model(definition), definition.parameters)


def list_added(context: WaveContext) -> tuple[ToolDef, ...]:
    """Return the added tools of the wave for the list of capabilities: names, and where they are from.

    Their descriptions are others' words, and stay out of the system text.
    """
    return tuple(
        ToolDef(
            each.name,
            f"a tool of the MCP server {each.place}"
            if each.kind == "mcp"
            else f"a tool of {'the user' if each.place == 'user' else each.place.replace(':', ' ')}",
            {},
        )
        for each in added_tools_of(context).definitions
    )


def parse_session_call(context: WaveContext, name: str, arguments_json: str) -> Call:
    """Read a call of any tool of the session. Raises ``MalformedCall`` with a message for the model."""
    if name not in TOOL_RECORDS:
        definition = added_tools_of(context).find(name)
        if definition is not None:
            return parse_added_call(definition, arguments_json)
    return parse_call(name, arguments_json)


def _list_callable(
    engine: Engine, session: Session, definitions: tuple[ToolDefinition, ...]
) -> tuple[ToolDefinition, ...]:
    """Return the tools that the session may call: with its task type, and in its role."""
    task_type, role = engine.task_types.get(session.task_type), engine.role(session.role)
    reads_only = task_type is not None and task_type.reads_only
    if not reads_only and (role is None or "run" in role.tools):
        return definitions
    if role is not None and role.tools == ("finish",):
        return ()
    return tuple(each for each in definitions if _only_reads(engine, each))


def _only_reads(engine: Engine, definition: ToolDefinition) -> bool:
    """Whether a call of the tool cannot change anything, by the sandbox or by the user's own word."""
    if definition.kind == "own":
        return definition.effects == "reads"
    added = engine.added
    server = added.catalog.servers.get(definition.place) if added is not None else None
    return server is not None and definition.function in server.reads


def _load_sets(
    connection: sqlite3.Connection, engine: Engine, session_id: str
) -> list[OfferedTools]:
    if engine.added is None:
        return []
    sets = engine.added.offered.get(session_id)
    if sets is None:
        sets = [
            OfferedTools(ordinal, tuple(read_definition(body) for body in bodies), rare)
            for ordinal, bodies, rare in offered_tools.select_for_session(connection, session_id)
        ]
        engine.added.offered[session_id] = sets
    return sets
