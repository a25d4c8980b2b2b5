"""Real keys on the real runtime: a scripted agent asks, the user decides."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from app_git import git
from app_world import screen_of, settled, until, write
from work_scenes import story

from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.branch_view import BranchView
from cockpit.core.clock import FixedClock
from cockpit.decide.choose_model import ModelSettings
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import messages, proposals, sessions

pytestmark = pytest.mark.slow

SCENARIO = """
[[turn]]
when = { not_called = ["request_context"] }
text = "I need the file and the notes."
[[turn.call]]
name = "request_context"
arguments.purpose = "fix add"
arguments.question = "what does add do?"
arguments.scope = ["file:calc.py", "file:notes.md"]

[[turn]]
when = { called = ["request_context"], not_called = ["edit_file"] }
text = "The sign is wrong."
[[turn.call]]
name = "edit_file"
arguments = { path = "calc.py", old = "a - b", new = "a + b" }

[[turn]]
when = { called = ["edit_file"] }
text = "Done."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "add adds" }

[[turn]]
when = { called = ["request_context"], contains = ["use the operator module"] }
text = "As you say."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "left to you" }
"""


@pytest.fixture
def cockpit(opened, tmp_path, project):
    """The app on a real runtime, with a scripted agent; begins with ``words``."""

    @asynccontextmanager
    async def run(words="fix add", *, scenario=SCENARIO, size=(120, 30), **fields):
        path = tmp_path / "scenario.toml"
        path.write_text(scenario)
        clock = FixedClock()
        async with opened(clock, model=ModelSettings(model=f"script:{path}")) as runtime:
            app = CockpitApp(runtime, first_message=words, **fields)
            async with app.run_test(size=size) as pilot:
                yield pilot, app, runtime

    return run


async def asked(pilot, app, kind="context"):
    """Wait for a proposal of ``kind``, seen long enough to be decided."""
    screen = screen_of(pilot)
    await until(
        pilot, lambda: screen.key_policy.open is not None and screen.key_policy.open.kind == kind
    )
    await until(pilot, lambda: screen.key_policy.is_read)
    app.engine.store.clock.advance(1)
    await until(pilot, lambda: screen.panes.proposals.armed)
    return screen


def decided(runtime):
    found = runtime.store.read_now(proposals.select_recent)
    return [(each.kind, each.status) for each in reversed(found)]


def said(runtime, app):
    found = runtime.store.read_now(lambda c: messages.select_for_session(c, app.session_id))
    return [message.text for message in found if message.role == "person"]


def status(runtime, app):
    return runtime.store.read_now(lambda c: sessions.load(c, app.session_id)).status


async def test_enter_twice_carries_a_change_to_its_end_and_typing_approves_nothing(
    cockpit, project
):
    async with cockpit() as (pilot, app, runtime):
        screen = screen_of(pilot)
        await pilot.press(*"hm")
        await until(pilot, lambda: screen.key_policy.open is not None)
        assert screen.prompt.has_focus, "the focus stays as a proposal arrives"
        assert screen.prompt.text == "hm"
        await pilot.press(*["backspace"] * 2)
        assert not screen.panes.proposals.armed
        await pilot.press("enter")
        await until(pilot, lambda: "look first" in str(screen.prompt.border_title))
        await asked(pilot, app)
        await pilot.press(*"ok", "backspace", "backspace", "enter")
        assert decided(runtime) == [("context", "pending")]
        await asked(pilot, app)
        await pilot.press("enter")
        await asked(pilot, app, "action")
        assert (project / "calc.py").read_text() == "def add(a, b):\n    return a - b\n"
        await pilot.press("enter")
        await until(pilot, lambda: status(runtime, app) == "completed")
        assert (project / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
        assert decided(runtime) == [("context", "approved"), ("action", "approved")]
        await settled(pilot)
        assert screen.queue.front is None
        assert runtime.store.read_now(verify_chain.verify).ok


async def test_a_request_is_narrowed_and_the_words_after_escape_are_one_decision_and_one_wave(
    cockpit, project
):
    async with cockpit() as (pilot, app, runtime):
        screen = await asked(pilot, app)
        await pilot.press("ctrl+n", "space", "j", "space")
        await until(pilot, lambda: screen.panes.proposals.has_focus)
        app.engine.store.clock.advance(1)
        await pilot.press("enter")
        await until(pilot, lambda: "no item is ticked" in str(screen.prompt.border_title))
        app.engine.store.clock.advance(1)
        await pilot.press("escape")
        await until(pilot, lambda: not screen.panes.proposals.narrowing)
        assert screen.kept_items is None
        assert decided(runtime) == [("context", "pending")], "Escape left the narrowing alone"
        assert len(screen.panes.proposals.kept) == 2, "all are ticked, as all would be approved"
        await pilot.press("ctrl+n", "j", "space")
        app.engine.store.clock.advance(1)
        await pilot.press("enter")
        await asked(pilot, app, "action")
        found = runtime.store.read_now(proposals.select_recent)[-1]
        assert found.narrowed == ("file:calc.py",)
        assert screen.prompt.has_focus

        await pilot.press("escape")
        await until(pilot, lambda: screen.prompt.hint == "type your reply")
        assert screen.prompt.has_focus
        assert screen.panes.is_visible("proposals"), "it can be read while one writes"
        assert decided(runtime)[-1] == ("action", "pending")
        app.engine.store.clock.advance(1)
        await pilot.press("enter")
        assert decided(runtime)[-1] == ("action", "pending"), "without words Enter does nothing"
        await write(pilot, "use the operator module", "enter")
        await until(pilot, lambda: status(runtime, app) == "completed")
        assert said(runtime, app)[-1] == "use the operator module"
        assert decided(runtime)[-1] == ("action", "discussed")
        assert (project / "calc.py").read_text() == "def add(a, b):\n    return a - b\n"
        waves = runtime.store.read_now(
            lambda c: c.execute("SELECT count(*) FROM wave_runs").fetchone()
        )
        assert waves[0] == 3, "one that read, one that asked, and one for the words"


async def test_a_policy_takes_two_keys_ctrl_c_interrupts_words_resume_and_twice_quits(cockpit):
    """A wider policy takes two keys, a narrower one."""
    async with cockpit() as (pilot, app, runtime):
        screen = await asked(pilot, app)

        def policy():
            return runtime.store.read_now(lambda c: sessions.load(c, app.session_id)).policy

        await pilot.press("shift+tab")
        await until(pilot, lambda: screen.wider_policy == "trusted")
        await pilot.press("shift+tab")
        await until(pilot, lambda: screen.wider_policy == "reads")
        await pilot.press("x", "backspace")
        await until(pilot, lambda: screen.wider_policy == "")
        assert policy() == "ask"
        await pilot.press("shift+tab", "shift+tab", "ctrl+y")
        await until(pilot, lambda: policy() == "reads")
        await until(pilot, lambda: app.session is not None and app.session.policy == "reads")
        await pilot.press("shift+tab", "shift+tab")
        await until(pilot, lambda: policy() == "ask")

        await pilot.press("ctrl+c")
        await until(pilot, lambda: status(runtime, app) == "stopped")
        await until(pilot, lambda: not app.runs.any_running)
        app.engine.store.clock.advance(1)
        await pilot.press("escape")
        await write(pilot, "go on", "enter")
        await until(pilot, lambda: decided(runtime)[0] == ("context", "discussed"))
        await until(pilot, lambda: "go on" in said(runtime, app))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.runs.any_running)
        await pilot.press("ctrl+c")
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app._exit)


async def test_the_draft_survives_a_restart_and_ctrl_d_quits_only_an_empty_prompt(cockpit, project):
    """And the first letter of a draft is announced, so that the program loads what a call needs."""
    drafts = []
    async with cockpit(None, on_draft=lambda: drafts.append("written")) as (pilot, app, _):
        screen = await settled(pilot)
        assert drafts == []
        await write(pilot, "/nonsense 24", "enter")
        await until(pilot, lambda: screen.prompt.text == "/nonsense 24")
        assert drafts and app.session_id == "", "text that begins no session comes back"
        screen.prompt.put("")
        await write(pilot, "half a", "ctrl+j")
        await write(pilot, "thought")
        await until(pilot, lambda: screen.prompt.text == "half a\nthought")
        await app.quit()
    async with cockpit(None) as (pilot, app, _):
        screen = screen_of(pilot)
        assert screen.prompt.text == "half a\nthought"
        screen.prompt.put("")
        await pilot.press("x", "home", "ctrl+d")
        assert screen.prompt.text == ""
        assert app._exit is False
        await pilot.press("ctrl+d")
        await until(pilot, lambda: app._exit)
    assert git(project, "status", "--short") == ""


async def test_the_focus_is_one_session_and_a_key_moves_all_of_it(cockpit):
    async with cockpit() as (pilot, app, runtime):
        screen = await asked(pilot, app)
        first, session_id = screen.front_id, app.session_id
        await pilot.press("f7")
        await until(pilot, lambda: screen.key_policy.session == "")
        assert screen.queue.front is None
        assert screen.queue.others == 1, "what waits elsewhere is a line"
        await write(pilot, "fix add too", "enter")
        await until(pilot, lambda: screen.queue.total == 2 and screen.queue.front is not None)
        assert screen.front_id != first
        other = app.session_id
        assert screen.queue.front.session == other
        await pilot.press("alt+n")
        await until(pilot, lambda: screen.key_policy.session == session_id)
        assert (app.session_id, screen.front_id) == (session_id, first)
        await pilot.press("alt+n")
        await until(pilot, lambda: screen.key_policy.session == other)
        await asked(pilot, app)
        await write(pilot, "use the operator module", "enter")
        await until(pilot, lambda: status(runtime, app) == "completed")
        assert said(runtime, app)[-1] == "use the operator module"
        await until(pilot, lambda: screen.queue.front is None and screen.queue.others == 1)
        await pilot.press("enter")
        await until(pilot, lambda: screen.key_policy.session == session_id)
        assert decided(runtime).count(("context", "pending")) == 1


async def test_files_branches_and_tasks_complete(still):
    root = still.place.root
    git(root, "branch", "topic/rounding")
    git(root, "tag", "v1.0")
    git(root, "pack-refs", "--all")
    git(root, "branch", "topic/new")
    story(still.store)
    app = CockpitApp(still)
    async with app.run_test(size=(120, 40)) as pilot:
        prompt = (await settled(pilot)).prompt
        await write(pilot, "look at @ca")
        await pilot.press("l")
        await until(pilot, lambda: prompt._list.open)
        await pilot.press("tab")
        assert prompt.text == "look at @calc.py "

        async def offered(text: str) -> list[str]:
            prompt.clear()
            await until(pilot, lambda: not prompt._list.open)
            prompt.insert(text)
            await until(pilot, lambda: prompt._list.open)
            return [each.text for each in prompt._list.choices]

        assert await offered("/review ") == [
            f"/review {name}" for name in ("main", "v1.0", "topic/new", "topic/rounding")
        ]
        assert await offered("/review main..top") == [
            "/review main..topic/new",
            "/review main..topic/rounding",
        ]
        await pilot.press("down", "tab")
        assert prompt.text == "/review main..topic/rounding "
        assert "/work T-2" in await offered("/work ")
        # The exact one first; a whole id is sent by Enter, not completed.
        assert await offered("/agent claude see T-1") == ["T-1", "T-10"]
        assert prompt._list.choices[0].hint == "Seed the jitter of retries"
        assert prompt._is_complete()
        await pilot.press("down", "tab")
        assert prompt.text == "/agent claude see T-10 "
        prompt.clear()
        prompt.insert("/diff T-2")
        await until(pilot, lambda: prompt._list.open)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, BranchView))
