"""What an action lacks, from the place where that shows: a guard, a preview, a receipt, the user's words.

See ``docs/reference/re-entry.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from cockpit.access.confined_paths import Confined
from cockpit.act.guards.action_guard import Refusal
from cockpit.act.text_edits import TextDiffers, digest_now
from cockpit.core.errors import CockpitError
from cockpit.loop.intake.declared_context import find_named
from cockpit.observe.scope_items import ScopeItem, ScopeRefused, parse_item

Cause = Literal["unseen_file", "text_differs", "changed", "missing_input", "discussed", "stopped"]
MOST_ITEMS = 8
"""Scope items that cockpit asks to read for one action."""
_WRITES = ("write_file", "edit_file")
_ITEM = re.compile(r"(?<![\w:/.])((?:file|search|symbol|tree|diff|log):[^\s,;`'\"()]+)")


class Need(Struct, frozen=True):
    """What an action lacks."""

    cause: Cause
    why: str
    """In words, for the user and the model."""
    items: tuple[str, ...] = ()
    """Scope items to read; none where the user's words are all that it lacks."""


def find_need_of_refusal(refusal: Refusal, arguments: Mapping[str, Any]) -> Need | None:
    """Return what a call lacks that a guard refused; None where context would not help."""
    if refusal.guard != "blind_write" or "path" not in arguments:
        return None
    path = str(arguments["path"])
    return Need(
        "unseen_file", f"{path} exists, and nothing of it was in the context", _files([path])
    )


def find_need_of_error(error: CockpitError, arguments: Mapping[str, Any]) -> Need | None:
    """Return what a call lacks that could not be previewed; None where context would not help."""
    if not isinstance(error, TextDiffers) or "path" not in arguments:
        return None
    return Need("text_differs", str(error).rstrip("."), _files([str(arguments["path"])]))


def find_need_of_receipt(
    action_type: str,
    payload: Mapping[str, Any],
    summary: str,
    detail: Mapping[str, Any],
    confined: Confined,
) -> Need | None:
    """Return what an action lacks that failed without an effect; None where context would not help."""
    named = detail.get("needs")
    if isinstance(named, Sequence) and not isinstance(named, str):
        items = _readable(str(item) for item in named)
        return Need("missing_input", summary.rstrip("."), items) if items else None
    if detail.get("failure") != "conflict":
        return None
    changed: list[str] = []
    if action_type in _WRITES:
        changed = [str(payload["path"])]
    elif action_type in ("git_commit", "run"):
        pins = payload.get("files") or payload.get("scripts") or ()
        changed = [
            str(pin["path"])
            for pin in pins
            if not str(pin["path"]).startswith("/")
            and digest_now(confined, str(pin["path"])) != pin["sha256"]
        ]
    there = [path for path in changed if digest_now(confined, path) not in (None, "refused")]
    return Need("changed", summary.rstrip("."), _files(there)) if there else None


def find_need_of_discussion(words: str, confined: Confined) -> Need:
    """Return what the user wants to have looked at: files as ``@path``, issues as ``#7``, scope items."""
    named = find_named(words, confined.root)
    items = [
        *_files(named["file"]),
        *(f"issue:{number}" for number in named["issue"]),
        *_readable(match.rstrip(".") for match in _ITEM.findall(words)),
    ]
    unique = tuple(dict.fromkeys(items))[:MOST_ITEMS]
    return Need("discussed", "the user wants to discuss it", unique)


def _files(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(ScopeItem("file", path)) for path in dict.fromkeys(paths))[:MOST_ITEMS]


def _readable(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the items that can be parsed, as they are written in full."""
    items = []
    for text in texts:
        try:
            items.append(str(parse_item(text)))
        except ScopeRefused:
            continue
    return tuple(dict.fromkeys(items))[:MOST_ITEMS]
