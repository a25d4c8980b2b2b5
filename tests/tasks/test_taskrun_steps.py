"""What comes next follows from the steps that were taken, and always comes to an end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.backlog import validation
from cockpit.store.chains.task_runs import Step
from cockpit.tasks.steps import next_step

OUTCOMES = {
    "implement": (
        *("done", "nothing_to_do", "empty", "blank", "refused", "idle", "blocked", "trouble"),
    ),
    "test": ("passed", "failed", "none", "refused", "trouble"),
    "fix": ("done", "blocked", "trouble"),
    "spec_review": ("PASS", "FAIL", "BLOCKED"),
    "quality_review": ("PASS", "FAIL", "BLOCKED"),
    "merge": ("merged", "nothing", "empty", "conflict", "trouble"),
}


def taken(steps: list[Step], name: str, outcome: str | None) -> Step:
    attempt = sum(step.step == name for step in steps) + 1
    return Step(
        "T-1",
        1,
        len(steps) + 1,
        "",
        0,
        name,
        attempt,
        None,
        outcome,
        {"summary": "words"},
        "",
        None,
    )


def test_a_reason_can_stand_in_the_backlog_however_much_was_said() -> None:
    steps: list[Step] = []
    for name, outcome in (("implement", "done"), ("test", "none"), ("spec_review", "FAIL")) * 2:
        steps.append(taken(steps, name, outcome))
    steps[-1] = replace(steps[-1], detail={"summary": "x" * 200_000})
    coming = next_step(steps, auto_fix=True, max_fixes=3)
    assert coming.step == "blocked"
    assert validation.text("The notes", coming.reason).startswith("The spec review failed again")


@given(st.data(), st.booleans(), st.integers(0, 5))
def test_every_run_ends_done_only_through_every_gate(
    data: st.DataObject, mends: bool, most: int
) -> None:
    steps: list[Step] = []
    while True:
        coming = next_step(steps, auto_fix=mends, max_fixes=most)
        assert len(steps) < 60
        if coming.step in ("done", "blocked"):
            break
        steps.append(taken(steps, coming.step, data.draw(st.sampled_from(OUTCOMES[coming.step]))))
    last = [(step.step, step.outcome) for step in steps]
    if coming.step == "blocked":
        assert coming.reason
        return
    assert coming.handoff == "PASS"
    assert last[-3][:2] == ("spec_review", "PASS")
    assert last[-2][:2] == ("quality_review", "PASS")
    assert last[-1][1] in ("merged", "nothing")
    assert last[-4] in (("test", "passed"), ("test", "none"))
    assert sum(name == "implement" for name, _ in last) <= 2


@given(st.sampled_from(sorted(OUTCOMES)))
def test_a_step_that_is_open_is_taken_up_again(name: str) -> None:
    assert next_step([taken([], name, None)], auto_fix=True, max_fixes=3).step == name


def test_the_fixer_gets_its_tries_again_after_rework() -> None:
    steps: list[Step] = []
    for name, outcome in (
        *(("implement", "done"), ("test", "failed"), ("fix", "done"), ("test", "passed")),
        *(("spec_review", "FAIL"), ("implement", "done"), ("test", "failed")),
    ):
        steps.append(taken(steps, name, outcome))
    assert next_step(steps, auto_fix=True, max_fixes=1).step == "fix"
    assert next_step(steps, auto_fix=False, max_fixes=1).step == "blocked"
