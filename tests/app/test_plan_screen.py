"""A plan typed into the prompt: proposed, seen, approved with Enter, put aside with Escape."""

from __future__ import annotations

import pytest
from app_world import look, screen_of, settled, text_of, until

from cockpit.app.application import CockpitApp
from cockpit.backlog.planning.backlog_plan_target import APPROVAL_EFFECTS, BacklogPlanTarget
from cockpit.decide.model_settings import ModelSettings
from cockpit.store.backlog import tasks
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow

WIDE = (130, 42)
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


async def test_escape_puts_a_plan_aside_and_enter_takes_it_in(planned):
    """One that cannot be read comes back into the prompt."""
    async with planned as runtime:
        app = CockpitApp(runtime)
        async with app.run_test(size=WIDE) as pilot:
            for words in ("/plan nosuch.md", "/plan"):
                await typed(pilot, words)
                await until(pilot, lambda words=words: screen_of(pilot).prompt.text == words)
                await until(pilot, lambda: len(app._notifications) == 1)
                app.clear_notifications()
            assert app.pending == []
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

            await typed(pilot, "/plan @plan.md")
            await until(pilot, lambda: len(app.pending) == 1)
            screen = await look(pilot)
            assert screen.queue.front is not None
            assert screen.queue.front.title == "Plan: Accounts (1 epic, 1 story, 2 tasks)"
            assert titles(runtime) == []
            drawn = text_of(app)
            assert "Shown as source" not in drawn
            for words in ("Epic: Accounts", "Story: Tokens expire", "after #1", "calc.py"):
                assert words in drawn
            await pilot.press("enter")
            await until(pilot, lambda: not app.pending)
            assert titles(runtime) == ["Seed the jitter", "Refuse expired tokens in `calc.py`"]
            assert not app.runs.any_running
            assert app.session_id == ""


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
