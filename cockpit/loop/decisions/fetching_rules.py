"""What attention rules may fetch: scope items of the project, none that belongs to one session.

See ``docs/reference/kernel.md``, rules that fetch.
"""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.observe.scope_items import ScopeRefused, parse_item

FETCHABLE = ("file", "search", "tree", "symbol", "diff", "log", "pr", "issue", "gh")
"""Sources that a rule may read."""


def why_not_fetchable(items: Sequence[str]) -> str:
    """Return why a rule cannot fetch one of ``items``; empty when it can fetch all of them."""
    for text in items:
        try:
            kind = parse_item(text).kind
        except ScopeRefused as error:
            return str(error)
        if kind not in FETCHABLE:
            return f"a rule cannot fetch {text[:80]!r}; it can fetch {', '.join(FETCHABLE)}"
    return ""
