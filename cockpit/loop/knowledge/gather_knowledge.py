"""A wave's own search: passages come when its task, or a new message, asks for knowledge.

The search goes through the gateway like any other item: an approved request that says why, jobs, facts in the
``exploration`` band. The user approves it by ``enable_rag``. See ``docs/reference/knowledge.md``.
"""

from __future__ import annotations

import sqlite3

from cockpit.core.secrets import mask
from cockpit.loop.intake.task_words import read_task_words
from cockpit.loop.knowledge import knowledge_settings
from cockpit.loop.phases.propose_context_request import open_gateway, preview_record
from cockpit.loop.wave_context import WaveContext
from cockpit.observe.context_request import ContextRequest as GatewayRequest
from cockpit.observe.knowledge.needs_knowledge import Need, needs_knowledge
from cockpit.observe.scope_items import ScopeItem, parse_item
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests, messages
from cockpit.store.sessions.context_requests import ContextRequest

DECIDER = "policy:knowledge"
MOST_CHARS = 1_500
"""Characters of a question that are searched for."""


def is_by_librarian(request: ContextRequest) -> bool:
    """Whether cockpit's own search made the request."""
    return request.decided_by == DECIDER


def find_question(connection: sqlite3.Connection, context: WaveContext) -> tuple[str, Need] | None:
    """Return what the wave has to search for, and why; None where it searches for nothing.

    That is the newest message of the user that no earlier wave has searched for: the task in the first wave,
    and what the user said since the wave before in a later one.
    """
    knowledge = context.engine.settings.knowledge
    if not knowledge_settings.ENABLED or not knowledge.enable_rag:
        return None
    session_id, ordinal = context.session.session_id, context.wave.ordinal
    sent = messages.select_for_session(connection, session_id, role="person")
    texts = [message.text for message in sent[1:]]  # the first is the task
    if ordinal == 1:
        # Of a role, those of its task: the role's own text would ask for knowledge in every session.
        session = context.session
        texts.insert(0, read_task_words(connection, session) if session.role else session.words)
    else:
        since = _time_of_wave(connection, session_id, ordinal - 1)
        texts = [message.text for message in sent[1:] if message.created_at >= since]
    for words in reversed(texts):
        need = needs_knowledge(words)
        if need.is_needed:
            question = " ".join(words.split())[:MOST_CHARS]
            searched = _has_searched(connection, session_id, question)
            return None if searched else (question, need)
    return None


def _time_of_wave(connection: sqlite3.Connection, session_id: str, ordinal: int) -> str:
    row = connection.execute(
        "SELECT created_at FROM wave_runs WHERE session_id=? AND ordinal=?", (session_id, ordinal)
    ).fetchone()
    return str(row[0]) if row is not None else ""


def _has_searched(connection: sqlite3.Connection, session_id: str, question: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM context_requests WHERE session_id=? AND decided_by=? AND question=? LIMIT 1",
        (session_id, DECIDER, mask(question)),
    ).fetchone()
    return row is not None


async def request_knowledge(context: WaveContext) -> None:
    """Record an approved request for the passages that answer the wave's question, if there are any."""
    question = context.store.read_now(lambda connection: find_question(connection, context))
    if question is None:
        return
    words, need = question
    if context.session.interactive:
        context.engine.librarian.is_beside_screen = True
    item = parse_item(str(ScopeItem("knowledge", words)))
    (preview,) = await open_gateway(context).preview(
        GatewayRequest("knowledge", words, (item,), rev=context.session.rev)
    )
    if context.session.interactive:
        await context.engine.librarian.follow_in_background()
    if preview.refused:
        return  # nothing answers: the agent may ask in words of its own
    request_id = f"q-{context.wave.wave_id}-knowledge"

    def write(tx: Tx) -> None:
        context_requests.create(
            tx,
            request_id=request_id,
            session_id=context.session.session_id,
            wave_id=context.wave.wave_id,
            purpose=f"knowledge: {need.why}",
            question=words,
            items=[preview_record(preview)],
            decided_by=DECIDER,
        )

    await context.store.write(write)
