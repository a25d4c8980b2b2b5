"""What requests carry and answers say, and their schemas for the OpenAPI document."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from cockpit.core.canonical_json import digest, text_digest
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import (
    InvalidRecord,
    describe,
    parse_object,
    read_record,
    record_schema,
)
from cockpit.loop.decisions.decision_outcome import DecisionOutcome
from cockpit.orient.profile_changes.parse_change import MAX_CHARACTERS, MAX_TEXT, ChangePayload
from cockpit.store.context.profile_changes import ChangeProposal
from cockpit.store.sessions.proposals import Proposal

R = TypeVar("R")


class BodyMalformed(CockpitError):
    """A body that cannot be read; nothing was done."""

    code = "malformed"


class DigestMissing(CockpitError):
    """An approval that does not say what was seen; nothing was decided."""

    code = "digest_required"


class Decision(Struct, frozen=True):
    """The body of a decision: the digest of the proposal as it was shown, and a reason."""

    shown_digest: Annotated[
        str | None,
        describe(
            "The digest of what was seen: refused when it is another by now.",
            type=["string", "null"],
        ),
    ] = None
    reason: Annotated[str, Meta(max_length=MAX_TEXT)] = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a change stands; ``version`` is the one it became."""

    proposal_id: str
    status: str
    version: int | None


@dataclass(frozen=True, slots=True)
class Health:
    """That the server answers, and its version."""

    status: str
    version: str


def read_decision(body: bytes) -> Decision:
    """Read a decision's body; an empty body is an empty decision. Raises :class:`BodyMalformed`."""
    return read_body(body, Decision, name="the decision")


def read_body(
    body: bytes, record: type[R], *, name: str, max_characters: int = MAX_CHARACTERS
) -> R:
    """Read a body into ``record``; an empty body is one without fields. Raises :class:`BodyMalformed`."""
    try:
        fields = parse_object(body or b"{}", name=name, max_characters=max_characters)
        return read_record(record, fields, name=name)
    except InvalidRecord as error:
        raise BodyMalformed(str(error)) from error


def request_digest(profile_id: str, body: bytes) -> str:
    """Return the digest of a proposal as it was sent: two texts of the same JSON are the same."""
    try:
        fields = parse_object(body, name="the change", max_characters=MAX_CHARACTERS)
    except InvalidRecord:
        return text_digest(f"{profile_id}\n{body.hex()}")
    return digest([profile_id, fields])


def change_body(row: ChangeProposal, proposal: Proposal) -> dict[str, Any]:
    """Return a change as it is answered."""
    return {
        "proposal_id": row.proposal_id,
        "status": row.status,
        "requested_by": row.requested_by,
        "profile_id": row.profile_id,
        "base_profile_version": row.base_version,
        "effective_waves": row.effective_waves,
        "version": row.applied_version,
        "approved_by": row.approved_by,
        "rejection_code": row.rejection_code,
        "rejection_reason": row.rejection_reason,
        "created_at": row.created_at,
        "decided_at": row.decided_at,
        "expires_at": proposal.expires_at,
        "title": proposal.title,
        "risk": proposal.risk,
        "shown_digest": proposal.shown_digest,
        "change": json.loads(row.payload),
        "body": dict(proposal.body),
    }


def standing(outcome: DecisionOutcome) -> Standing:
    """The outcome as it is answered. Raises ``ProfileChangeRefused`` and ``Stale``."""
    outcome.raise_if_refused()
    return Standing(outcome.proposal_id, outcome.status, outcome.version)


CHANGE = record_schema(ChangePayload, closed=True)
"""The schema of a profile change."""

DECISION = record_schema(Decision, closed=True)
"""The schema of a decision."""

APPROVAL = {**DECISION, "required": ["shown_digest"]}
"""The schema of an approval: nothing is approved unseen."""

PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "proposal_id": {"type": "string"},
        "verdict": {"type": "array", "items": {"type": "object"}},
    },
}
"""A problem document (RFC 9457), with the error's code, and of a refused change its verdict."""
