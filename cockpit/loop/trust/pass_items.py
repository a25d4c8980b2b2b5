"""A context request that rules cover in part: the covered items are read, and only the others are draft for.

See ``docs/reference/trust.md``, coverage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.loop.decisions.approval_policy import approving_policy
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.trust.find_covering_rules import Coverage, count_uses, find_item_uses
from cockpit.loop.trust.learn_decision import record_passes
from cockpit.loop.trust.request_parts import AskedProposal
from cockpit.observe.preview_cost import sum_tokens
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests
from cockpit.store.sessions.sessions import Session

_SUFFIX = "-rules"


def request_id_by_rules(request_id: str) -> str:
    """Return the id of the request for those items of ``request_id`` that rules cover."""
    return f"{request_id}{_SUFFIX}"


def pass_covered_items(
    tx: Tx,
    settings: RuntimeSettings,
    session: Session,
    request_id: str,
    wave_id: str,
    call_id: str,
    body: Mapping[str, Any],
    risk: str,
) -> Mapping[str, Any]:
    """Request the items that rules cover, already approved; returns what is left of ``body``.

    Nothing is split where rules cover all of the request or none of it: then it is decided as a whole.
    """
    if approving_policy(session.policy, "context"):
        return body
    own_id = request_id_by_rules(request_id)
    draft = AskedProposal("context", own_id, session.session_id, wave_id, "", body, risk)
    uses = find_item_uses(tx, draft, session)
    passed = {use.what for use in uses}
    left = [item for item in body["items"] if item["item"] not in passed]
    if not uses or all(item["refused"] for item in left):
        return body
    coverage = Coverage(uses)
    context_requests.create(
        tx,
        request_id=own_id,
        session_id=session.session_id,
        wave_id=wave_id,
        call_id=call_id,
        purpose=str(body["purpose"]),
        question=str(body["question"]),
        escalation=str(body["escalation"]),
        items=[item for item in body["items"] if item["item"] in passed],
        decided_by=coverage.by,
    )
    count_uses(tx, uses, draft)
    record_passes(tx, settings.trust, draft, session, uses)
    names = ", ".join(use.what for use in uses)
    return {
        **body,
        "items": left,
        "total_tokens": sum_tokens(left),
        "notes": [f"Read without asking you, by your trust rules: {names}."],
    }
