"""What Markdown is read as: epics, stories, tasks, and what they wait for."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.backlog.planning.parse_plan import LONGEST, read_plan
from cockpit.backlog.planning.plan import Plan, PlanInvalid
from cockpit.backlog.planning.plan_source import plan_source

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "reference" / "plans.md"


def titles(plan: Plan) -> list[str]:
    return [task.title for task in plan.tasks]


def waits(plan: Plan) -> list[tuple[int, int | str, str]]:
    """(task, other, kind) by the numbers of the plan."""
    return [
        (
            plan.tasks[wait.task].number,
            wait.task_id if wait.on is None else plan.tasks[wait.on].number,
            wait.kind,
        )
        for wait in plan.waits
    ]


def test_the_plan_of_the_documentation_is_read_as_it_says() -> None:
    example = DOCUMENT.read_text(encoding="utf-8").partition("```markdown\n")[2].partition("```")[0]
    plan = read_plan(example)
    [epic] = plan.epics
    assert (epic.title, epic.priority) == ("Accounts", "P0")
    assert epic.description == "Signing in behaves as people expect it."
    assert [(story.title, story.epic) for story in plan.stories] == [
        ("Tokens expire when they say", 0),
        ("Sign-in is limited", 0),
    ]
    jitter, expired, utc, count, answer = plan.tasks
    assert (jitter.task_type, jitter.done) == ("chore", True)
    assert expired.title == "Refuse expired tokens in `src/auth.py`"
    assert (expired.task_type, expired.estimate_hours) == ("bug", 3.0)
    assert expired.files == ("src/auth.py",)
    assert expired.description == "Reads the clock once per request."
    assert expired.acceptance_criteria == (
        "- every check uses the same moment\n- a test at the very second"
    )
    assert (utc.title, utc.description) == ("Refresh in UTC", "local time jumps twice a year")
    assert utc.files == ("src/refresh.py", "tests/test_refresh.py")
    assert (count.estimate_hours, count.story, answer.story) == (8.0, 1, 1)
    assert waits(plan) == [
        (2, 1, "blocks"),
        (3, 2, "blocks"),
        (5, 4, "blocks"),
    ]
    assert plan.notes == ()


def test_headings_are_tasks_when_they_say_so() -> None:
    plan = read_plan(
        "# Search\n\nGoal words.\n\n## Part one\n\n### Task 1: Index\n\n**Files:**\n"
        "- Create: `src/index.py`\n- Test: `tests/test_index.py:10-20`\n\n- [ ] Step 1: write the test\n"
        "\n```python\n# not a heading\n- [ ] not a task `src/no.py`\n```\n\n"
        "### Task 7: Query\n\nDepends on: Task 1\n"
    )
    assert [(task.number, task.title) for task in plan.tasks] == [(1, "Index"), (7, "Query")]
    index = plan.tasks[0]
    assert index.files == ("src/index.py", "tests/test_index.py")
    assert "- [ ] Step 1: write the test" in index.description
    assert "- [ ] not a task" in index.description
    assert waits(plan) == [(7, 1, "blocks")]
    assert [story.title for story in plan.stories] == ["Part one"]


def test_the_order_of_spec_kit_is_kept() -> None:
    plan = read_plan(
        """
