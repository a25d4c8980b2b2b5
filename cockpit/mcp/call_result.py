"""The result of an external agent's call: its proposal's status, its outcome, the granted facts."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.core.errors import NotFound
from cockpit.core.failure_lines import clip_middle
from cockpit.loop.decisions import profile_change_tool
from cockpit.loop.phases.propose_context_request import request_id_of_call
from cockpit.loop.phases.reading_calls import asks_to_read, request_arguments
from cockpit.loop.phases.tool_results import MAX_RESULT_CHARS, read_exchanges
from cockpit.mcp.render_packet import render_page
from cockpit.observe.scope_items import ScopeRefused, parse_item
from cockpit.store.context import facts
from cockpit.store.sessions import plans, proposals, waves
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.waves import Wave


class GrantedFact(Struct, frozen=True):
    """A fact that the user granted."""

    source: str
    """The scope item that reads the fact again."""
    text: str


class CallResult(Struct, frozen=True):
    """The state of a call."""

    status: str
    """``pending`` (the user decides), ``working`` (decided, not finished), or the end: ``approved``,
    ``narrowed``, ``rejected``, ``discussed``, ``expired``, ``confirmed``, ``failed``, ``uncertain``
    or ``refused``."""
    message: str
    """The outcome, for the agent."""
    proposal_id: str
    facts: tuple[GrantedFact, ...] = ()

    def body(self, tool: str, offset: int = 0) -> dict[str, Any]:
        """Return it as the agent reads it: its facts from ``offset`` on; ``tool`` goes on with it."""
        fields: dict[str, Any] = {"status": self.status, "result": self.message}
        if self.proposal_id:
            fields["proposal_id"] = self.proposal_id
        if self.status in ("pending", "working"):
            fields["next"] = f"Continue with other work; call {tool} with this proposal_id alone."
        facts = [{"source": fact.source, "text": fact.text} for fact in self.facts]
        return {**fields, **render_page("facts", facts, offset)} if facts else fields


def load_call_result(
    connection: sqlite3.Connection, session_id: str, proposal_id: str, *, idle: bool
) -> CallResult:
    """Load the result of the session's last call, or of the call that made ``proposal_id``.

    ``idle`` says that nothing of the session is running. Raises :class:`NotFound`.
    """
    if proposal_id:
        wave = waves.load(connection, proposals.load(connection, proposal_id).wave_id)
    else:
        wave = _last_calling_wave(connection, session_id)
    plan = plans.find(connection, wave.wave_id)
    if plan is None or not plan.calls:
        raise NotFound(f"Wave {wave.wave_id} has no call.")
    call = plan.calls[0]
    proposal = _newest_proposal(connection, wave, call)
    newest_id = "" if proposal is None else proposal.proposal_id
    if proposal is not None and proposal.status == "pending":
        return CallResult(
            "pending", f"Waiting for the user to decide: {proposal.title}.", newest_id
        )
    if not idle and wave.wave_id == _last_calling_wave(connection, session_id).wave_id:
        return CallResult("working", "The user decided; cockpit is carrying it out.", newest_id)
    exchange = read_exchanges(connection, wave)[0]
    granted = _granted_facts(connection, wave, call)
    result = clip_middle(exchange.result, MAX_RESULT_CHARS)
    return CallResult(exchange.status, result, newest_id, granted)


def _last_calling_wave(connection: sqlite3.Connection, session_id: str) -> Wave:
    row = connection.execute(
        "SELECT w.wave_id FROM wave_runs w JOIN plans p ON p.wave_id=w.wave_id"
        " WHERE w.session_id=? AND p.calls_json<>'[]' ORDER BY w.ordinal DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    if row is None:
        raise NotFound("You have not called anything yet.")
    return waves.load(connection, str(row[0]))


def _newest_proposal(
    connection: sqlite3.Connection, wave: Wave, call: Mapping[str, Any]
) -> Proposal | None:
    """The newest proposal of a call: the user's edit of it, if there is one."""
    key = str(call["key"])
    if asks_to_read(call):
        row = connection.execute(
            "SELECT proposal_id FROM context_requests WHERE request_id=?",
            (request_id_of_call(key),),
        ).fetchone()
        return None if row is None or row[0] is None else proposals.load(connection, row[0])
    if call["name"] == profile_change_tool.TOOL:
        row = connection.execute(
            "SELECT proposal_id FROM proposals WHERE proposal_id=?",
            (profile_change_tool.proposal_id_of_call(key),),
        ).fetchone()
        return None if row is None else proposals.load(connection, row[0])
    revisions = proposals.select_for_action(connection, wave.wave_id, key)
    return revisions[-1] if revisions else None


def _granted_facts(
    connection: sqlite3.Connection, wave: Wave, call: Mapping[str, Any]
) -> tuple[GrantedFact, ...]:
    """The facts that a granted request read, or matched again, in the wave after it.

    A request that a guard refused because the session has these facts already returns them too: an
    agent that lost them needs no second approval.
    """
    if not asks_to_read(call):
        return ()
    identity = request_id_of_call(str(call["key"]))
    row = connection.execute(
        "SELECT status FROM context_requests WHERE request_id=?", (identity,)
    ).fetchone()
    if row is None:
        fact_ids = _current_facts(
            connection, wave.session_id, request_arguments(call).get("scope", ())
        )
    elif row[0] == "fetched":
        fact_ids = _select_facts(
            connection,
            "(job=? OR seen_at=?)",
            (wave.session_id, identity, wave.ordinal + 1),
        )
    else:
        fact_ids = []
    texts = facts.load_texts(connection, fact_ids)
    return tuple(
        GrantedFact(texts[fact_id].source_ref, texts[fact_id].full) for fact_id in fact_ids
    )


def _current_facts(
    connection: sqlite3.Connection, session_id: str, scope: Sequence[str]
) -> list[str]:
    """The session's facts of these items that nothing newer replaced."""
    try:
        refs = [str(parse_item(item)) for item in scope]
    except ScopeRefused:
        return []
    marks = ",".join("?" * len(refs))
    return _select_facts(
        connection,
        f"superseded_at IS NULL AND source_ref IN ({marks})",
        (session_id, *refs),
    )


def _select_facts(connection: sqlite3.Connection, term: str, values: Sequence[Any]) -> list[str]:
    return [
        str(fact_id)
        for (fact_id,) in connection.execute(
            f"SELECT fact_id FROM session_facts WHERE session_id=? AND {term}"  # noqa: S608 - our own terms
            " ORDER BY ordinal, position",
            tuple(values),
        )
    ]
