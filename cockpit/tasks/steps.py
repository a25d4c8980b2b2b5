"""Which step of a task comes next, from those that were taken. Pure: a crash changes nothing of it.

Source: design of work, "Doing a task".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.store.backlog.handoffs import MOST_DETAILS
from cockpit.store.chains.task_runs import Step

MOST_TOLD = 4_000
"""How much of what a role said a reason holds, in characters; the details have all of it."""

REWORKS = 1
"""How often a task goes back to its implementer for what a reviewer found."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """The step to take. ``reason`` says why, for a task that is blocked; ``handoff`` how it then
    stands: ``FAIL`` for work that is not good enough, ``BLOCKED`` for work that cannot go on."""

    step: str
    reason: str = ""
    handoff: str = "BLOCKED"


def next_step(steps: Sequence[Step], *, mends: bool, most_fixes: int) -> NextStep:
    """What follows ``steps`` of one run; an open last one is taken up again.

    ``mends``: failing tests are given to a fixer, at most ``most_fixes`` times after each
    implementation.
    """
    if not steps:
        return NextStep("implement")
    last = steps[-1]
    if last.open:
        return NextStep(last.step)
    told = str(last.detail.get("summary", ""))[:MOST_TOLD]
    match last.step, last.outcome:
        case "implement", "done":
            return NextStep("test")
        case "test", "passed" | "none":
            return NextStep("spec_review")
        case "test", "failed":
            return _mend(steps, told, mends, most_fixes)
        case "fix", "done":
            return NextStep("test")
        case "spec_review", "PASS":
            return NextStep("quality_review")
        case "quality_review", "PASS":
            return NextStep("merge")
        case (("spec_review" | "quality_review"), "FAIL"):
            if sum(step.step == "implement" for step in steps) <= REWORKS:
                return NextStep("implement")
            which = last.step.replace("_", " ")
            return NextStep("blocked", f"The {which} failed again after rework: {told}", "FAIL")
        case "merge", "merged" | "nothing":
            return NextStep("done", handoff="PASS")
        case "fix", "blocked":
            return NextStep("blocked", f"The fixer could not go on: {told}", "FAIL")
        case _:
            return NextStep("blocked", told or f"{last.step} ended as {last.outcome}.")


def _mend(steps: Sequence[Step], told: str, mends: bool, most_fixes: int) -> NextStep:
    done = 0
    for step in reversed(steps):
        if step.step == "implement":
            break
        done += step.step == "fix"
    if not mends:
        return NextStep("blocked", f"The tests fail: {told}", "FAIL")
    if done >= most_fixes:
        tries = f"{done} {'try' if done == 1 else 'tries'} of the fixer"
        return NextStep("blocked", f"The tests still fail after {tries}: {told}", "FAIL")
    return NextStep("fix")


def summary_of(steps: Sequence[Step], title: str) -> str:
    """What the implementer said last, and how the tests ended."""
    said = [str(step.detail.get("summary", "")) for step in steps if step.step == "implement"]
    tests = [str(step.detail.get("summary", "")) for step in steps if step.step == "test"]
    fixes = sum(step.step == "fix" for step in steps)
    words = next((words for words in reversed(said) if words), title)[:3_000]
    mended = f" The fixer mended it in {fixes} {'try' if fixes == 1 else 'tries'}." if fixes else ""
    return f"{words}\n{tests[-1]}{mended}" if tests else words


def details_of(steps: Sequence[Step]) -> str:
    """Every step with what was said of it: for whoever asks why."""
    parts = []
    for step in steps:
        told = "\n".join(
            str(step.detail[name]) for name in ("summary", "output") if step.detail.get(name)
        )
        parts.append(f"## {step.step} {step.attempt}: {step.outcome}\n\n{told}".rstrip())
    return "\n\n".join(parts)[:MOST_DETAILS]
