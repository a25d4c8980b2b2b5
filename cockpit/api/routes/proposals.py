"""Proposals of every kind: list, show, and decide them.

The user's own token decides everything, from a terminal of the user; a service needs ``proposals.decide``,
or ``orientation.approve`` for profile changes. See ``docs/reference/http.md``, deciding.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from msgspec import Meta, Struct

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import APPROVE, PROPOSALS_DECIDE, READ
from cockpit.api.answers import answered, page, read_cursor, require_match, tagged
from cockpit.api.callers import Answer, At, Counter, require_presence
from cockpit.api.operation_document import declared
from cockpit.api.schemas import DigestMissing, read_body
from cockpit.core.read_record import describe, record_schema
from cockpit.loop.decisions.decide_proposal import Decision, decide_and_tell, name_decider
from cockpit.loop.permissions.question_form import AnswerInvalid, parse_answer
from cockpit.loop.permissions.waiting_permission import load_newest
from cockpit.loop.views.proposal_listing import read_history
from cockpit.orient.profile_changes.change_record import MAX_TEXT
from cockpit.store.db.keyset_page import select_page
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal

router = APIRouter(prefix="/api/proposals", tags=["proposals"])

Status = Literal["pending", "approved", "rejected", "discussed", "expired"]
Statuses = Annotated[Status, Query(description="Only proposals of this status.")]
Kind = Annotated[str, Query(max_length=40, description="Only proposals of this kind.")]
Session = Annotated[str, Query(max_length=100, description="Only proposals of this session.")]
Cursor = Annotated[str, Query(max_length=400, description="The `next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]

_DIGEST = describe("The digest of what was seen: refused when it is another by now.")
_Text = Annotated[str, Meta(max_length=MAX_TEXT)]


@dataclass(frozen=True, slots=True)
class ProposalBody:
    """A proposal in a list."""

    proposal_id: str
    kind: str
    status: str
    risk: str
    title: str
    session_id: str
    wave_id: str
    task_id: str | None
    revises: str | None
    shown_digest: str
    narrowed: list[str] | None
    decided_by: str | None
    decided_at: str | None
    reason: str
    expires_at: str | None
    created_at: str


@dataclass(frozen=True, slots=True)
class ProposalPage:
    """Proposals, newest first, and the cursor of the next page."""

    items: list[ProposalBody]
    next: str | None


@dataclass(frozen=True, slots=True)
class RevisionBody:
    """An earlier version, and what changed after it as lines of a diff."""

    proposal_id: str
    was_edited: bool
    reason: str
    changes: list[str]


@dataclass(frozen=True, slots=True)
class ShownProposal(ProposalBody):
    """A proposal with its body, as the screen shows it, and its earlier versions."""

    body: dict[str, Any]
    history: list[RevisionBody]


@dataclass(frozen=True, slots=True)
class DecidedBody:
    """A proposal after a decision; ``version`` is the profile version that a change became."""

    proposal_id: str
    status: str
    version: int | None


@dataclass(frozen=True, slots=True)
class EditableBody:
    """The text of a proposal that can be edited, and the file suffix of its language."""

    text: str
    suffix: str


class Approval(Struct, frozen=True):
    shown_digest: Annotated[str | None, _DIGEST] = None
    reason: _Text = ""
    items: Annotated[
        tuple[str, ...] | None, describe("Keep only these items of a context request.")
    ] = None


class Refusal(Struct, frozen=True):
    shown_digest: Annotated[str | None, _DIGEST] = None
    reason: _Text = ""


class Discussion(Struct, frozen=True):
    text: _Text
    shown_digest: Annotated[str | None, _DIGEST] = None


class Edit(Struct, frozen=True):
    shown_digest: Annotated[str, _DIGEST]
    text: Annotated[str, Meta(max_length=500_000)]


class Answers(Struct, frozen=True):
    shown_digest: Annotated[str, _DIGEST]
    answers: Annotated[
        tuple[str, ...], describe("One for each question: a number or name of an option, or text.")
    ]


APPROVAL = {**record_schema(Approval, closed=True), "required": ["shown_digest"]}
"""The schema of an approval: nothing is approved unseen."""


@router.get(
    "",
    summary="List proposals",
    response_model=ProposalPage,
    **declared(READ, has_tag=True),
)
async def list_proposals(
    at: At,
    request: Request,
    status: Statuses | None = None,
    kind: Kind = "",
    session_id: Session = "",
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Response:
    """Newest first. Those that wait for a decision have the status ``pending``."""
    given = {"status=?": status, "kind=?": kind, "session_id=?": session_id}
    terms = {condition: value for condition, value in given.items() if value}

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(READ, "read proposals")
        ids, following = select_page(
            connection, "proposals", after=read_cursor(cursor), limit=limit, terms=terms
        )
        return page([proposals.load(connection, each) for each in ids], following, _listed)

    return tagged(request, await at.read(look))


@router.get(
    "/{proposal_id}",
    summary="Show a proposal",
    response_model=ShownProposal,
    **declared(READ, 404, has_tag=True),
)
async def show_proposal(at: At, request: Request, proposal_id: str) -> Response:
    """Everything that its approval would do, and the digest that an approval carries."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(READ, "read proposals")
        return _shown(connection, proposals.load(connection, proposal_id))

    return tagged(request, await at.read(look))


