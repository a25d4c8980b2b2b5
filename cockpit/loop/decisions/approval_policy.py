"""The policy chain: what is decided without a person, and in whose name.

Deny comes first (the guards), then policy, then the person. ``ask`` and ``trusted`` leave everything
to the person (trusted until rules are learned), ``reads`` approves context, ``all`` approves all that
the guards let through. Source: design of Act, approval semantics.
"""

from __future__ import annotations

WIDTH = {"ask": 0, "trusted": 1, "reads": 2, "all": 3}
"""How much each policy decides by itself; a wider one asks for a second key on the screen."""


def automatic(policy: str, kind: str) -> str | None:
    """The name in which ``policy`` approves a proposal of ``kind``; None leaves it to a person."""
    if policy == "all" or (policy == "reads" and kind == "context"):
        return f"policy:{policy}"
    return None
