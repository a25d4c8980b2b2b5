"""How far the two inner loops of a task type have collapsed: early, trusted or collapsed.

Orient asks what may be read, Decide what may be done. Both are derived from decisions and rules, and fall
back with the first pushback. Specified in ``docs/reference/trust.md``, inner loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from cockpit.store.trust.shape import InnerLoop
from cockpit.store.trust.trust_decisions import TrustDecision
from cockpit.store.trust.trust_rules import Rule

State = Literal["early", "trusted", "collapsed"]


class LoopState(Struct, frozen=True):
    """The state of one inner loop of a task type."""

    inner_loop: InnerLoop
    state: State
    rules: int
    """Rules in force."""
    sessions: int
    """The newest sessions that were looked at."""
    decided: int
    """Decisions that the user made there one by one."""
    passed: int
    """Decisions there that a rule made, or that took one key on a short card."""

    @property
    def why(self) -> str:
        if self.state == "early":
            return "no rule applies yet: you decide each request"
        if self.state == "trusted":
            return f"{self.passed} passed, {self.decided} asked"
        return f"all {self.passed} requests of the last {self.sessions} sessions passed"


def derive_state(
    inner_loop: InnerLoop,
    decisions: Sequence[TrustDecision],
    rules: Sequence[Rule],
    *,
    now: str,
    sessions: int,
) -> LoopState:
    """Derive the state from a task type's ``decisions``, oldest first, and its ``rules``.

    It is collapsed where the user decided nothing one by one in the newest ``sessions`` sessions.
    """
    in_force = sum(
        1
        for rule in rules
        if rule.status_on(now) == "active" and rule.shape.inner_loop == inner_loop
    )
    of_loop = [each for each in decisions if each.inner_loop == inner_loop]
    newest = list(dict.fromkeys(each.session_id for each in reversed(of_loop)))[:sessions]
    recent = [each for each in of_loop if each.session_id in newest]
    passed = sum(1 for each in recent if not each.is_pushback and each.decided_by != "person")
    decided = len(recent) - passed
    state: State = "early"
    if in_force:
        state = "collapsed" if passed and not decided and len(newest) >= sessions else "trusted"
    return LoopState(inner_loop, state, in_force, len(newest), decided, passed)
