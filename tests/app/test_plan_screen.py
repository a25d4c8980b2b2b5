"""A plan typed into the prompt: proposed, seen, approved with Enter, put aside with Escape."""

from __future__ import annotations

import pytest
from app_world import SIZES, look, screen_of, settled, show_proposal, until

from cockpit.access.principals import PERSON
from cockpit.app.application import CockpitApp
from cockpit.app.key_policy import Discuss, KeyPolicy, Send
from cockpit.backlog.approved_plans import APPROVAL_EFFECTS
from cockpit.backlog.planning.backlog_plan_target import BacklogPlanTarget
from cockpit.backlog.planning.propose_plan import propose
from cockpit.decide.model_settings import ModelSettings
from cockpit.store.backlog import tasks
from cockpit.store.sessions import proposals
from widgets.views import ProposalView

pytestmark = pytest.mark.slow

WIDE = (150, 42)
PLAN = """# Accounts [P1]

Signing in behaves as people expect it.

## Tokens expire when they say

- [ ] Seed the jitter [chore]
- [ ] Refuse expired tokens in `calc.py` [bug, 3h] (after #1)
  Acceptance:
  - a test at the very second
"""


@pytest.fixture
def planned(opened, project, clock):
    """A runtime that can take plans in, in a project with one."""
    (project / "plan.md").write_text(PLAN, encoding="utf-8")
    return opened(clock, approval_effects=APPROVAL_EFFECTS)


async def typed(pilot, words: str) -> None:
    screen = screen_of(pilot)
    await settled(pilot)
    screen.prompt.put(words)
    await pilot.press("enter")


def titles(runtime) -> list[str]:
    return [task.title for task in runtime.store.read_now(lambda c: tasks.select(c))]


async def test_enter_takes_a_plan_in(planned):
    async with planned as runtime:
        app = CockpitApp(runtime)
        async with app.run_test(size=WIDE) as pilot:
            await typed(pilot, "/plan @plan.md")
            await until(pilot, lambda: len(app.pending) == 1)
            screen = await look(pilot)
            assert screen.queue.front is not None
            assert screen.queue.front.title == "Plan: Accounts (1 epic, 1 story, 2 tasks)"
            assert titles(runtime) == []
            await pilot.press("enter")
            await until(pilot, lambda: not app.pending)
            assert titles(runtime) == ["Seed the jitter", "Refuse expired tokens in `calc.py`"]
            assert not app.runs.any_running
            assert app.session_id == ""


async def test_escape_puts_it_aside_and_asks_for_no_words(planned):
    async with planned as runtime:
        app = CockpitApp(runtime)
        async with app.run_test(size=WIDE) as pilot:
            await typed(pilot, "/plan plan.md")
            await until(pilot, lambda: len(app.pending) == 1)
            screen = await look(pilot)
            await pilot.press("escape")
            await until(pilot, lambda: not app.pending)
            await settled(pilot)
            assert screen.key_policy.discussing is None
            assert titles(runtime) == []
            [ended] = runtime.store.read_now(lambda c: proposals.select_recent(c))
            assert ended.status == "discussed"


async def test_its_markdown_is_edited_and_the_edit_is_what_enter_takes_in(planned):
    async with planned as runtime:
        app = CockpitApp(runtime)
        async with app.run_test(size=WIDE) as pilot:
            await typed(pilot, "/plan plan.md")
            await until(pilot, lambda: len(app.pending) == 1)
            screen = await look(pilot)
            first = screen.queue.front
            text, suffix = await runtime.editable(first.proposal_id)
            assert (text, suffix) == (PLAN, ".md")
            edited = text.replace("Seed the jitter", "Sow the jitter")
            await runtime.edit(first.proposal_id, shown_digest=first.digest, text=edited)
            screen = await look(pilot)
            assert screen.queue.front.revises == first.proposal_id
            await pilot.press("enter")
            await until(pilot, lambda: not app.pending)
            assert titles(runtime)[0] == "Sow the jitter"


def test_words_typed_beside_a_plan_are_for_the_session_and_do_not_decide_it(clock):
    key_policy = KeyPolicy(clock.monotonic)
    key_policy.note_drawn(ProposalView("p-1", "action", "Plan: Accounts", "low", "d1"))
    clock.advance(1)
    key_policy.note_key()
    assert key_policy.handle_enter("and mind the notes") == Send("and mind the notes")
    assert key_policy.open is not None
    front = ProposalView("p-2", "action", "edit a.py", "low", "d2", session="s-1")
    key_policy.note_session("s-1", front)
    key_policy.note_drawn(front)
    clock.advance(1)
    key_policy.note_key()
    assert isinstance(key_policy.handle_enter("rather not"), Discuss)


