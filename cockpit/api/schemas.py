"""What requests carry and answers say, and their schemas for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from cockpit.core.errors import CockpitError
from cockpit.core.read_record import (
    InvalidRecord,
    describe,
    parse_object,
    read_record,
    record_schema,
)
from cockpit.orient.profile_changes.change_record import MAX_TEXT, ChangePayload
from cockpit.orient.profile_changes.parse_change import MAX_CHARACTERS

R = TypeVar("R")


class BodyMalformed(CockpitError):
    """A body that cannot be read; nothing was done."""

    code = "malformed"


class DigestMissing(CockpitError):
    """An approval that does not say what was seen; nothing was decided."""

    code = "digest_required"


class Verdict(Struct, frozen=True):
    """The body of a decision: the digest of the proposal as it was shown, and a reason."""

    shown_digest: Annotated[
        str | None,
        describe(
            "The digest of what was seen: refused when it is another by now.",
            type=["string", "null"],
        ),
    ] = None
    reason: Annotated[str, Meta(max_length=MAX_TEXT)] = ""


def read_body(
    body: bytes, record: type[R], *, name: str, max_characters: int = MAX_CHARACTERS
) -> R:
    """Read a body into ``record``; an empty body is one without fields. Raises :class:`BodyMalformed`."""
    try:
        fields = parse_object(body or b"{}", name=name, max_characters=max_characters)
        return read_record(record, fields, name=name)
    except InvalidRecord as error:
        raise BodyMalformed(str(error)) from error


CHANGE = record_schema(ChangePayload, closed=True)
"""The schema of a profile change."""

APPROVAL = {**record_schema(Verdict, closed=True), "required": ["shown_digest"]}
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
