"""The approval policies: which proposals pass without the user, and in whose name.

The guards refuse first, then the policy decides, then the user. ``ask`` and ``trusted`` leave every
decision to the user, ``reads`` approves context requests, and ``all`` approves everything that the guards
let pass. See ``docs/reference/loop.md``, approvals.
"""

from __future__ import annotations

POLICY_WIDTH = {"ask": 0, "trusted": 1, "reads": 2, "all": 3}
"""How much each policy decides by itself; the screen asks for a second key before a wider one."""


def approving_policy(policy: str, kind: str) -> str | None:
    """Return the name in which ``policy`` approves a proposal of ``kind``; None leaves it to the user."""
    if policy == "all" or (policy == "reads" and kind == "context"):
        return f"policy:{policy}"
    return None
