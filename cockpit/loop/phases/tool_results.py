"""What came back from a wave's calls, read from the store: the next wave's exchanges."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.loop.decisions import profile_requests
from cockpit.loop.decisions.await_decision import Verdict
from cockpit.loop.phases.propose_context import request_id
from cockpit.loop.phases.tool_exchange import Exchange
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import context_requests, outbox, plans, proposals
from cockpit.store.sessions.outbox import OutboxAction
from cockpit.store.sessions.waves import Wave

_LEFT_OUT = ("stdout", "stderr", "duration_ms")
"""Of a receipt: what is told as text, and what differs from run to run for no reason."""


def exchanges(connection: sqlite3.Connection, wave: Wave) -> list[Exchange]:
    """The exchanges of ``wave``, whose calls are all settled, in the order of its calls."""
    plan = plans.find(connection, wave.wave_id)
    if plan is None:
        return []
    found = []
    for place, call in enumerate(plan.calls, start=1):
        result, status = _result(connection, wave, call)
        found.append(
            Exchange(
                wave=wave.ordinal,
                place=place,
                text=plan.text if place == 1 else "",
                call=str(call["name"]),
                arguments=call["arguments"],
                result=result,
                status=status,
            )
        )
    if not found and plan.text:
        status = "interrupted" if plan.stop in ("interrupted", "cut") else "said"
        found.append(Exchange(wave.ordinal, 1, plan.text, "", {}, "", status))
    return found


def _result(connection: sqlite3.Connection, wave: Wave, call: Mapping[str, Any]) -> tuple[str, str]:
    if call["error"]:
        return f"Not understood: {call['error']}", "malformed"
    if call["name"] == "finish":
        return "Not finished: another call of the same answer did not go through.", "refused"
    if call["name"] == "request_context":
        return _request(connection, wave, call)
    if call["name"] == profile_requests.TOOL:
        return profile_requests.told(connection, str(call["key"]))
    return _action(connection, wave, str(call["key"]))


def _request(
    connection: sqlite3.Connection, wave: Wave, call: Mapping[str, Any]
) -> tuple[str, str]:
    row = connection.execute(
        "SELECT 1 FROM context_requests WHERE request_id=?", (request_id(call["key"]),)
    ).fetchone()
    if row is None:
        refused = connection.execute(
            "SELECT json_extract(detail_json,'$.message') FROM journal WHERE session_id=?"
            " AND wave_id=? AND action=? ORDER BY seq",
            (wave.session_id, wave.wave_id, str(Action.CONTEXT_REFUSED)),
        ).fetchall()
        return f"Refused: {'; '.join(message for (message,) in refused)}", "refused"
    request = context_requests.load(connection, request_id(call["key"]))
    if request.status != "fetched" or request.proposal_id is None:
        return _undone(connection, request)
    barred = {str(item["item"]): item["refused"] for item in request.items if item["refused"]}
    asked = [str(item["item"]) for item in request.items if not item["refused"]]
    kept = [item for item in asked if item in request.approved]
    left = [item for item in asked if item not in request.approved]
    verb = f"Narrowed by {request.decided_by} to" if left else f"Approved by {request.decided_by}:"
    lines = [f"{verb} {', '.join(kept)}."]
    if left:
        lines.append(f"Not granted: {', '.join(left)}.")
    lines += [f"{item}: cannot be read: {reason}" for item, reason in barred.items()]
    for outcome in request.outcomes:
        if outcome.get("error"):
            lines.append(f"{outcome['item']}: could not be read: {outcome['error']}")
    lines.append("What was read stands in the context under its source.")
    return "\n".join(lines), "narrowed" if left else "approved"


def _undone(
    connection: sqlite3.Connection, request: context_requests.ContextRequest
) -> tuple[str, str]:
    if request.proposal_id is None:
        return "Not read.", "refused"
    verdict = Verdict(proposals.load(connection, request.proposal_id))
    return f"{verdict.told} Nothing was read.", verdict.status


def _action(connection: sqlite3.Connection, wave: Wave, key: str) -> tuple[str, str]:
    action = next(
        item for item in outbox.select_for_wave(connection, wave.wave_id) if item.key == key
    )
    receipts = outbox.select_receipts(connection, action.action_id)
    if not receipts:
        return _without_receipt(connection, action)
    last = receipts[-1]
    told = f"{last.summary}\n{_readable(last.detail)}".strip()
    return told, "confirmed" if action.phase == "confirmed" else "failed"


def _without_receipt(connection: sqlite3.Connection, action: OutboxAction) -> tuple[str, str]:
    if action.phase == "uncertain":
        return (
            "It was cut off and nobody can tell whether it happened. It was not repeated. "
            + action.last_error,
            "uncertain",
        )
    ended = proposals.select_for_action(connection, action.wave_id, action.key)
    if ended and ended[-1].status in ("discussed", "rejected", "expired"):
        verdict = Verdict(ended[-1])
        return verdict.told, verdict.status
    return f"It did not run: {action.last_error}", "refused"


def _readable(detail: Mapping[str, Any]) -> str:
    """A receipt's detail as text for a model: outputs as they are, the rest in one line."""
    texts = [str(detail[name]) for name in ("stdout", "stderr") if detail.get(name)]
    rest = {
        name: value
        for name, value in detail.items()
        if name not in _LEFT_OUT and value not in (None, "", [], {})
    }
    head = canonical_json(rest) if rest else ""
    return "\n".join(part for part in (head, *texts) if part)