@router.post(
    "/{proposal_id}/approve",
    summary="Approve a proposal",
    response_model=DecidedBody,
    **declared(PROPOSALS_DECIDE, 404, 409, 422, 428, body=APPROVAL, once=True, takes_match=True),
)
async def approve(at: At, request: Request, proposal_id: str) -> Response:
    """The body carries the digest of what was shown; a context request can be narrowed with ``items``."""
    body = await request.body()

    def arguments() -> dict[str, Any]:
        given = read_body(body, Approval, name="the approval")
        if given.shown_digest is None:
            raise DigestMissing(
                "An approval needs the digest of what you saw, as shown_digest."
                f" GET {router.prefix}/ID shows a proposal with it."
            )
        narrowed = {} if given.items is None else {"narrowed": list(given.items)}
        return {"shown_digest": given.shown_digest, "reason": given.reason, **narrowed}

    answer = await _decide(at, request, proposal_id, "approved", arguments)
    if not answer.is_repeat:
        await at.project.carry_out(proposal_id)
    return answered(answer)


@router.post(
    "/{proposal_id}/reject",
    summary="Reject a proposal",
    response_model=DecidedBody,
    **declared(
        PROPOSALS_DECIDE, 404, 409, 422, body=Refusal, required=False, once=True, takes_match=True
    ),
)
async def reject(at: At, request: Request, proposal_id: str) -> Response:
    """The reason reaches the agent."""
    body = await request.body()

    def arguments() -> dict[str, Any]:
        given = read_body(body, Refusal, name="the rejection")
        return {"shown_digest": given.shown_digest, "reason": given.reason}

    return answered(await _decide(at, request, proposal_id, "rejected", arguments))


@router.post(
    "/{proposal_id}/discuss",
    summary="Discuss a proposal",
    response_model=DecidedBody,
    **declared(PROPOSALS_DECIDE, 404, 409, 422, body=Discussion, once=True, takes_match=True),
)
async def discuss(at: At, request: Request, proposal_id: str) -> Response:
    """This ends the revision; the agent's next one refers back to it. A profile change takes none."""
    body = await request.body()

    def arguments() -> dict[str, Any]:
        given = read_body(body, Discussion, name="the discussion")
        return {"shown_digest": given.shown_digest, "reason": given.text}

    return answered(await _decide(at, request, proposal_id, "discussed", arguments))


@router.get(
    "/{proposal_id}/text",
    summary="Show the text that can be edited",
    response_model=EditableBody,
    **declared(READ, 404, 409, 422),
)
async def show_text(at: At, proposal_id: str) -> EditableBody:
    """The text of an action, or the input of a permission."""
    await at.read(lambda connection, caller: caller.require(READ, "read proposals"))
    await at.read(lambda connection, caller: proposals.load(connection, proposal_id))
    text, suffix = await (await at.project.runtime()).editable(proposal_id)
    return EditableBody(text, suffix)


