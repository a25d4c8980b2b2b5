"""Chains on the screen: followed, peeked at, drained and resumed, with real keys over real journals."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import chain_scenes
import pytest
import work_scenes
from app_world import look, settled, until
from chain_scenes import ChainScene
from chains.chain_world import Chains
from tasks.taskrun_world import git

from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.peek_session import PeekDialog
from cockpit.app.screens.lists.sessions_screen import SessionsScreen
from cockpit.app.screens.task_screen import TaskScreen
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
from cockpit.store.sessions import messages, outbox, proposals, sessions

pytestmark = pytest.mark.slow

WIDE = (150, 42)
SIZES = [(20, 6), (40, 12), (80, 24), (100, 30), (200, 50), (300, 80)]


def text(app) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def toasts(app) -> list[str]:
    return [each.message for each in app._notifications]


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


@pytest.fixture(autouse=True, scope="module")
def warm_processes() -> Iterator[None]:
    """Fork the processes that the screen starts, and theirs, from one that has loaded cockpit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", sys.executable)
        yield


@pytest.fixture
def running(still, project) -> ChainScene:
    return chain_scenes.running(still.store, project)


async def test_a_role_is_followed_and_one_comes_back(still, running):
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await settled(pilot)
        await to_row(pilot, screen, "ch-2/T-2")
        await pilot.press("enter")
        await until(pilot, lambda: "The comparison takes" in text(app))
        assert app.session is not None
        assert (app.session.role, app.session.task_id) == ("fixer", "T-2")
        assert screen.pane == "prompt"
        await until(pilot, lambda: "▸ T-2 ▶ fixing" in text(app))
        await pilot.press("x", "left", "backspace")
        assert app.session_id  # with words in the prompt the key moves in them
        await pilot.press("delete", "left")
        await until(pilot, lambda: app.session_id == "")
        assert screen.pane == "work"
        assert screen.panes.work.at_cursor == "ch-2/T-2"


async def test_what_is_followed_goes_on_with_the_tasks_next_role(still, running):
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await settled(pilot)
        await to_row(pilot, screen, "ch-2/T-2")
        await pilot.press("enter")
        fixer = app.session_id
        running.over("T-2", "done").step("T-2", "test").over("T-2", "passed", passed=13, failed=0)
        assert app.session_id == fixer
        running.step("T-2", "spec_review", says="The second itself is covered.")
        await until(pilot, lambda: "The second itself is covered." in text(app))
        assert app.session_id == running.last
        await pilot.press("left")
        await until(pilot, lambda: app.session_id == "")


async def test_a_glance_at_a_role_goes_on_while_it_is_open(still, running):
    other = Store.open(still.store.path, SystemClock(), RandomIds())
    app = CockpitApp(still)
    try:
        async with app.run_test(size=WIDE) as pilot:
            screen = await settled(pilot)
            await to_row(pilot, screen, "ch-2/T-2")
            await pilot.press("space")
            await until(pilot, lambda: isinstance(app.screen, PeekDialog))
            await until(pilot, lambda: "ch-2 s3 · fixer · T-2" in text(app))
            session_id = app.feed.state.chains.chains["ch-2"].runs["T-2"].session_id
            other.write_now(
                lambda tx: messages.complete(
                    tx, session_id=session_id, role="agent", text="Now it is `<=`.", wave_id=""
                )
            )
            await until(pilot, lambda: "Now it is" in text(app))
            assert app.session_id == ""
            await pilot.press("space")
            await until(pilot, lambda: app.screen is screen)
    finally:
        other.close()


async def test_heads_and_sessions_lead_to_what_works_there(still, running):
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await settled(pilot)
        await to_row(pilot, screen, "ch-2/s3")
        await pilot.press("enter")
        assert app.session is not None
        assert app.session.task_id == "T-5"
        await pilot.press("left")
        await to_row(pilot, screen, "ch-2/T-3")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen))
        await pilot.press("escape")
        await to_row(pilot, screen, "ch-1")
        await pilot.press("enter")  # nothing runs there: its tree is opened
        await until(pilot, lambda: "no tasks were left" in text(app))
        await pilot.press("left")
        await until(pilot, lambda: "no tasks were left" not in text(app))


