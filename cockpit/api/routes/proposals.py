"""Proposals of every kind: list, show, and decide them.

The user's own token decides everything, from a terminal of the user; a service needs ``proposals.decide``,
or ``orientation.approve`` for profile changes. See ``docs/reference/http.md``, deciding.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.responses import Response

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import APPROVE, PROPOSALS_DECIDE, READ
from cockpit.api.answers import answered, require_match
from cockpit.api.callers import Answer, Counter, require_presence
from cockpit.api.operations import Topic
from cockpit.api.resources import PageQuery, Resource
from cockpit.api.schemas import DigestMissing, read_body
from cockpit.core.read_record import describe
from cockpit.loop.decisions.decide_proposal import Decision, decide_and_tell, name_decider
from cockpit.loop.decisions.decision_outcome import DecisionOutcome
from cockpit.loop.permissions.answer_questions import answer_questions
from cockpit.loop.permissions.question_form import AnswerInvalid, parse_answer
from cockpit.loop.permissions.waiting_permission import load_newest
from cockpit.loop.views.proposal_listing import read_history
from cockpit.orient.profile_changes.change_record import MAX_TEXT
from cockpit.store.context import profile_changes
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal

topic = Topic("proposals", "/api/proposals")

_Text = Annotated[str, Meta(max_length=MAX_TEXT)]
_DECISIONS: dict[str, Decision] = {
    "approve": "approved",
    "reject": "rejected",
    "discuss": "discussed",
}
DECIDED = {
    "type": "object",
    "required": ["proposal_id", "status", "version"],
    "properties": {
        "proposal_id": {"type": "string"},
        "status": {"type": "string"},
        "version": {
            "type": ["integer", "null"],
            "description": "The profile version that a change became.",
        },
    },
}
"""The schema of a proposal after a decision."""


class ProposalQuery(PageQuery, frozen=True, kw_only=True):
    status: Annotated[
        Literal["pending", "approved", "rejected", "discussed", "expired"] | UnsetType,
        describe("Only proposals of this status."),
    ] = UNSET
    kind: Annotated[str, Meta(max_length=100), describe("Only proposals of this kind.")] = ""
    session_id: Annotated[
        str, Meta(max_length=100), describe("Only proposals of this session.")
    ] = ""


class GivenDecision(Struct, frozen=True):
    decision: Literal["approve", "reject", "discuss", "answer"]
    shown_digest: Annotated[
        str | None, describe("The digest of what was seen: refused when it is another by now.")
    ] = None
    reason: Annotated[_Text, describe("The words of a rejection or a discussion.")] = ""
    items: Annotated[
        tuple[str, ...] | None, describe("Keep only these items of a context request.")
    ] = None
    answers: Annotated[
        tuple[str, ...] | None,
        describe("One for each question: a number or name of an option, or text."),
    ] = None


def _list_rows(
    at: Counter, connection: sqlite3.Connection, ids: Sequence[str]
) -> list[dict[str, Any]]:
    rows = [_body(proposals.load(connection, each)) for each in ids]
    return [{name: row[name] for name in row if name != "body"} for row in rows]


def _show_row(at: Counter, connection: sqlite3.Connection, proposal_id: str) -> dict[str, Any]:
    return _shown(connection, proposals.load(connection, proposal_id))


RESOURCE = Resource(
    table="proposals",
    scope=READ,
    query=ProposalQuery,
    listed=_list_rows,
    shown=_show_row,
)


@topic.operation(
    "POST",
    "/{proposal_id}/decide",
    "Decide a proposal",
    PROPOSALS_DECIDE,
    returns=DECIDED,
    body=GivenDecision,
    once=True,
    takes_match=True,
)
async def decide(at: Counter, proposal_id: str) -> Response:
    """Approve, reject or discuss it, or answer what an agent asks.

    An approval and an answer carry the digest of what was shown. An approval of a context request can be
    narrowed with ``items``. The words of a discussion end the revision; the agent's next one refers back to
    it. ``answers`` has one text for each question, in order.
    """
    body, absence = await at.request.body(), await at.explain_absence()
    await at.read(lambda connection, caller: _check(caller, absence))
    given = read_body(body, GivenDecision, name="the decision")
    if given.decision == "answer":
        return answered(await _answer(at, proposal_id, given, absence))
    decision = _DECISIONS[given.decision]
    answer = await decide_once(
        at, proposal_id, decision, absence, given.shown_digest, given.reason, given.items
    )
    if decision == "approved" and not answer.is_repeat:
        await at.project.carry_out(proposal_id)
    return answered(answer)


async def decide_once(
    at: Counter,
    proposal_id: str,
    decision: Decision,
    absence: str,
    shown_digest: str | None,
    reason: str,
    items: Sequence[str] | None = None,
    *,
    kind: Literal["profile"] | None = None,
) -> Answer:
    """Decide a proposal as the caller; a repeat gets the first answer. ``kind``: only a profile change.

    ``absence`` says why the process that asks does not act for a user. Raises what
    :func:`~cockpit.loop.decisions.decide_proposal.decide_proposal` does, and :class:`DigestMissing`.
    """
    narrowed = {} if items is None else {"narrowed": list(items)}

    def step(tx: Tx, caller: Caller) -> Answer:
        _check(caller, absence)
        if kind is not None:
            profile_changes.load(tx.connection, proposal_id)
        else:
            shown = _shown(tx.connection, proposals.load(tx.connection, proposal_id))
            require_match(at.request, shown)
        if decision == "approved":
            _require_digest(shown_digest, proposal_id)
        outcome = decide_and_tell(
            tx,
            at.settings,
            proposal_id,
            decision,
            caller,
            kind=kind,
            shown_digest=shown_digest,
            reason=reason,
            **narrowed,
        )
        return Answer(200, decided_body(outcome), failure=outcome.failure())

    return await at.write_once("", "", step)


def decided_body(outcome: DecisionOutcome) -> dict[str, Any]:
    """Return how a proposal stands after it was proposed or decided."""
    return {
        "proposal_id": outcome.proposal_id,
        "status": outcome.status,
        "version": outcome.version,
    }


async def _answer(at: Counter, proposal_id: str, given: GivenDecision, absence: str) -> Answer:
    """Answer what an agent asks. Raises ``AnswerInvalid``."""
    shown_digest = _require_digest(given.shown_digest, proposal_id)
    texts = given.answers or ()

    async def send_answers(request: str, caller: Caller) -> str:
        proposal = await at.store.read(lambda connection: proposals.load(connection, proposal_id))
        questions = proposal.body.get("questions") or []
        if questions and len(texts) != len(questions):
            raise AnswerInvalid(
                f"{proposal_id} has {len(questions)} questions; answer each, in order."
            )
        await answer_questions(
            at.store,
            at.settings,
            proposal,
            shown_digest,
            [parse_answer(each, text) for each, text in zip(questions, texts, strict=False)],
            lambda tx: _check_any(at.caller_in(tx), absence),
        )
        return proposal_id

    def show(connection: sqlite3.Connection, proposal_id: str) -> dict[str, Any]:
        newest = load_newest(connection, proposal_id)
        status = proposals.shown_status(newest)
        return {"proposal_id": newest.proposal_id, "status": status, "version": None}

    return await at.begin_once(
        at.project.starting, send_answers, show, PROPOSALS_DECIDE, "decide proposals", status=200
    )


def _require_digest(shown_digest: str | None, proposal_id: str) -> str:
    """Return the digest. Raises :class:`DigestMissing`: nothing is approved or answered unseen."""
    if shown_digest is None:
        raise DigestMissing(
            f"{proposal_id} was not decided: send the digest of what you saw, as shown_digest."
            f" GET {topic.prefix}/{proposal_id} shows it."
        )
    return shown_digest


def _check(caller: Caller, absence: str) -> None:
    """Raise ``NotAllowed`` for one that may decide nothing: they do not learn what there is."""
    if APPROVE not in caller.scopes or caller.kind == "agent":
        _check_any(caller, absence)
    require_presence(caller, absence, "deciding")


def _check_any(caller: Caller, absence: str) -> Caller:
    """Return the caller. Raises ``NotAllowed`` for one that may not decide what is not a profile change."""
    caller.require(PROPOSALS_DECIDE, "decide proposals")
    name_decider(caller)
    require_presence(caller, absence, "deciding")
    return caller


def _body(proposal: Proposal) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(proposal)
    status, reason = proposals.shown_status(proposal), proposals.shown_reason(proposal)
    return {**row, "status": status, "reason": reason}


def _shown(connection: sqlite3.Connection, proposal: Proposal) -> dict[str, Any]:
    history = [
        {
            "proposal_id": revision.proposal.proposal_id,
            "was_edited": revision.was_edited,
            "reason": proposals.shown_reason(revision.proposal),
            "changes": list(revision.changes),
        }
        for revision in read_history(connection, proposal)
    ]
    return {**_body(proposal), "history": history}
