"""Regret: a decision that was approved and turned out wrong.

Its effect was undone, the tests after it failed, a follow-up was rejected, or the user judged it bad.
See ``docs/reference/measures.md``.
"""

from __future__ import annotations

from cockpit.learn.decision_outcomes import Deed, Outcomes

_SHORTEST = 7
"""Characters of a revision that name a commit."""


def find_regrets(outcomes: Outcomes, ordinal: int) -> tuple[str, ...]:
    """List the reasons against the decisions of wave ``ordinal``.

    They are ``undone``, ``tests_failed`` and ``follow_up_refused``.
    """
    changes = [deed for deed in outcomes.deeds if deed.ordinal == ordinal and deed.confirmed]
    later = [deed for deed in outcomes.deeds if deed.ordinal > ordinal and deed.confirmed]
    reasons = []
    if any(_undoes(after, before) for before in changes for after in later):
        reasons.append("undone")
    if tests_after(outcomes, ordinal) is False:
        reasons.append("tests_failed")
    touched = {path for deed in changes if deed.changed for path in deed.paths}
    if any(
        ruling.ordinal > ordinal and ruling.share == 0 and touched.intersection(ruling.paths)
        for ruling in outcomes.rulings
    ):
        reasons.append("follow_up_refused")
    return tuple(reasons)


def tests_after(outcomes: Outcomes, ordinal: int) -> bool | None:
    """Whether the first test run after the wave's last change was green.

    None where the wave changed nothing, or another change came before any test run: then the result says
    nothing about this wave.
    """
    changes = [deed for deed in outcomes.deeds if deed.changed and deed.ordinal == ordinal]
    if not changes:
        return None
    last = changes[-1]
    for deed in outcomes.deeds:
        if (deed.ordinal, deed.place) <= (last.ordinal, last.place):
            continue
        if deed.changed:
            return None
        if deed.green is not None:
            return deed.green
    return None


def _undoes(after: Deed, before: Deed) -> bool:
    if before.changed and after.changed and before.before is not None:
        return after.paths == before.paths and after.after == before.before
    return bool(before.commit) and any(
        len(revision) >= _SHORTEST and before.commit.startswith(revision)
        for revision in after.reverts
    )
