"""What requests carry and answers say, and their schemas for the OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from cockpit.core.errors import CockpitError
from cockpit.loop.decisions.profile_change_results import Outcome
from cockpit.orient.profile_changes.change_record import ChangeRefused
from cockpit.orient.profile_changes.parse_change import MOST_WORDS, read_object


class BodyMalformed(CockpitError):
    """A body that cannot be read; nothing was done."""

    code = "malformed"


@dataclass(frozen=True, slots=True)
class Decision:
    """What may be said with a decision: the digest of what was seen, and why."""

    shown_digest: str | None = None
    reason: str = ""


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
    """A decision's body, strictly; an empty one says nothing. Raises :class:`BodyMalformed`."""
    if not body:
        return Decision()
    try:
        found = read_object(body)
        unknown = sorted(found.keys() - {"shown_digest", "reason"})
        if unknown:
            raise BodyMalformed(
                f"A decision has no field {unknown[0][:80]!r}; it has shown_digest, reason. Who"
                " decides is who holds the token."
            )
        decision = msgspec.convert(found, Decision, strict=True)
    except ChangeRefused as error:
        raise BodyMalformed(str(error)) from error
    except msgspec.ValidationError as error:
        raise BodyMalformed(f"{error}.") from error
    if len(decision.reason) > MOST_WORDS:
        raise BodyMalformed(f"reason is longer than {MOST_WORDS:,} characters.")
    return decision


def standing(outcome: Outcome) -> Standing:
    """The outcome as it is answered. Raises ``ChangeNotMade`` and ``Stale``."""
    outcome.granted()
    return Standing(outcome.proposal_id, outcome.status, outcome.version)


def carried(schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    """The part of an operation that describes its body: it is read by hand, strictly."""
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": required, "content": content}}


_TOKENS = {"type": "integer", "minimum": 0}
_WEIGHT = {"type": "number", "minimum": 0}
CHANGE: dict[str, Any] = {
    "type": "object",
    "required": ["base_profile_version", "effective_waves"],
    "additionalProperties": False,
    "properties": {
        "base_profile_version": {"type": "integer", "minimum": 1},
        "effective_waves": {"type": "integer", "minimum": 1},
        "bands": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "min_tokens": _TOKENS,
                    "target_tokens": _TOKENS,
                    "max_tokens": _TOKENS,
                },
            },
        },
        "rules": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "rule_id": {"type": "string"},
                    "source_type": {"type": "string"},
                    "predicate": {"type": "object"},
                    "priority_weight": {**_WEIGHT, "maximum": 4},
                    "novelty_weight": {**_WEIGHT, "maximum": 1},
                    "risk_weight": {**_WEIGHT, "maximum": 1},
                    "recency_half_life": {"type": "integer", "minimum": 0},
                    "enabled": {"type": "boolean"},
                },
            },
        },
        "total_token_budget": {"type": "integer", "minimum": 1},
        "reason": {"type": "string", "maxLength": MOST_WORDS},
        "namespace": {
            "type": "string",
            "description": "Counts for nothing; refused unless it is the token's.",
        },
        "requested_by": {
            "type": "string",
            "description": "Counts for nothing; refused unless it is the token's namespace.",
        },
    },
}
"""A profile change, as `docs/adaptation.md` tells it."""

DECISION: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "shown_digest": {
            "type": ["string", "null"],
            "description": "The digest of what was seen: refused when it is another by now.",
        },
        "reason": {"type": "string", "maxLength": MOST_WORDS},
    },
}

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
