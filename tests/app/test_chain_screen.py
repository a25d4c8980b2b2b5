"""Chains on the screen: followed, peeked at, drained and resumed, with real keys over real journals."""

from __future__ import annotations

import chain_scenes
import pytest
import work_scenes
from app_world import look, on_screen, settled, status_of, text_of, until, write
from chain_scenes import ChainScene
from chains.chain_world import Chains
from tasks.taskrun_world import git

from cockpit.app.application import CockpitApp
from cockpit.backlog import service
from cockpit.chains import create_chain
from cockpit.core.clock import RandomIds, SystemClock
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.backlog import tasks
from cockpit.store.chains import chains
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.sessions import outbox, sessions

pytestmark = pytest.mark.slow

WIDE = (150, 42)


def task(still, task_id: str) -> tasks.Task:
    return still.store.read_now(lambda connection: tasks.load(connection, task_id))


def chain(still, chain_id: str = "ch-2") -> chains.Chain:
    return still.store.read_now(lambda connection: chains.load(connection, chain_id))


async def to_row(pilot, screen, key: str) -> None:
    """Into the work pane and down to a row, as a person does."""
    if screen.pane != "work":
        await pilot.press("alt+w")
    await pilot.press("g")
    for _ in range(30):
        if screen.panes.work.at_cursor == key:
            return
        await pilot.press("j")
    raise AssertionError(f"there is no row {key}")


@pytest.fixture
def running(still, project) -> ChainScene:
    return chain_scenes.running(still.store, project)


async def test_a_task_is_tried_again_its_roles_are_followed_and_the_chain_is_drained(
    still, running
):
    async with on_screen(still, size=WIDE) as (pilot, app, screen):
        await to_row(pilot, screen, "ch-2/T-7")
        await pilot.press("r")
        await until(pilot, lambda: task(still, "T-7").status == "in_progress")
        await until(pilot, lambda: "T-7 ○ unblocked" in text_of(app))

        await to_row(pilot, screen, "ch-2/T-2")
        await pilot.press("enter")
        await until(pilot, lambda: "The comparison takes" in text_of(app))
        assert app.session is not None
        assert (app.session.role, app.session.task_id) == ("fixer", "T-2")
        assert screen.pane == "prompt"
        await until(pilot, lambda: "▸ T-2 ▶ fixing" in text_of(app))
        await pilot.press("x", "left", "backspace")
        assert app.session_id  # with words in the prompt the key moves in them
        await pilot.press("delete", "left")
        await until(pilot, lambda: app.session_id == "")
        assert screen.pane == "work"
        assert screen.panes.work.at_cursor == "ch-2/T-2"

        # What is followed goes on with the task's next role.
        await pilot.press("enter")
        await until(pilot, lambda: app.session_id)
        fixer = app.session_id
        running.over("T-2", "done").step("T-2", "test").over("T-2", "passed", passed=13, failed=0)
        assert app.session_id == fixer
        running.step("T-2", "spec_review", says="The second itself is covered.")
        await until(pilot, lambda: "The second itself is covered." in text_of(app))
        await until(pilot, lambda: app.session_id == running.last)
        await pilot.press("left")
        await until(pilot, lambda: app.session_id == "")

        await to_row(pilot, screen, "ch-2/T-2")
        await until(pilot, lambda: "p drain" in text_of(app))
        await pilot.press("p")
        await until(pilot, lambda: chain(still).status == "draining")
        await until(pilot, lambda: "draining" in text_of(app) and "p drain" not in text_of(app))
        assert not chain(still).stop_now
        await pilot.press("z")
        await until(pilot, lambda: chain(still).stop_now)
        await until(pilot, lambda: "stopping" in text_of(app))


async def test_a_chain_that_stopped_goes_on_in_a_process_of_its_own(still, project):
    only = still.store.write_now(lambda tx: service.create_task(tx, "Seed the jitter", by="person"))
    made = await create_chain.create_chain(
        still.store, still.place, create_chain.ChainOptions("all")
    )
    still.store.write_now(lambda tx: service.set_status(tx, only.task_id, "done", by="person"))
    still.store.write_now(lambda tx: chains.end(tx, made.chain_id, "stopped", "by a person"))
    async with on_screen(still, size=WIDE) as (pilot, app, screen):
        await to_row(pilot, screen, made.chain_id)
        await pilot.press("r")
        await until(pilot, lambda: chain(still, made.chain_id).status == "completed")
        await until(pilot, lambda: f"✔ {made.chain_id}" in text_of(app))


