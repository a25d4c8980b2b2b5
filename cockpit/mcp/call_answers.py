"""What an outside agent is told of a call: where its proposal stands, what came back, what was read."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cockpit.core.errors import NotFound
from cockpit.loop.decisions import profile_requests
from cockpit.loop.phases.propose_context import request_id
from cockpit.loop.phases.tool_exchange import clipped
from cockpit.loop.phases.tool_results import exchanges
from cockpit.observe.scope_items import ScopeRefused, parse_item
from cockpit.store.context import facts
from cockpit.store.sessions import plans, proposals, waves
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.waves import Wave


@dataclass(frozen=True, slots=True)
class Given:
    """A fact that was granted: the scope item that yields it again, and its words."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call stands. ``status`` is pending (a person decides), working (decided, being carried
    out), or how it ended: approved, narrowed, rejected, discussed, expired, confirmed, failed,
    uncertain or refused. ``told`` is for the agent."""

    status: str
    told: str
    proposal_id: str
    given: tuple[Given, ...] = ()


def answered(
    connection: sqlite3.Connection, session_id: str, proposal_id: str, *, settled: bool
) -> Answer:
    """The session's last call, or the one that ``proposal_id`` was about.

    ``settled`` says that nothing of the session runs any more. Raises :class:`NotFound`.
    """
    if proposal_id:
        wave = waves.load(connection, proposals.load(connection, proposal_id).wave_id)
    else:
        wave = _last(connection, session_id)
    plan = plans.find(connection, wave.wave_id)
    if plan is None or not plan.calls:
        raise NotFound(f"Nothing was called in wave {wave.wave_id}.")
    call = plan.calls[0]
    shown = _proposal(connection, wave, call)
    identity = "" if shown is None else shown.proposal_id
    if shown is not None and shown.status == "pending":
        return Answer("pending", f"A person decides: {shown.title}.", identity)
    if not settled and wave.wave_id == _last(connection, session_id).wave_id:
        return Answer("working", "It was decided and is being carried out.", identity)
    came = exchanges(connection, wave)[0]
    return Answer(came.status, clipped(came.result), identity, _given(connection, wave, call))


def _last(connection: sqlite3.Connection, session_id: str) -> Wave:
    """The newest wave in which the agent called something."""
    row = connection.execute(
        "SELECT w.wave_id FROM wave_runs w JOIN plans p ON p.wave_id=w.wave_id"
        " WHERE w.session_id=? AND p.calls_json<>'[]' ORDER BY w.ordinal DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    if row is None:
        raise NotFound("Nothing was called yet.")
    return waves.load(connection, str(row[0]))


def _proposal(
    connection: sqlite3.Connection, wave: Wave, call: Mapping[str, Any]
) -> Proposal | None:
    """The newest proposal that a call made: the person's edit of it, where there is one."""
    key = str(call["key"])
    if call["name"] == "request_context":
        row = connection.execute(
            "SELECT proposal_id FROM context_requests WHERE request_id=?", (request_id(key),)
        ).fetchone()
        return None if row is None or row[0] is None else proposals.load(connection, row[0])
    if call["name"] == profile_requests.TOOL:
        row = connection.execute(
            "SELECT proposal_id FROM proposals WHERE proposal_id=?",
            (profile_requests.proposal_id(key),),
        ).fetchone()
        return None if row is None else proposals.load(connection, row[0])
    made = proposals.select_for_action(connection, wave.wave_id, key)
    return made[-1] if made else None


def _given(
    connection: sqlite3.Connection, wave: Wave, call: Mapping[str, Any]
) -> tuple[Given, ...]:
    """The facts that a granted request brought, or found again, in the wave after it.

    Where the request was turned back because they stand in the session already, these: what was
    granted once is told again to an agent that has lost it.
    """
    if call["name"] != "request_context":
        return ()
    identity = request_id(str(call["key"]))
    row = connection.execute(
        "SELECT status FROM context_requests WHERE request_id=?", (identity,)
    ).fetchone()
    if row is None:
        found = _standing(connection, wave.session_id, call["arguments"].get("scope", ()))
    elif row[0] == "fetched":
        found = _ids(
            connection,
            "(job=? OR seen_at=?)",
            (wave.session_id, identity, wave.ordinal + 1),
        )
    else:
        found = []
    words = facts.load_texts(connection, found)
    return tuple(Given(words[fact].source_ref, words[fact].full) for fact in found)


def _standing(connection: sqlite3.Connection, session_id: str, scope: Sequence[str]) -> list[str]:
    """The facts of these items that the session holds now."""
    try:
        named = [str(parse_item(item)) for item in scope]
    except ScopeRefused:
        return []
    marks = ",".join("?" * len(named))
    return _ids(
        connection,
        f"superseded_at IS NULL AND source_ref IN ({marks})",
        (session_id, *named),
    )


def _ids(connection: sqlite3.Connection, term: str, values: Sequence[Any]) -> list[str]:
    return [
        str(fact_id)
        for (fact_id,) in connection.execute(
            f"SELECT fact_id FROM session_facts WHERE session_id=? AND {term}"  # noqa: S608 - our own terms
            " ORDER BY ordinal, position",
            tuple(values),
        )
    ]
