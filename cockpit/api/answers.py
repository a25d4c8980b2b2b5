"""Answers in JSON: versions of resources (``ETag``), and pages with a cursor.

Specified in ``docs/reference/http.md``, versions, pages and repeats.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cockpit.api.callers import Answer
from cockpit.core.canonical_json import digest
from cockpit.core.errors import CockpitError
from cockpit.store.db.keyset_page import Place

_TAG = 32
_LONGEST_CURSOR = 400


class CursorInvalid(CockpitError):
    """The cursor is not one that a page of this server ended with."""

    code = "usage"


class PreconditionFailed(CockpitError):
    """The resource changed since the version that ``If-Match`` names; nothing was done."""

    code = "precondition_failed"


def entity_tag(body: Mapping[str, Any]) -> str:
    """Return the version of a resource, a digest of its body, as ``ETag`` has it."""
    return f'"{digest(dict(body))[:_TAG]}"'


def tagged(request: Request, body: Mapping[str, Any]) -> Response:
    """Answer with a resource and its version; 304 where ``If-None-Match`` names that version."""
    tag = entity_tag(body)
    if _names(request.headers.get("if-none-match", ""), tag, weakly=True):
        return Response(status_code=304, headers={"ETag": tag})
    return JSONResponse(dict(body), headers={"ETag": tag})


def require_match(request: Request, body: Mapping[str, Any]) -> None:
    """Raise :class:`PreconditionFailed` unless ``If-Match`` is absent or names the version of ``body``."""
    given = request.headers.get("if-match")
    if given is not None and not _names(given, entity_tag(body), weakly=False):
        raise PreconditionFailed(
            "It is another version by now than If-Match names. Nothing was changed; read it again."
        )


def answered(answer: Answer, *, location: str = "") -> Response:
    """Return the answer of a request that wrote; ``location`` is the address of what it made."""
    headers = {"Location": location} if location else {}
    if answer.is_repeat:
        headers["Idempotency-Replayed"] = "true"
    return JSONResponse({**answer.body, **answer.once}, answer.status, headers=headers)


def read_cursor(text: str) -> Place | None:
    """Return the place that a cursor names; None for an empty one. Raises :class:`CursorInvalid`."""
    if not text:
        return None
    try:
        if len(text) > _LONGEST_CURSOR:
            raise ValueError
        created_at, identity = json.loads(base64.urlsafe_b64decode(text.encode("ascii")))
        if not (isinstance(created_at, str) and isinstance(identity, str)):
            raise ValueError
        (created_at + identity).encode("utf-8")
    except (ValueError, TypeError, UnicodeError, binascii.Error, RecursionError) as error:
        raise CursorInvalid(
            "That cursor is not from a page of this server. Read the list from its start, without"
            " a cursor."
        ) from error
    return created_at, identity


def page(items: Sequence[Mapping[str, Any]], following: Place | None) -> dict[str, Any]:
    """Return a page: its ``items``, and in ``next`` the cursor of the following page, or null."""
    cursor = None
    if following is not None:
        cursor = base64.urlsafe_b64encode(json.dumps(following).encode()).decode("ascii")
    return {"items": items, "next": cursor}


def _names(header: str, tag: str, *, weakly: bool) -> bool:
    named = [each.strip() for each in header.split(",")]
    if weakly:
        named = [each.removeprefix("W/") for each in named]
    return "*" in named or tag in named
