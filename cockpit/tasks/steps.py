"""Which step of a task comes next, decided from the steps taken so far.

The decision depends on stored steps alone, so a crash does not change it. See
``docs/reference/backlog.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cockpit.store.backlog.handoffs import MOST_DETAILS
from cockpit.store.chains.task_runs import Step

MAX_REASON = 4_000
"""Characters of a role's summary in a reason; the handoff's details keep all of it."""

REWORKS = 1
"""How often a task returns to its implementer after a failed review."""


class NextStep(Struct, frozen=True):
    """The step to take."""

    step: str
    reason: str = ""
    """Why the task is blocked."""
    handoff: str = "BLOCKED"
    """The handoff's status: ``FAIL`` where the work did not pass, ``BLOCKED`` where it cannot continue,
    ``PASS`` for a done task."""


def next_step(steps: Sequence[Step], *, auto_fix: bool, max_fixes: int) -> NextStep:
    """Return the step that follows ``steps`` of one run; an open last step is resumed.

    With ``auto_fix`` a fixer works on failing tests, at most ``max_fixes`` times after each
    implementation.
    """
    if not steps:
        return NextStep("implement")
    last = steps[-1]
    if last.open:
        return NextStep(last.step)
    summary = str(last.detail.get("summary", ""))[:MAX_REASON]
    match last.step, last.outcome:
        case "implement", "done" | "nothing_to_do":
            return NextStep("test")
        case "implement", outcome if outcome in _UNDONE:
            return NextStep("blocked", _not_done(_UNDONE[outcome], summary, outcome), "FAIL")
        case "test", "passed" | "none":
            return NextStep("spec_review")
        case "test", "failed":
            return _after_failed_tests(steps, summary, auto_fix, max_fixes)
        case "fix", "done":
            return NextStep("test")
        case "spec_review", "PASS":
            return NextStep("quality_review")
        case "quality_review", "PASS":
            return NextStep("merge")
        case (("spec_review" | "quality_review"), "FAIL"):
            if sum(step.step == "implement" for step in steps) <= REWORKS:
                return NextStep("implement")
            review = last.step.replace("_", " ")
            return NextStep("blocked", f"The {review} failed again after rework: {summary}", "FAIL")
        case "merge", "merged" | "nothing":
            return NextStep("done", handoff="PASS")
        case "merge", "empty":
            return NextStep("blocked", _not_done(_UNDONE["lost"], ""), "FAIL")
        case "fix", "blocked":
            return NextStep("blocked", f"The fixer could not continue: {summary}", "FAIL")
        case _:
            return NextStep("blocked", summary or f"{last.step} ended as {last.outcome}.")


_EXPECTED = ", and a task of this type is done only with a change."
_UNDONE = {
    "empty": f"The implementer changed nothing{_EXPECTED}",
    "blank": f"The implementer changed only blank lines and spaces at line ends{_EXPECTED}",
    "lost": f"No change is left on its branch{_EXPECTED}",
    "idle": "The implementer used no tool and changed nothing.",
    "refused": "The implementer could not do it.",
}
"""By outcome of an implementation that does not count: why."""


def _not_done(why: str, summary: str, outcome: str = "") -> str:
    if outcome == "refused":
        return (
            f"{why} {summary} Its work is kept. Unblock the task to have it tried again, or mark it as done"
            " yourself."
        )
    words = f" Its summary: {summary}" if summary else ""
    return f"{why}{words} If there is nothing to do, mark the task as done yourself."


def _after_failed_tests(
    steps: Sequence[Step], summary: str, auto_fix: bool, max_fixes: int
) -> NextStep:
    fixes = 0
    for step in reversed(steps):
        if step.step == "implement":
            break
        fixes += step.step == "fix"
    if not auto_fix:
        return NextStep("blocked", f"The tests fail: {summary}", "FAIL")
    last_fix = steps[-2] if len(steps) > 1 and steps[-2].step == "fix" else None
    if last_fix is not None and last_fix.detail.get("changed") is False:
        words = str(last_fix.detail.get("summary", ""))[:MAX_REASON]
        remark = f" Its summary: {words}" if words else ""
        return NextStep(
            "blocked",
            f"The fixer changed nothing, and the tests still fail: {summary}{remark}",
            "FAIL",
        )
    if fixes >= max_fixes:
        tries = f"{fixes} {'try' if fixes == 1 else 'tries'} of the fixer"
        return NextStep("blocked", f"The tests still fail after {tries}: {summary}", "FAIL")
    return NextStep("fix")


def summary_of(steps: Sequence[Step], title: str) -> str:
    """Return the implementer's last summary and the result of the tests, or ``title``."""
    summaries = [str(step.detail.get("summary", "")) for step in steps if step.step == "implement"]
    tests = [str(step.detail.get("summary", "")) for step in steps if step.step == "test"]
    fixes = sum(step.step == "fix" for step in steps)
    text = next((summary for summary in reversed(summaries) if summary), title)[:3_000]
    if steps and (steps[-1].step, steps[-1].outcome) == ("merge", "nothing"):
        text = f"{text}\nNo change: there was nothing to merge."
    tries = f" The fixer needed {fixes} {'try' if fixes == 1 else 'tries'}." if fixes else ""
    return f"{text}\n{tests[-1]}{tries}" if tests else text


def details_of(steps: Sequence[Step]) -> str:
    """Return every step with its summary and output, for the handoff's details."""
    parts = []
    for step in steps:
        lines = [str(step.detail[name]) for name in ("summary", "output") if step.detail.get(name)]
        if looked_at := step.detail.get("looked_at"):
            lines.append(f"It was shown {looked_at}.")
            if not step.detail.get("said_looked_at"):
                lines.append("The reviewer did not say what it looked at.")
        text = "\n".join(lines)
        parts.append(f"## {step.step} {step.attempt}: {step.outcome}\n\n{text}".rstrip())
    return "\n\n".join(parts)[:MOST_DETAILS]