async def test_the_list_of_sessions_has_those_of_chains(still, running):
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        await pilot.press("f6")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen) and app.screen.rows)
        await until(pilot, lambda: "ch-2 s3 · fixer" in text(app))
        await pilot.press("slash", *"fixer", "enter", "enter")
        await until(pilot, lambda: app.session is not None and app.session.role == "fixer")


async def test_a_chain_is_drained_then_stopped(still, running):
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await settled(pilot)
        await to_row(pilot, screen, "ch-2/T-2")
        await until(pilot, lambda: "p drain" in text(app))
        await pilot.press("p")
        await until(pilot, lambda: chain(still).status == "draining")
        await until(pilot, lambda: "draining" in text(app) and "p drain" not in text(app))
        assert not chain(still).stop_now
        await pilot.press("z")
        await until(pilot, lambda: chain(still).stop_now)
        await until(pilot, lambda: "stopping" in text(app))


async def test_a_chain_whose_processes_are_gone_is_stopped_at_once(still, running):
    def forsaken(tx) -> None:
        tx.execute("UPDATE chains SET owner='1/0' WHERE chain_id='ch-2'")
        tx.execute("UPDATE chain_sessions SET process='999999/0' WHERE chain_id='ch-2'")

    still.store.write_now(forsaken)
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await settled(pilot)
        await to_row(pilot, screen, "ch-2")
        await pilot.press("p")
        await until(pilot, lambda: chain(still).status == "stopped")
        await until(pilot, lambda: "✗ s3" in text(app))


@pytest.mark.parametrize("key", ["r", "u"])
async def test_a_blocked_task_is_tried_again(still, running, key):
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await settled(pilot)
        await to_row(pilot, screen, "ch-2/T-7")
        await pilot.press(key)
        await until(pilot, lambda: task(still, "T-7").status == "in_progress")
        await until(pilot, lambda: "T-7 ○ unblocked" in text(app))


async def test_a_chain_that_stopped_goes_on_in_a_process_of_its_own(still, project):
    only = still.store.write_now(lambda tx: service.create_task(tx, "Seed the jitter", by="person"))
    made = await create_chain.create_chain(
        still.store, still.place, create_chain.ChainOptions("all")
    )
    still.store.write_now(lambda tx: service.set_status(tx, only.task_id, "done", by="person"))
    still.store.write_now(lambda tx: chains.end(tx, made.chain_id, "stopped", "by a person"))
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await settled(pilot)
        await to_row(pilot, screen, made.chain_id)
        await pilot.press("r")
        await until(pilot, lambda: chain(still, made.chain_id).status == "completed")
        await until(pilot, lambda: f"✔ {made.chain_id}" in text(app))


async def test_work_in_the_prompt_says_what_it_cannot_start(still, project):
    """In the real command's words; the prompt has its text again, and no chain is made."""

    def add(tx) -> None:
        made = service.create_task(tx, "Wait", by="person")
        service.block(tx, made.task_id, "unclear", by="person")

    still.store.write_now(add)
    script = project.parent / "nothing.toml"
    script.write_text('[[turn]]\ntext = "x"\n', encoding="utf-8")
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await settled(pilot)
        for words, message in (
            ("/work E-9 --frob", "/work has no option --frob"),
            (f"/work --model script:{script}", "No task in the backlog can start: 1 blocked"),
        ):
            screen.prompt.put(words)
            await pilot.press("enter")
            await until(pilot, lambda said=message: any(said in told for told in toasts(app)))
            assert screen.prompt.text == words
        assert still.store.read_now(chains.select) == []


