"""The result of a session, read from the store: one JSON document, or its story as text."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from cockpit.loop.planner.read_session_estimate import read_session_estimate
from cockpit.loop.views.prompt_cost import read_prompt_cost
from cockpit.loop.views.review_text import find_review
from cockpit.loop.views.story import Storyteller
from cockpit.store.context import packets
from cockpit.store.journal import journal
from cockpit.store.sessions import outbox, proposals, sessions, waves
from cockpit.store.sessions.session_states import select_asking, state_of


def session_document(connection: sqlite3.Connection, session_id: str) -> dict[str, Any]:
    """Return the document that ``--output-format json`` prints.

    ``rendered_tokens`` counts the prompt of a packet, None where it was not measured; ``cached_expected``,
    ``cached_reported``, ``cost_units``, ``epoch`` and ``prices`` are those of
    :class:`~cockpit.loop.views.prompt_cost.PromptCost`. ``bands`` maps
    each band to its tokens ``used, min, target, max``. ``decided_by`` is None while a
    proposal waits. ``usage`` counts tokens; ``cost_usd`` is None where no price is known. ``result``
    is what the session ended with (``status``, ``summary``), empty while it runs; that of a review has its
    text in ``review``. ``estimate`` is that of
    :func:`~cockpit.loop.planner.read_session_estimate.read_session_estimate`. Raises
    :class:`~cockpit.core.errors.NotFound`.
    """
    session = sessions.load(connection, session_id)
    review = find_review(connection, session_id)
    return {
        "session_id": session_id,
        "task_type": session.task_type,
        "state": state_of(session, select_asking(connection)),
        "status": session.status,
        "waves": [
            {
                "wave_id": wave.wave_id,
                "phase": wave.phase,
                "packet": _packet(connection, wave.wave_id),
            }
            for wave in waves.select_for_session(connection, session_id)
        ],
        "proposals": [
            {
                "proposal_id": proposal.proposal_id,
                "kind": proposal.kind,
                "status": proposal.status,
                "decided_by": proposal.decided_by,
            }
            for proposal in proposals.select_for_session(connection, session_id)
        ],
        "actions": [
            {"action_id": action.action_id, "type": action.action_type, "phase": action.phase}
            for action in outbox.select_for_session(connection, session_id)
        ],
        "usage": {
            "input_tokens": session.input_tokens,
            "output_tokens": session.output_tokens,
            "cached_tokens": session.cached_tokens,
            "cost_usd": session.cost_usd,
        },
        "estimate": read_session_estimate(connection, session_id),
        "result": {**session.result, **(review.record() if review else {})},
    }


def session_text(connection: sqlite3.Connection, session_id: str, *, width: int = 0) -> str:
    """Return the story of a session, from its first row to its last, as one text.

    ``width`` is that of the terminal that it is for; 0 where it is for none.
    """
    agents = bool(sessions.load(connection, session_id).agent)
    teller, texts, after = Storyteller(hints=False, agents=agents, width=width), [], 0
    while rows := journal.rows(connection, after=after, session_id=session_id):
        texts += [teller.tell(row) for row in rows]
        after = rows[-1].seq
    return "".join(texts)


def _packet(connection: sqlite3.Connection, wave_id: str) -> dict[str, Any] | None:
    stored = packets.find(connection, wave_id)
    if stored is None:
        return None
    body = json.loads(stored.body_json)
    return {
        "digest": stored.digest,
        "token_used": body["token_used"],
        **read_prompt_cost(connection, stored).body(),
        "token_budget": body["token_budget"],
        "bands": {
            band["band"]: {name: band[name] for name in ("used", "min", "target", "max")}
            for band in body["bands"]
        },
    }
