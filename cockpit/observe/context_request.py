"""Context requests: the one structured way in which a model asks to see more.

Every request says why (purpose), what it hopes to learn (question), what to read (scope) and when
it would ask for more (escalation). Source: RFC-09, invariants 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cockpit.core.errors import CockpitError
from cockpit.observe.scope_items import EXAMPLES, ScopeItem, ScopeRefused, parse_item

MAX_ITEMS = 64
"""Most scope items of one request."""

_MAX_WORDS = 4_000
_FIELDS = ("purpose", "question", "scope", "escalation")
_WRITE = {
    "purpose": '"purpose": "check that the callers of load() survive its new argument"',
    "question": '"question": "does any caller still pass a path as text?"',
    "scope": f'"scope": ["{EXAMPLES["file"]}", "{EXAMPLES["symbol"]}"]',
    "escalation": '"escalation": "if a caller is unclear, ask for its whole file"',
}


class RequestRefused(CockpitError):
    """The request lacks something or is malformed; the message names the field and an example."""

    code = "request_refused"


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What a model asks for. ``rev`` is the reviewed revision that files are read from, if any."""

    purpose: str
    question: str
    scope: tuple[ScopeItem, ...]
    escalation: str = ""
    rev: str | None = None


def parse_request(arguments: Mapping[str, Any], *, rev: str | None = None) -> ContextRequest:
    """Check a model's arguments. Raises :class:`RequestRefused`; the first fault is reported.

    Items that are the same are taken once; their order is kept.
    """
    unknown = sorted(str(name) for name in arguments if name not in _FIELDS)
    if unknown:
        raise RequestRefused(
            f"request_context has no field {unknown[0]!r}; its fields are {', '.join(_FIELDS)}"
        )
    purpose = _words(arguments, "purpose")
    question = _words(arguments, "question")
    scope = _scope(arguments.get("scope"))
    escalation = _words(arguments, "escalation", needed=False)
    return ContextRequest(purpose, question, scope, escalation, rev)


def _words(arguments: Mapping[str, Any], field: str, *, needed: bool = True) -> str:
    value = arguments.get(field)
    if value is None and not needed:
        return ""
    if value is not None and not isinstance(value, str):
        raise RequestRefused(f"{field} must be text, for example {_WRITE[field]}")
    words = (value or "").strip()
    if needed and not words:
        raise RequestRefused(f"{field} is empty: say it in a sentence, for example {_WRITE[field]}")
    if len(words) > _MAX_WORDS:
        raise RequestRefused(f"{field} has {len(words)} characters; keep it under {_MAX_WORDS}")
    return words


def _scope(value: Any) -> tuple[ScopeItem, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise RequestRefused(f"scope must be a list that names something, like {_WRITE['scope']}")
    if len(value) > MAX_ITEMS:
        raise RequestRefused(f"scope has {len(value)} items; ask for at most {MAX_ITEMS} at once")
    items: dict[ScopeItem, None] = {}
    for position, text in enumerate(value):
        if not isinstance(text, str):
            raise RequestRefused(f"scope[{position}] must be text, like {_WRITE['scope']}")
        try:
            items[parse_item(text)] = None
        except ScopeRefused as error:
            raise RequestRefused(f"scope[{position}]: {error}") from error
    return tuple(items)