@router.post(
    "/{proposal_id}/edit",
    summary="Edit a proposal",
    response_model=ShownProposal,
    status_code=201,
    **declared(PROPOSALS_DECIDE, 404, 409, 422, body=Edit),
)
async def edit(at: At, request: Request, proposal_id: str) -> Response:
    """Replace its text by yours. The new revision is judged again, and nothing runs before its approval."""
    body = await request.body()
    absence = await at.explain_absence()
    await at.read(lambda connection, caller: _check(caller, absence))
    given = read_body(body, Edit, name="the edit", max_characters=1_000_000)
    await at.read(lambda connection, caller: proposals.load(connection, proposal_id))
    runtime = await at.project.runtime()
    revision_id = await runtime.edit(
        proposal_id,
        shown_digest=given.shown_digest,
        text=given.text,
        find_editor=lambda tx: _check(at.caller_in(tx), absence),
    )
    shown = await at.read(
        lambda connection, caller: _shown(connection, proposals.load(connection, revision_id))
    )
    return answered(Answer(201, shown), location=f"{router.prefix}/{revision_id}")


@router.post(
    "/{proposal_id}/answer",
    summary="Answer what an agent asks",
    response_model=ShownProposal,
    **declared(PROPOSALS_DECIDE, 404, 409, 422, body=Answers),
)
async def answer_questions(at: At, request: Request, proposal_id: str) -> Response:
    """One answer for each question, in order: the number or name of an option, or a text of your own."""
    body = await request.body()
    absence = await at.explain_absence()
    await at.read(lambda connection, caller: _check(caller, absence))
    given = read_body(body, Answers, name="the answers")
    proposal = await at.read(lambda connection, caller: proposals.load(connection, proposal_id))
    questions = proposal.body.get("questions") or []
    if questions and len(given.answers) != len(questions):
        raise AnswerInvalid(f"{proposal_id} has {len(questions)} questions; answer each, in order.")
    parsed = [
        parse_answer(question, text)
        for question, text in zip(questions, given.answers, strict=False)
    ]
    runtime = await at.project.runtime()
    await runtime.answer(
        proposal_id,
        shown_digest=given.shown_digest,
        answers=parsed,
        find_editor=lambda tx: _check(at.caller_in(tx), absence),
    )
    shown = await at.read(
        lambda connection, caller: _shown(connection, load_newest(connection, proposal_id))
    )
    return answered(Answer(200, shown))


async def _decide(
    at: Counter,
    request: Request,
    proposal_id: str,
    decision: Decision,
    arguments: Callable[[], dict[str, Any]],
) -> Answer:
    absence = await at.explain_absence()

    def step(tx: Tx, caller: Caller) -> Answer:
        # Who may not decide does not learn what there is, nor whether their body could be read.
        if APPROVE not in caller.scopes or caller.kind == "agent":
            _check(caller, absence)
        require_presence(caller, absence, "deciding")
        proposal = proposals.load(tx.connection, proposal_id)
        given = arguments()
        require_match(request, _shown(tx.connection, proposal))
        outcome = decide_and_tell(tx, at.settings, proposal_id, decision, caller, **given)
        body = {
            "proposal_id": outcome.proposal_id,
            "status": outcome.status,
            "version": outcome.version,
        }
        return Answer(200, body, failure=outcome.failure())

    return await at.write_once("", "", step)


def _check(caller: Caller, absence: str) -> Caller:
    """Return the caller. Raises ``NotAllowed`` for one that may not decide what is not a profile change."""
    caller.require(PROPOSALS_DECIDE, "decide proposals")
    name_decider(caller)
    require_presence(caller, absence, "deciding")
    return caller


def _listed(proposal: Proposal) -> dict[str, Any]:
    return {
        "proposal_id": proposal.proposal_id,
        "kind": proposal.kind,
        "status": proposals.shown_status(proposal),
        "risk": proposal.risk,
        "title": proposal.title,
        "session_id": proposal.session_id,
        "wave_id": proposal.wave_id,
        "task_id": proposal.task_id,
        "revises": proposal.revises,
        "shown_digest": proposal.shown_digest,
        "narrowed": None if proposal.narrowed is None else list(proposal.narrowed),
        "decided_by": proposal.decided_by,
        "decided_at": proposal.decided_at,
        "reason": proposals.shown_reason(proposal),
        "expires_at": proposal.expires_at,
        "created_at": proposal.created_at,
    }


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
    return {**_listed(proposal), "body": dict(proposal.body), "history": history}
