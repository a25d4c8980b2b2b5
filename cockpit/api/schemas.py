"""What requests carry and answers say, and their schemas for the OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

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


class BodyMalformed(CockpitError):
    """A body that cannot be read; nothing was done."""

    code = "malformed"


@dataclass(frozen=True, slots=True)
class Decision:
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
    if not body:
        return Decision()
    try:
        fields = parse_object(body, name="the decision", max_characters=MAX_CHARACTERS)
        return read_record(Decision, fields, name="the decision")
    except InvalidRecord as error:
        raise BodyMalformed(str(error)) from error


def standing(outcome: DecisionOutcome) -> Standing:
    """The outcome as it is answered. Raises ``ProfileChangeRefused`` and ``Stale``."""
    outcome.raise_if_refused()
    return Standing(outcome.proposal_id, outcome.status, outcome.version)


def carried(schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    """The part of an operation that describes its body: it is read by hand, strictly."""
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": required, "content": content}}


CHANGE = record_schema(ChangePayload, closed=True)
"""The schema of a profile change."""

DECISION = record_schema(Decision, closed=True)
"""The schema of a decision."""

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