def background(app):
    return {task.get_coro().__name__ for task in app._tasks}


async def test_a_chain_is_started_on_the_board_and_finishes_there(tmp_path, monkeypatch):
    """The real command, its worker process and a scripted model, from the key to the branch."""
    world = Chains.made(tmp_path, 1)
    env = world.project.env
    for name in ("HOME", "COCKPIT_CONFIG_DIR"):
        monkeypatch.setenv(name, env[name])
    monkeypatch.setenv("COCKPIT_MODEL", world.project.script(world.scenario(1)))
    settings = RuntimeSettings(user_dir=tmp_path / "user")
    async with (
        open_runtime(locate_project(world.root), settings) as runtime,
        on_screen(runtime, size=WIDE) as (pilot, app, _),
    ):
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "Write part1" in text_of(app))
        await pilot.press("W", "enter")
        await settled(pilot)
        await write(pilot, "--approve all", "enter")
        await until(pilot, lambda: "✔ T-1" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "✔ ch-1" in text_of(app))
        # The process of the chain ends a little after the chain.
        await until(pilot, lambda: "start_work" not in background(app))
        await settled(pilot)
        assert not [each for each in app._notifications if "failed" in each.message]
    assert world.statuses() == {"T-1": "done"}
    assert git(world.root, "show", "cockpit/ch-1:part1.py") == "x = 1"


async def test_what_a_role_asks_is_decided_here_and_done_there(opened, clock, project):
    async with opened(clock) as runtime:
        running = chain_scenes.running(runtime.store, project)
        async with on_screen(runtime, size=WIDE, ready=look) as (pilot, app, screen):
            await until(pilot, lambda: "ch-2 s3 · T-5 · implementer" in text_of(app))
            await to_row(pilot, screen, "ch-2/T-5")
            await pilot.press("enter")
            await until(pilot, lambda: app.session_id == running.last)
            await look(pilot)
            await pilot.press("enter")
            await until(pilot, lambda: status_of(runtime, "p-chain") == "approved")
            await pilot.press("h", "i", "enter")
            await until(pilot, lambda: app.runs.any_running is False and not screen.prompt.text)
            await settled(pilot)
            rows = runtime.store.read_now(
                lambda c: journal.rows(c, after=0, session_id=running.last, limit=1_000)
            )
        told = [row.action for row in rows]
        assert "session.resumed" not in told  # nobody took it up in the person's checkout
        assert runtime.store.read_now(lambda c: outbox.select_for_session(c, running.last)) == []
        session = runtime.store.read_now(lambda c: sessions.load(c, running.last))
        assert session.status != "completed"


async def test_chains_of_another_process_appear_without_a_key(still, project):
    work_scenes.story(still.store)
    other = Store.open(still.store.path, SystemClock(), RandomIds())
    app = CockpitApp(still)
    try:
        async with app.run_test(size=WIDE) as pilot:
            await settled(pilot)
            scene = ChainScene(other, project).begin("epic", "E-1")
            await until(pilot, lambda: "▶ ch-1 epic E-1" in text_of(app))
            scene.session().batch(1, "T-3").step("T-3", "implement", spends=4_000, cost=0.02)
            await until(pilot, lambda: "T-3 ▶ implementing" in text_of(app))
            scene.over("T-3", "done").step("T-3", "test")
            await until(pilot, lambda: "T-3 ▶ testing" in text_of(app))
            scene.done("T-3").rests().session()
            await until(
                pilot, lambda: "✔ s1 ▶ s2" in text_of(app) and "T-3 ✔ handoff" in text_of(app)
            )
            scene.rests("empty").ends()
            await until(pilot, lambda: "! ch-1 epic E-1" in text_of(app))
    finally:
        other.close()