# Tasks: Feed reader
## Phase 1: Setup
- [x] T001 Create the layout in `src/__init__.py`
- [ ] T002 Add the linter (after #1)
## Phase 2: Foundational (Blocking Prerequisites)
- [ ] T003 Create the store
## Phase 3: User Story 1 - Read a feed (Priority: P1)
- [ ] T004 [P] [US1] Contract test
- [ ] T005 [P] [US1] Integration test
- [ ] T006 [US1] Parse feeds
## Phase 4: User Story 2 - Follow one
- [ ] T007 [US2] Poll feeds
## Phase 5: Polish
- [ ] T008 [P] Run the quickstart
## Dependencies & Execution Order
- Setup has no dependencies
"""
    )
    assert titles(plan)[3:5] == ["Contract test", "Integration test"]
    assert sorted((task, on) for task, on, _ in waits(plan)) == [
        *((2, 1), (3, 2), (4, 3), (5, 3), (6, 4), (6, 5), (7, 3), (8, 6), (8, 7)),
    ]  # fmt: skip


def test_without_boxes_every_item_is_a_task_but_those_of_prose() -> None:
    plan = read_plan(
        "# Ship it\n\n## Goals\n\n- be fast\n\n## Build\n\n1. Compile\n2. Link (after #1)\n"
    )
    assert titles(plan) == ["Compile", "Link"]
    assert plan.epics[0].description == "**Goals**\n\n- be fast"


def test_a_title_is_meant_without_its_paths_and_by_whole_words() -> None:
    plan = read_plan(
        "- [ ] Step 1 in `a/b.py`\n- [ ] Step 10\n- [ ] Last (after Step 1 in, Step 10)\n"
        "- [ ] Very last (after Last)\n"
    )
    assert waits(plan) == [(3, 1, "blocks"), (3, 2, "blocks"), (4, 3, "blocks")]


def test_what_is_left_out_is_told() -> None:
    plan = read_plan("A word.\n\n# E\n\n## S P1\n\n- [ ] A [P0]\n")
    assert [note.partition(":")[0] for note in plan.notes] == [
        "Line 1 belongs to no epic or story and is left out",
        "Line 5",
        "Line 7",
    ]
    assert "A word." in plan.notes[0]
    assert "P0 is left out" in plan.notes[2]


def test_front_matter_and_comments_are_no_part_of_it() -> None:
    plan = read_plan("---\ntitle: x\n---\n<!-- - [ ] hidden -->\n# E\n\n- [ ] A\n")
    assert titles(plan) == ["A"]
    assert plan.epics[0].line == 5
    assert plan.tasks[0].line == 7
    assert plan.notes == ()


PIECES = (
    *("# E", "## S", "### G", "- [ ] A", "- [x] B (after #1)", "- item", "  - After: #1", "```"),
    *("  Acceptance: x", "Task 1: no", "# Task 2: yes", "Priority: P9", "1. one", "> quote", ""),
    *("- [ ] C [bug, 3h] `a/b.py`", "<!-- c -->", "| a | b |", "---", "\t- [ ] tab", "***"),
    *("[x]: y", "- [ ] (after )", "- [ ] **b**: c"),
)
LINES = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=20)), max_size=30)


@pytest.mark.search
@settings(max_examples=examples(30), deadline=None)
@given(LINES)
def test_any_text_is_read_or_refused_in_words(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        plan = read_plan(text)
    except PlanInvalid as error:
        assert str(error)
        return
    assert plan == read_plan(text)
    numbers = [task.number for task in plan.tasks]
    assert len(set(numbers)) == len(numbers) > 0
    shown = plan_source(plan)
    for task in plan.tasks:
        assert f"] #{task.number} {task.title} [" in shown
    for wait in plan.waits:
        assert wait.task_id or wait.on in range(len(plan.tasks))


@pytest.mark.parametrize(
    ("text", "epics", "stories"),
    [
        ("- [ ] a\n- [ ] b\n", [], []),
        ("# One\n- [ ] a\n", ["One"], [("One", 0)]),
        ("## One\n- [ ] a\n## Two\n- [ ] b\n", [], [("One", None), ("Two", None)]),
        ("# Title\n## Epic: E\n### Story: S\n- [ ] a\n", ["E"], [("S", 0)]),
        ("# E\n## S\n### deep\n- [ ] a\n", ["E"], [("S", 0)]),
        ("# E\n## S\n- [ ] a\n# F\n## T\n- [ ] b\n", ["E", "F"], [("S", 0), ("T", 1)]),
        ("Setext\n======\n\n- [ ] a\n", ["Setext"], [("Setext", 0)]),
    ],
)
def test_levels(text: str, epics: list[str], stories: list[tuple[str, int | None]]) -> None:
    plan = read_plan(text)
    assert [epic.title for epic in plan.epics] == epics
    assert [(story.title, story.epic) for story in plan.stories] == stories


@pytest.mark.parametrize(
    ("words", "title", "kind", "hours"),
    [
        ("Mend it [BUG, ~2h]", "Mend it", "bug", 2.0),
        ("Mend it (1.5d)", "Mend it", "feature", 12.0),
        ("Mend it type: chore", "Mend it", "chore", None),
        ("Say (test) what is meant", "Say (test) what is meant", "feature", None),
        ("Read [the guide](docs/guide.md)", "Read [the guide](docs/guide.md)", "feature", None),
        ("Clean up after tests", "Clean up after tests", "feature", None),
        ("Keep 3h of history", "Keep 3h of history", "feature", None),
    ],
)
def test_marks(words: str, title: str, kind: str, hours: float | None) -> None:
    [task] = read_plan(f"- [ ] {words}\n").tasks
    assert (task.title, task.task_type, task.estimate_hours) == (title, kind, hours)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("B (after A one)", [(2, 1, "blocks")]),
        ("B, blocked by #1", [(2, 1, "blocks")]),
        ("B — requires #1", [(2, 1, "requires")]),
        ("B (relates to #1) (after T-4)", [(2, "T-4", "blocks"), (2, 1, "relates_to")]),
        ("B (after a)", [(2, 1, "blocks")]),
        ("B\n  - After: #1, t-7 and T-7", [(2, 1, "blocks"), (2, "T-7", "blocks")]),
        ("B\n  **Depends on:** none", []),
        ("B\n  - Blocked by:\n    - #1\n    - T-2", [(2, 1, "blocks"), (2, "T-2", "blocks")]),
    ],
)
def test_waits(words: str, expected: list[tuple[int, int | str, str]]) -> None:
    plan = read_plan(f"- [ ] A one\n- [ ] {words}\n")
    assert sorted(waits(plan), key=str) == sorted(expected, key=str)
    assert plan.tasks[1].title == "B"


REFUSED = [
    ("nothing to do here", "The plan has no task"),
    ("- [ ] A\n- [ ] B (after C)\n", "Line 2: 'C' names no task"),
    ("- [ ] A x\n- [ ] A y\n- [ ] B (after A)\n", "Line 3: 'A' names several tasks"),
    ("- [ ] A (after #9)\n", "Line 1: there is no task #9"),
    ("- [ ] A\n  Type: epic\n", "Line 2: there is no type 'epic'"),
    ("- [ ] A\n  Estimate: soon\n", "Line 2: the estimate 'soon'"),
    ("- [ ] #2 A\n- [ ] #2 B\n", "Line 2: #2 is given already on line 1"),
    (f"- [ ] {'x' * 301}\n", "Line 1: The title has 301 characters"),
    ("- [ ] [bug]\n", "Line 1: The title is empty"),
    ("x" * (LONGEST + 1), "may have 200,000"),
    ("- [ ] a\n" * 501, "has 501 tasks and may have 500"),
    ("- [ ] A (after #3)\n- [ ] B (after #1)\n- [ ] C (after #2)\n", "#1 A → #3 C → #2 B → #1 A"),
    ("- [ ] A (after #1)\n", "#1 A → #1 A"),
]


def test_what_cannot_be_is_refused_with_its_line() -> None:
    for text, words in REFUSED:
        with pytest.raises(PlanInvalid) as told:
            read_plan(text)
        assert words in str(told.value)


def test_paths_in_backticks() -> None:
    for code, files in (
        ("`src/a.py:3-9`", ("src/a.py",)),
        ("`docs/`", ("docs/",)),
        ("`setup.cfg` and `Makefile`", ("Makefile", "setup.cfg")),
        ("`../out.py` `/etc/passwd` `~/x.py`", ()),
        ("`json.loads` `--flag` `area()`", ()),
    ):
        assert read_plan(f"- [ ] Change {code}\n").tasks[0].files == files