async def test_a_chain_begins_from_the_board_and_the_prompt(still, project, monkeypatch):
    commands = []

    async def run(place, arguments) -> None:
        commands.append(arguments)

    monkeypatch.setattr("cockpit.app.commands.work_command.run_chain_command", run)
    work_scenes.story(still.store)
    ChainScene(still.store, project).begin().session().rests().ends("stopped")
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        await pilot.press("ctrl+t")
        await settled(pilot)
        await pilot.press("W", "enter")
        await settled(pilot)
        await pilot.press(*"-n 3", "enter")
        await until(pilot, lambda: len(commands) == 1)
        await pilot.press("W", *"Resume", "enter")
        await settled(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: len(commands) == 2)
        await pilot.press("escape")
        screen = await settled(pilot)
        screen.prompt.put("/work S-2 --approve reads")
        await pilot.press("enter")
        await until(pilot, lambda: len(commands) == 3)
    assert commands[2] == ("work", "--story", "S-2", "--approve", "reads")
    assert commands[0][:4] == ("work", "--all", "-n", "3")
    assert "--approve" in commands[0]
    assert commands[1] == ("chain", "resume", "ch-1")


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
    async with open_runtime(locate_project(world.root), settings) as runtime:
        app = CockpitApp(runtime)
        async with app.run_test(size=WIDE) as pilot:
            await settled(pilot)
            await pilot.press("ctrl+t")
            await until(pilot, lambda: "Write part1" in text(app))
            await pilot.press("W", "enter")
            await settled(pilot)
            await pilot.press(*"--approve all", "enter")
            await until(pilot, lambda: "✔ T-1" in text(app), looks=600, pause_s=0.1)
            await pilot.press("escape")
            await until(pilot, lambda: "✔ ch-1" in text(app), looks=600, pause_s=0.1)
            # The process of the chain ends a little after the chain.
            await until(pilot, lambda: "start_work" not in background(app), looks=600, pause_s=0.1)
            await settled(pilot)
            assert not [told for told in toasts(app) if "failed" in told]
    assert world.statuses() == {"T-1": "done"}
    assert git(world.root, "show", "cockpit/ch-1:part1.py") == "x = 1"


async def test_a_chain_that_cannot_go_on_says_why(still, project):
    work_scenes.story(still.store)
    ChainScene(still.store, project).begin().session().rests().ends("stopped")
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await settled(pilot)
        await to_row(pilot, screen, "ch-1")
        still.place.folder.mkdir(exist_ok=True)
        (still.place.folder / "config.toml").write_text("[work\n")
        await pilot.press("r")
        await until(pilot, lambda: any("ch-1 was not resumed" in told for told in toasts(app)))


async def test_what_a_role_asks_is_decided_here_and_done_there(opened, clock, project):
    async with opened(clock) as runtime:
        running = chain_scenes.running(runtime.store, project)
        app = CockpitApp(runtime)
        async with app.run_test(size=WIDE) as pilot:
            screen = await look(pilot)
            await until(pilot, lambda: "ch-2 s3 · T-5 · implementer" in text(app))
            await to_row(pilot, screen, "ch-2/T-5")
            await pilot.press("enter")
            assert app.session_id == running.last
            await look(pilot)
            await pilot.press("enter")
            await until(
                pilot,
                lambda: (
                    runtime.store.read_now(lambda c: proposals.load(c, "p-chain")).status
                    == "approved"
                ),
            )
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
            await until(pilot, lambda: "▶ ch-1 epic E-1" in text(app))
            scene.session().batch(1, "T-3").step("T-3", "implement", spends=4_000, cost=0.02)
            await until(pilot, lambda: "T-3 ▶ implementing" in text(app))
            scene.over("T-3", "done").step("T-3", "test")
            await until(pilot, lambda: "T-3 ▶ testing" in text(app))
            scene.done("T-3").rests().session()
            await until(pilot, lambda: "✔ s1 ▶ s2" in text(app) and "T-3 ✔ handoff" in text(app))
            scene.rests("empty").ends()
            await until(pilot, lambda: "! ch-1 epic E-1" in text(app))
    finally:
        other.close()


@pytest.mark.parametrize("size", SIZES)
async def test_any_size_draws_chains(still, running, size):
    app = CockpitApp(still)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("f5", "alt+w", "right", "j", "j")
        await settled(pilot)
        if size[0] >= 40:
            assert "ch-2" in text(app)
        await asyncio.sleep(0)