async def test_what_cannot_be_planned_is_told_and_the_words_come_back(planned):
    async with planned as runtime:
        app = CockpitApp(runtime)
        async with app.run_test(size=WIDE) as pilot:
            await typed(pilot, "/plan nosuch.md")
            await until(pilot, lambda: screen_of(pilot).prompt.text == "/plan nosuch.md")
            screen_of(pilot).prompt.put("")
            await typed(pilot, "/plan")
            await until(pilot, lambda: screen_of(pilot).prompt.text == "/plan")
            assert app.pending == []
            assert len(app._notifications) == 2


async def test_the_palette_asks_for_the_file(planned):
    async with planned as runtime:
        app = CockpitApp(runtime)
        async with app.run_test(size=WIDE) as pilot:
            screen = await settled(pilot)
            screen.act("plan")
            await until(pilot, lambda: len(app.screen_stack) == 2)
            await pilot.press(*"plan.md", "enter")
            await until(pilot, lambda: len(app.pending) == 1)


async def test_a_plan_is_rendered_with_all_that_it_says(planned):
    async with planned as runtime:
        app = CockpitApp(runtime)
        async with app.run_test(size=WIDE) as pilot:
            await typed(pilot, "/plan plan.md")
            await until(pilot, lambda: len(app.pending) == 1)
            await look(pilot)
            drawn = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
            assert "Shown as source" not in drawn
            for words in ("Epic: Accounts", "Story: Tokens expire", "after #1", "calc.py"):
                assert words in drawn


async def test_plan(still, pictures):
    app = CockpitApp(still)
    still.store.write_now(lambda tx: propose(tx, PLAN, PERSON))
    async with app.run_test(size=SIZES[0]) as pilot:
        await pictures(pilot, show_proposal)


MODEL_PLAN = """
[[turn]]
text = "Two tasks."
[[turn.call]]
name = "propose_plan"
arguments = { tasks = [ { title = "Add the login", task_type = "feature", acceptance = ["it logs in"] }, \
{ title = "Test the login", task_type = "test", acceptance = ["red without"], after = ["1"] } ] }

[[turn]]
when = { contains = ["one task"] }
text = "One task."
[[turn.call]]
name = "propose_plan"
arguments = { tasks = [ { title = "Add a login", task_type = "feature", acceptance = ["it logs in"] } ] }
""".replace("\\\n", "")


@pytest.fixture
def by_model(opened, tmp_path, clock):
    """A runtime whose model plans."""
    path = tmp_path / "scenario.toml"
    path.write_text(MODEL_PLAN, encoding="utf-8")
    return opened(
        clock,
        approval_effects=APPROVAL_EFFECTS,
        plan_target=BacklogPlanTarget(),
        model=ModelSettings(model=f"script:{path}"),
    )


async def test_words_become_a_plan_of_the_model_which_words_change_and_enter_takes_in(by_model):
    async with by_model as runtime:
        app = CockpitApp(runtime)
        async with app.run_test(size=WIDE) as pilot:
            await typed(pilot, "/plan add a login with tests")
            await until(pilot, lambda: len(app.pending) == 1)
            screen = await look(pilot)
            first = screen.queue.front
            assert first.title == "Plan: Add the login (2 tasks)"
            assert app.session.task_type == "plan"
            assert app.session.expected_waves >= 1
            assert titles(runtime) == []
            await pilot.press("escape")
            await typed(pilot, "one task is enough")
            await until(pilot, lambda: app.pending not in ([], [first.proposal_id]))
            screen = await look(pilot)
            assert screen.queue.front.title == "Plan: Add a login (1 task)"
            await pilot.press("enter")
            await until(pilot, lambda: not app.pending)
            await until(pilot, lambda: titles(runtime) == ["Add a login"])
            screen = await look(pilot)
            assert app.session.status == "completed", "nothing is left to run"
            screen.act("estimate")
            await until(pilot, lambda: len(app._notifications) == 1)
            [notice] = app._notifications
            assert "kind    plan" in notice.message
