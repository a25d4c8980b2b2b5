"""Pictures of dialogs: each over the screen that it is opened on."""

from __future__ import annotations

import pytest
from app_scenes import to_decide
from app_world import calm, look, on_screen, screen_of, text_of, until
from permission_scenes import Agents, tell_of_work
from test_hunks import AFTER as NEW
from test_hunks import BEFORE as OLD

from cockpit.app.actions.rewind_actions import describe_plan
from cockpit.app.dialogs.answer_form import AnswerForm
from cockpit.app.dialogs.pick_hunks import PickHunks
from cockpit.app.dialogs.scroll_rows import ScrollRows
from cockpit.app.dialogs.small_dialogs import PickOne
from cockpit.loop.decisions.keep_hunks import EditableChange
from cockpit.loop.rewind.plan_rewind import FileBack, RewindPlan

pytestmark = pytest.mark.slow

SIZE = (120, 36)
KEYS = {"palette": "ctrl+p", "key-menu": "alt+h", "reject": "ctrl+x", "peek": "alt+w space"}


async def test_dialogs(still, scene, picture):
    to_decide(scene).advance("acting").edit()
    async with on_screen(still, scene.session_id, size=SIZE, ready=look) as (pilot, app, _):
        await pilot.press("f1")
        await picture(pilot, "help", ((60, 20), SIZE))
        await pilot.press("escape")
        for name, keys in KEYS.items():
            await look(pilot)
            await pilot.press(*keys.split())
            await until(pilot, lambda: len(app.screen_stack) > 1)
            await picture(pilot, name)
            await pilot.press("escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_choices_and_questions_of_an_external_agent(still, project, picture):
    agents = Agents(still.store, project)
    at_work = agents.begin("claude", "reset the backoff", task_type="agent")
    tell_of_work(still.store, at_work, at_work=True)
    asking = agents.begin("claude", "reset the backoff")
    agents.ask(asking, "p-1", agents.questions())
    async with on_screen(still, at_work, size=SIZE) as (pilot, app, _):
        screen_of(pilot).prompt.put("/mode")
        screen_of(pilot).prompt._close()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, PickOne))
        await picture(pilot, "modes")
        await pilot.press("escape")
        screen_of(pilot).prompt.put("")
        app.attach(asking)
        await look(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AnswerForm))
        await pilot.press("down", "enter", "space")
        await picture(pilot, "questions")


async def test_going_back_to_a_wave_and_some_hunks_of_a_change(still, project, picture):
    files = (
        FileBack("src/http/retry.py", "x", b"before"),
        FileBack("tests/test_retry.py", "x", None),
    )
    stays = (
        "run pytest -q: what a command did is not undone.",
        "commit “Reset the backoff”: what a commit did is not undone.",
        "src/http/client.py: it changed since the session wrote it, and stays as it is.",
    )
    async with on_screen(still, size=SIZE) as (pilot, app, _):
        plan = describe_plan(RewindPlan("s-1", 4, project, files, stays))
        await app.open_screen(ScrollRows("Go back to wave 4?", plan, "go back"))
        await calm(pilot)
        await picture(pilot, "rewind")
        await pilot.press("escape")
        change = EditableChange.find(OLD, NEW, NEW)
        await app.open_screen(PickHunks("src/lines.txt", change.list_hunks()))
        await pilot.press("j", "space")
        await until(pilot, lambda: "1 of 2 hunks kept" in text_of(app))
        await picture(pilot, "hunks")
