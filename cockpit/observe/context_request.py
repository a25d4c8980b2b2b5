"""Context requests: the one structured way in which a model asks to read more.

Every request says why (purpose), what it should answer (question), what to read (scope) and what the
agent does if it is refused (escalation). See ``docs/reference/loop.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cockpit.core.errors import CockpitError
from cockpit.core.read_record import InvalidRecord, read_record
from cockpit.observe.scope_items import EXAMPLES, ScopeItem, ScopeRefused, parse_item

MAX_ITEMS = 64
"""The most scope items of one request."""

_MAX_CHARACTERS = 4_000
_EXAMPLES = {
    "purpose": '"purpose": "check that the callers of load() survive its new argument"',
    "question": '"question": "does any caller still pass a path as text?"',
    "scope": f'"scope": ["{EXAMPLES["file"]}", "{EXAMPLES["symbol"]}"]',
    "escalation": '"escalation": "if a caller is unclear, ask for its whole file"',
}


class RequestRefused(CockpitError):
    """The request lacks something or is malformed; the message names the field and an example."""

    code = "request_refused"


class ContextRequest(Struct, frozen=True):
    """A model's request. ``rev`` is the reviewed revision that files are read from, if any."""

    purpose: str
    question: str
    scope: tuple[ScopeItem, ...]
    escalation: str = ""
    rev: str | None = None


class _Arguments(Struct, frozen=True):
    purpose: str
    question: str
    scope: tuple[str, ...]
    escalation: str = ""


def parse_request(arguments: Mapping[str, Any], *, rev: str | None = None) -> ContextRequest:
    """Read a model's arguments and parse its scope items, without repeats and in their order.

    Raises :class:`RequestRefused` for the first fault.
    """
    try:
        request = read_record(_Arguments, arguments, name="request_context")
    except InvalidRecord as error:
        example = _EXAMPLES.get(error.path)
        raise RequestRefused(
            f"{error} For example {example}." if example else str(error)
        ) from error
    return ContextRequest(
        _check_sentence("purpose", request.purpose),
        _check_sentence("question", request.question),
        _parse_scope(request.scope),
        _check_length("escalation", request.escalation.strip()),
        rev,
    )


def _check_sentence(field: str, text: str) -> str:
    if not text.strip():
        raise RequestRefused(
            f"{field} is empty: write it as a sentence, for example {_EXAMPLES[field]}"
        )
    return _check_length(field, text.strip())


def _check_length(field: str, text: str) -> str:
    if len(text) > _MAX_CHARACTERS:
        raise RequestRefused(f"{field} has {len(text)} characters; keep it under {_MAX_CHARACTERS}")
    return text


def _parse_scope(scope: tuple[str, ...]) -> tuple[ScopeItem, ...]:
    if not scope:
        raise RequestRefused(f"scope must be a list of items, for example {_EXAMPLES['scope']}")
    if len(scope) > MAX_ITEMS:
        raise RequestRefused(f"scope has {len(scope)} items; ask for at most {MAX_ITEMS} at once")
    items: dict[ScopeItem, None] = {}
    for position, text in enumerate(scope):
        try:
            items[parse_item(text)] = None
        except ScopeRefused as error:
            raise RequestRefused(f"scope[{position}]: {error}") from error
    return tuple(items)
