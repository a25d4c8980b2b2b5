"""A model plans free text: checked, proposed once, decided by the user, and in the backlog exactly once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from plan_world import Project

from cockpit.backlog.planning.backlog_plan_target import APPROVAL_EFFECTS, BacklogPlanTarget
from cockpit.backlog.planning.model_plan import MOST_TASKS, read_model_plan
from cockpit.backlog.planning.parse_plan import read_plan
from cockpit.backlog.planning.plan import PlanInvalid
from cockpit.backlog.planning.plan_source import plan_source
from cockpit.backlog.service import create_task, set_status
from cockpit.backlog.validation import TASK_TYPES
from cockpit.core.project_paths import locate_project
from cockpit.loop.planner.plan_tool import MOST_INVALID
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.backlog import dependencies, tasks
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.sessions import proposals, sessions

pytestmark = pytest.mark.slow


def task(title: str, **fields: Any) -> dict[str, Any]:
    return {"title": title, "task_type": "feature", "acceptance": ["a test shows it"], **fields}


GOOD = {
    "epic": "Accounts",
    "notes": "I assumed GitHub.",
    "tasks": [
        task("Add the login", files=["src/auth.py"], story="Sign-in"),
        task("Test the login", task_type="test", after=["1"], story="Sign-in"),
        task("Document it", task_type="docs", after=["1", "2"], story="Sign-in"),
    ],
}
CIRCLE = {"tasks": [task("One", after=["2"]), task("Two", after=["1"])]}


def turn(arguments: Mapping[str, Any], contains: str = "", text: str = "A plan.") -> str:
    when = f"when = {{ contains = [{json.dumps(contains)}] }}\n" if contains else ""
    raw = json.dumps(json.dumps(arguments))
    return (
        f"[[turn]]\n{when}text = {json.dumps(text)}\n[[turn.call]]\nname = 'propose_plan'\n"
        f"raw_arguments = {raw}\n"
    )


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Any]:
    """Open a runtime that can plan, with a scripted model."""
    root = tmp_path / "api"
    (root / "src").mkdir(parents=True)
    (root / "src" / "auth.py").write_text("def login():\n    return None\n")

    @asynccontextmanager
    async def opener(script: str, **fields: Any) -> AsyncIterator[tuple[Runtime, str]]:
        path = tmp_path / "scenario.toml"
        path.write_text(script)
        settings = RuntimeSettings(
            user_dir=tmp_path / "user",
            approval_effects=APPROVAL_EFFECTS,
            plan_target=BacklogPlanTarget(),
            **fields,
        )
        async with open_runtime(locate_project(root), settings) as runtime:
            yield runtime, f"script:{path}"

    return opener


async def plan(runtime: Runtime, model: str, words: str = "add OAuth login") -> sessions.Session:
    session_id = await runtime.start(words, model=model, interactive=False, task_type="plan")
    return await runtime.run(session_id)


def titles(store: Store) -> list[str]:
    return [each.title for each in store.read_now(lambda c: tasks.select(c))]


async def test_a_plan_is_one_proposal_and_enters_the_backlog_when_it_is_approved(opened):
    async with opened(turn(GOOD)) as (runtime, model):
        session = await plan(runtime, model)
        store = runtime.store
        assert session.result["status"] == "done"
        [proposal] = store.read_now(lambda c: proposals.select_for_session(c, session.session_id))
        assert proposal.proposal_id in session.result["summary"]
        assert titles(store) == []
        fields = dict(map(tuple, proposal.body["fields"]))
        assert fields["written by"] == model
        assert "waves" in fields["estimate"] and "shipped defaults" in fields["estimate"]
        assert "- a test shows it" in proposal.body["body"]
        await runtime.approve(proposal.proposal_id, shown_digest=proposal.shown_digest)
        assert titles(store) == ["Add the login", "Test the login", "Document it"]
        stored = store.read_now(lambda c: tasks.load(c, "T-1"))
        assert (stored.files, stored.source) == (("src/auth.py",), f"plan {proposal.proposal_id}")
        waits = store.read_now(lambda c: dependencies.select_prerequisites(c, "T-3"))
        assert [each.depends_on_task_id for each in waits] == ["T-1", "T-2"]
        rows = store.read_now(lambda c: journal.rows(c))
        [planned] = [row.detail for row in rows if row.action == "backlog.planned"]
        assert (planned.planned_by, planned.tasks) == (model, ("T-1", "T-2", "T-3"))


async def test_a_model_that_never_mends_its_plan_is_stopped(opened):
    async with opened(turn(CIRCLE)) as (runtime, model):
        session = await plan(runtime, model)
        assert session.result["status"] == "blocked"
        assert f"{MOST_INVALID} plans that cannot be used" in session.result["summary"]
        assert "Take one `after` out" in session.result["summary"]
        last = runtime.store.read_now(lambda c: journal.rows(c, session_id=session.session_id))
        assert sum(row.action == "model.called" for row in last) == MOST_INVALID


async def test_words_about_a_plan_bring_its_next_revision(opened):
    smaller = {"tasks": [task("Add the login only")]}
    script = turn(GOOD) + turn(smaller, contains="one task, please")
    async with opened(script) as (runtime, model):
        session = await plan(runtime, model)
        store = runtime.store
        [first] = store.read_now(lambda c: proposals.select_for_session(c, session.session_id))
        await runtime.discuss(
            first.proposal_id, shown_digest=first.shown_digest, words="one task, please"
        )
        await runtime.run(session.session_id)
        [_, second] = store.read_now(lambda c: proposals.select_for_session(c, session.session_id))
        assert (second.status, second.revises) == ("pending", first.proposal_id)
        assert second.body["changes"]
        await runtime.approve(second.proposal_id, shown_digest=second.shown_digest)
        assert titles(store) == ["Add the login only"]


async def test_the_same_plan_of_two_sessions_is_added_once(opened):
    async with opened(turn(GOOD)) as (runtime, model):
        both = [await plan(runtime, model) for _ in range(2)]
        first, second = (
            runtime.store.read_now(
                lambda c, each=each: proposals.select_for_session(c, each.session_id)
            )[0]
            for each in both
        )
        await runtime.approve(first.proposal_id, shown_digest=first.shown_digest)
        with pytest.raises(PlanInvalid, match="in the backlog already: T-1"):
            await runtime.approve(second.proposal_id, shown_digest=second.shown_digest)
        assert len(titles(runtime.store)) == 3
        still = runtime.store.read_now(lambda c: proposals.load(c, second.proposal_id))
        assert still.status == "pending", "nothing of the approval stays"


async def test_the_model_sees_the_open_tasks_and_may_wait_for_one(opened):
    later = {"tasks": [task("Add the button", after=["T-1"])]}
    async with opened(turn(later, contains=r"T-1 \[feature, todo\] Lay the ground")) as (
        runtime,
        model,
    ):
        runtime.store.write_now(lambda tx: create_task(tx, "Lay the ground", by="person"))
        session = await plan(runtime, model)
        assert session.result["status"] == "done", session.result


def test_the_markdown_for_the_editor_is_the_same_plan(store: Store) -> None:
    words = {
        "tasks": [
            task("Add the login", description="Mind the clock.\n# no heading\n- no task"),
            task("Test it", task_type="test", after=["1"], files=["tests/test_auth.py"]),
        ]
    }
    planned = store.read_now(lambda c: read_model_plan(c, words, TASK_TYPES))
    again = read_plan(plan_source(planned))
    assert [each.title for each in again.tasks] == ["Add the login", "Test it"]
    assert again.waits == planned.waits
    assert again.tasks[1].files == planned.tasks[1].files
    grouped = store.read_now(lambda c: read_model_plan(c, GOOD, TASK_TYPES))
    assert plan_source(read_plan(plan_source(grouped))) == plan_source(grouped)


def test_from_words_to_the_backlog_on_the_command_line(project: Project, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(turn(GOOD), encoding="utf-8")
    model = f"script:{tmp_path / 'scenario.toml'}"
    ran = project.run("plan", "add OAuth login", "--model", model)
    assert "- [ ] #2 Test the login [test] (after #1)" in ran.stdout
    assert "≈ about" in ran.stdout
    [waiting] = json.loads(project.run("proposals", "--json").stdout)
    shown = project.run("proposals", waiting["proposal_id"]).stdout
    assert "written by" in shown
    project.run("proposals", "approve", waiting["proposal_id"])
    estimated = json.loads(project.run("estimate", "--json", "--model", model).stdout)
    assert [each["task_id"] for each in estimated["tasks"]] == ["T-1", "T-2", "T-3"]
    assert estimated["total"]["without_history"] == 3
    assert estimated["tasks"][2]["waits_for"] == ["T-1", "T-2"]


def test_offline_it_says_that_it_needs_a_model(project: Project) -> None:
    ran = project.run("plan", "make it faster, please", "--model", "offline", expect=1)
    assert "Planning this needs a model" in ran.stderr
    assert json.loads(project.run("tasks", "--json").stdout) == []
    planned = project.run("plan", "add a login with tests", "--model", "offline", "--json")
    assert json.loads(planned.stdout)["plan"].count("] #") == 2


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"tasks": []}, "no task"),
    (CIRCLE, "wait for each other: #1 One → #2 Two → #1 One"),
    ({"tasks": [task("A", task_type="magic")]}, "Task 1: The type is 'magic'"),
    ({"tasks": [task(f"T{n}") for n in range(MOST_TASKS + 1)]}, "may have 100"),
    ({"tasks": [task("A", after=["1"])]}, "cannot wait for 1"),
    ({"tasks": [task("A", after=["T-99"])]}, "no T-99"),
    ({"tasks": [task("A", after=["the login"])]}, "write the number"),
    ({"tasks": [task("Add it"), task("add  it!")]}, "Tasks 1 and 2 have the same title"),
    ({"tasks": [task("lay the GROUND")]}, "in the backlog already: T-1"),
    ({"tasks": [task("A", acceptance=["  "])]}, "acceptance is empty"),
    ({"tasks": [task("A", files=["../../etc/passwd"])]}, "not a path within"),
    ({"tasks": [task("A", files=["/etc/passwd"])]}, "not a path within"),
    ({"tasks": [task("A")], "policy": "all"}, "policy"),
    ({"tasks": [task("A", status="done")]}, "status"),
    ({"tasks": [task(" ")]}, "title is empty"),
    (
        {"tasks": [task(f"T{n}", description="word " * 1_500) for n in range(40)]},
        "Say less of each",
    ),
]


def test_what_cannot_be_used_is_refused_with_the_reason(store: Store) -> None:
    store.write_now(lambda tx: create_task(tx, "Lay the ground", by="person"))
    for arguments, words in INVALID:
        with pytest.raises(PlanInvalid) as refused:
            store.read_now(lambda c, given=arguments: read_model_plan(c, given, TASK_TYPES))
        assert words in str(refused.value)
    # The title of a task that is done may be planned again.
    store.write_now(lambda tx: set_status(tx, "T-1", "done", by="person"))
    again = {"tasks": [task("lay the GROUND")]}
    assert store.read_now(lambda c: read_model_plan(c, again, TASK_TYPES)).tasks


async def test_a_fault_goes_back_to_the_model_which_fixes_it(opened):
    """The policy ``all`` adds the plan at once, and running again adds nothing."""
    script = turn(CIRCLE) + turn(GOOD, contains="would wait for each other")
    async with opened(script, policy="all", policy_is_final=True) as (runtime, model):
        session = await plan(runtime, model)
        assert session.result["status"] == "done"
        assert "Added to the backlog: E-1, S-1, T-1 to T-3." in session.result["summary"]
        await runtime.run(session.session_id)
        assert len(titles(runtime.store)) == 3
