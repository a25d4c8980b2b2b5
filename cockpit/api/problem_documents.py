"""Errors as problem documents (RFC 9457), with the same codes as everywhere else."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask
from cockpit.loop.decisions.decision_outcome import ProfileChangeRefused

MEDIA_TYPE = "application/problem+json"
_TYPE = "urn:problem-type:cockpit:"
_WORDS = 2_000
"""Characters of a detail: it may quote what it refuses, and that may be of any length."""

STATUS_CODES = {
    400: ("malformed", "usage"),
    401: ("token_missing", "token_unknown", "token_expired", "token_revoked"),
    403: (
        *("not_allowed", "namespace_spoofed", "capability_relaxed", "outside_envelope"),
        *("origin_refused", "signature_refused"),
    ),
    404: ("not_found",),
    405: ("method_not_allowed",),
    408: ("too_slow",),
    409: (
        *("already_decided", "altered", "stale", "stale_base", "adaptation_running"),
        *("illegal_transition", "after_end", "cycle"),
    ),
    412: ("precondition_failed",),
    413: ("too_large",),
    415: ("not_json",),
    421: ("host_refused",),
    426: ("protocol_unknown",),
    428: ("digest_required",),
    500: ("error", "store", "store_corrupt", "store_too_new", "store_foreign"),
    503: (
        *("store_busy", "store_unwritable", "store_gone", "machine", "program_not_started"),
        *("too_many_sessions", "too_many_clients"),
    ),
}
"""The codes of each status; any other code has :data:`REFUSED`."""
STATUS = {code: status for status, codes in STATUS_CODES.items() for code in codes}
"""The status of each code."""
REFUSED = 422
"""The status of any other code: the request was understood, and cannot be done."""


def problem(
    code: str, detail: str, *, headers: dict[str, str] | None = None, **members: Any
) -> JSONResponse:
    """A problem document. ``members`` are further members of it."""
    status = HTTPStatus(STATUS.get(code, REFUSED))
    if len(detail) > _WORDS:
        detail = f"{detail[: _WORDS // 2]} … {detail[-_WORDS // 2 :]}"
    body = {
        "type": f"{_TYPE}{code}",
        "title": status.phrase,
        "status": status.value,
        "detail": mask(detail),
        "code": code,
        **members,
    }
    all_headers = {**_headers(status, code), **(headers or {})}
    return JSONResponse(body, status.value, headers=all_headers, media_type=MEDIA_TYPE)


def of_error(error: CockpitError) -> JSONResponse:
    """What went wrong; of what the guard refused, the proposal and the whole verdict as well."""
    members: dict[str, Any] = {}
    if isinstance(error, ProfileChangeRefused):
        members["proposal_id"] = error.proposal_id
        members["verdict"] = [
            {"code": refusal.code, "ok": False, "message": mask(refusal.message)}
            for refusal in error.refusals
        ]
    return problem(error.code, str(error), **members)


def _headers(status: HTTPStatus, code: str) -> dict[str, str]:
    if status is HTTPStatus.UNAUTHORIZED:
        wrong = "" if code == "token_missing" else ' error="invalid_token"'
        return {"WWW-Authenticate": f"Bearer{wrong}"}
    if code == "not_allowed":
        return {"WWW-Authenticate": 'Bearer error="insufficient_scope"'}
    return {"Retry-After": "1"} if status is HTTPStatus.SERVICE_UNAVAILABLE else {}
