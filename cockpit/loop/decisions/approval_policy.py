"""The approval policies: which proposals pass without the user, and in whose name.

The guards refuse first, then the policy decides, then rules, then the user. ``ask`` leaves every decision to
the user, ``trusted`` uses the rules that they accepted and approves commits in a task's own worktree,
``reads`` approves context requests and commands in the reading sandbox as well, and ``all`` everything that
the guards let pass except writes to GitHub, new skills and tools, and actions of high risk. See
``docs/reference/loop.md``, decisions.
"""

from __future__ import annotations

from typing import Literal

Policy = Literal["ask", "trusted", "reads", "all"]
POLICY_WIDTH = {"ask": 0, "trusted": 1, "reads": 2, "all": 3}
"""How much each policy decides by itself; the screen asks for a second key before a wider one."""

_ALWAYS_ASKED = frozenset({"github", "create_skill", "adopt_tool"})
"""Actions that no policy approves.

What is posted to other people cannot be taken back, and a skill or a tool serves every later session.
"""


def is_narrower(policy: str, other: str) -> bool:
    """Whether ``policy`` leaves more to the user than ``other``."""
    return POLICY_WIDTH[policy] < POLICY_WIDTH[other]


def uses_rules(policy: str) -> bool:
    """Whether what the user's learned rules cover passes under ``policy``."""
    return POLICY_WIDTH[policy] >= POLICY_WIDTH["trusted"]


def approving_policy(
    policy: str, kind: str, *, risk: str = "low", action_type: str = "", reads: bool = False
) -> str | None:
    """Return the name in which ``policy`` approves a proposal of ``kind``; None leaves it to the user.

    ``risk`` (low, medium or high) and ``action_type`` are those of an action; ``reads`` says that it is a
    command for the reading sandbox, whose output is a read like any other.
    """
    # A tool in Python of low risk cannot write: the sandbox keeps it from that, not its author's word.
    if kind == "context" or reads or (action_type == "own_tool" and risk == "low"):
        return f"policy:{policy}" if policy in ("reads", "all") else None
    if action_type == "git_commit" and risk == "low" and uses_rules(policy):
        return f"policy:{policy}"  # on a branch that is nobody else's
    if policy == "all" and risk != "high" and action_type not in _ALWAYS_ASKED:
        return f"policy:{policy}"
    return None
