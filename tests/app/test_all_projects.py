"""All projects on one screen: the one queue, decided with the guarantees of each project's own screen."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from app_world import calm, on_screen, text_of, until, write
from loop.all_projects.projects_world import ask, begin, make_project, open_store, status
from textual.pilot import Pilot

from cockpit.app.all_projects.jump import Jump
from cockpit.app.all_projects.one_queue import OneQueue, name_projects, order_projects, project_rows
from cockpit.app.all_projects.projects_app import AllProjectsApp
from cockpit.app.all_projects.projects_screen import AllProjectsScreen
from cockpit.core.clock import FixedClock
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.state_folder import VARIABLE
from cockpit.loop.all_projects.follow_projects import read_all

pytestmark = pytest.mark.slow

NAMES = ("api", "web", "docs")
DIFF = {"path": "src/client.py", "before": "a = 1\n", "after": "a = 2\n"}


@pytest.fixture
def user_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "user-state"
    monkeypatch.setenv(VARIABLE, str(folder))
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "config"))
    return folder


@pytest.fixture
def places(user_state: Path, tmp_path: Path) -> dict[str, ProjectPaths]:
    """Three projects: two have a proposal of the same id and content, one has nothing yet."""
    places = {name: make_project(tmp_path / "work" / name) for name in NAMES}
    for name in ("api", "web"):
        with open_store(places[name]) as store:
            session = begin(store, places[name].home, branch=f"{name}-branch")
            ask(store, session, "p-same", title="write notes.md", body="the same notes")
    return places


def screen_of_all(pilot: Pilot[int]) -> AllProjectsScreen:
    for screen in pilot.app.screen_stack:
        if isinstance(screen, AllProjectsScreen):
            return screen
    raise AssertionError("the screen over all projects is not open")


async def shown(pilot: Pilot[int], count: int) -> AllProjectsScreen:
    """Wait until every project was read and so many proposals are drawn, the one in front with its frame."""
    screen = screen_of_all(pilot)
    await until(pilot, lambda: screen._has_begun and screen._drawn_queue.total == count)
    await calm(pilot)
    return screen


async def armed(pilot: Pilot[int], clock: FixedClock, count: int) -> AllProjectsScreen:
    """Wait likewise, and let the proposal be seen for a second."""
    screen = await shown(pilot, count)
    clock.advance(1)
    await until(pilot, lambda: screen.key_policy.is_armed)
    return screen


async def decided(pilot: Pilot[int], place: ProjectPaths, proposal_id: str, wanted: str) -> None:
    tasks = screen_of_all(pilot)._tasks
    await until(pilot, lambda: not any(task.get_name() for task in tasks))
    assert await asyncio.to_thread(status, place, proposal_id) == wanted


async def test_enter_decides_in_the_store_of_the_owner_alone(places):
    clock = FixedClock()
    app = AllProjectsApp(clock=clock)
    async with app.run_test(size=(130, 40)) as pilot:
        screen = await shown(pilot, 2)
        assert app.focused is screen.panel
        assert [row.key.split("-")[0] for row in screen.projects.rows] == ["api", "web", "docs"]
        await pilot.press("enter")
        assert screen.key_policy.open is not None, "it was not armed"
        await until(pilot, lambda: "look first" in text_of(pilot.app))
        await armed(pilot, clock, 2)
        front = screen._drawn_queue.front
        assert front is not None
        assert (front.project, front.branch) == ("api", "api-branch")
        await pilot.press("right_square_bracket")
        await armed(pilot, clock, 2)
        assert screen._drawn_queue.front.project == "web"
        await pilot.press("enter")
        await shown(pilot, 1)
        await decided(pilot, places["web"], "p-same", "approved")
        assert status(places["api"], "p-same") == "pending", (
            "its twin waits for a decision of its own"
        )
        await armed(pilot, clock, 1)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not screen)
        await write(pilot, "Why?", "enter")
        await shown(pilot, 0)
        await decided(pilot, places["api"], "p-same", "discussed")
        await until(pilot, lambda: "No proposals" in text_of(pilot.app))
        with open_store(places["docs"]) as store:
            session = begin(store, places["docs"].home)
            ask(store, session, "p-high", title="push", risk="high")
            await armed(pilot, clock, 1)
            await pilot.press("enter")
            await until(pilot, lambda: screen.key_policy.second is not None)
            await pilot.press("down")
            await until(pilot, lambda: screen.key_policy.second is None)
            await armed(pilot, clock, 1)
            await pilot.press("enter", "y")
            await shown(pilot, 0)
            await decided(pilot, places["docs"], "p-high", "approved")
            ask(store, session, "p-no", title="delete it")
            await armed(pilot, clock, 1)
            await pilot.press("x")
            await until(pilot, lambda: app.screen is not screen)
            await write(pilot, "No.", "enter")
            await shown(pilot, 0)
            await decided(pilot, places["docs"], "p-no", "rejected")


async def test_a_new_request_rings_once_is_told_once_and_keys_lead_to_its_project(places):
    told: list[str] = []
    rung: list[int] = []

    class Quiet(AllProjectsApp):
        def get_default_screen(self):
            return AllProjectsScreen(
                self._go,
                clock=self._clock,
                on_request=lambda each: told.append(each.key),
                is_only=True,
            )

        def bell(self) -> None:
            rung.append(1)

    async with Quiet(clock=FixedClock()).run_test(size=(80, 24)) as pilot:
        screen = await shown(pilot, 2)
        assert not told, "what waited before is not news"
        await pilot.press("tab")
        with open_store(places["docs"]) as store:
            ask(store, begin(store, places["docs"].home), "p-new")
        await shown(pilot, 3)
        assert [each.rpartition("/")[2] for each in told] == ["p-new"]
        assert rung == [1]
        names = [row.name for row in screen.projects.rows]
        assert names == ["api", "web", "docs"], "no row moves while the user looks"
        await pilot.press("s")
        await until(
            pilot, lambda: [row.name for row in screen.projects.rows] == ["api", "docs", "web"]
        )
        assert pilot.app.focused is screen.projects, "the focus is the user's"
        await pilot.press("g", "j", "j", "w")
        await until(pilot, lambda: pilot.app.focused is screen.panel)
        assert screen._drawn_queue.front.project == "web"
        await pilot.press("o")
        await until(pilot, lambda: pilot.app.jump is not None)
    jump = pilot.app.jump
    (session_id,) = {each.session_id for each in read_all()[places["web"].state.name].proposals}
    assert (jump.home, jump.session_id, jump.resumes) == (places["web"].home, session_id, True)


async def test_hostile_names_and_branches_reach_no_terminal(user_state, tmp_path):
    hostile = "x\x1b]52;c;eA==\x07\x9b31m\u202e[red]"
    place = make_project(tmp_path / f"p{hostile}", branch=f"b{hostile}")
    with open_store(place) as store:
        session = begin(store, place.home, branch=f"s{hostile}")
        ask(store, session, "p-1", title=f"t{hostile}")
        ask(store, session, "p-2", title=f"u{hostile}")
    broken = make_project(tmp_path / f"q{hostile}")
    broken.database.write_bytes(b"none" * 999)
    app = AllProjectsApp(clock=FixedClock())
    async with app.run_test(size=(160, 45)) as pilot:
        await shown(pilot, 2)
        drawn = text_of(pilot.app)
        assert not [each for each in drawn if each != "\n" and not each.isprintable()], drawn
        assert "[red]" in drawn, "markup stays text"


def test_projects_of_one_name_are_told_apart(user_state, tmp_path):
    for folder in ("one/api", "two/api", "x/one/api"):
        make_project(tmp_path / folder)
    names = sorted(name_projects(read_all().values()).values())
    assert names[0].startswith("/")
    assert names[1].endswith("x/one/api")
    assert names[2] == "two/api"
    states = read_all()
    assert {row.state for row in project_rows(states, order_projects(states))} == {""}
    queue = OneQueue()
    queue.fold(read_all())
    assert queue.waiting == {}


async def test_from_a_project_and_back(still, places):
    async with on_screen(still, size=(80, 24)) as (pilot, app, _):
        await pilot.press("alt+a")
        await until(pilot, lambda: isinstance(app.screen, AllProjectsScreen))
        screen = await shown(pilot, 2)
        still.store.clock.advance(1)
        await until(pilot, lambda: screen.key_policy.is_armed)
        await pilot.press("enter")
        await shown(pilot, 1)
        await decided(pilot, places["api"], "p-same", "approved")
        await pilot.press("q")
        await until(pilot, lambda: not isinstance(app.screen, AllProjectsScreen))
        await pilot.press("alt+a")
        await until(pilot, lambda: isinstance(app.screen, AllProjectsScreen))
        await shown(pilot, 1)
        await pilot.press("o")
        await until(pilot, lambda: app.jump is not None)
    assert isinstance(app.jump, Jump)
    assert app.jump.home == places["web"].home


def make_scene(folder: Path) -> None:
    """Projects in every state, for pictures."""
    branches = {
        "api": "fix-login",
        "web": "main",
        "infra": "main",
        "docs": "main",
        "legacy": "trunk",
    }
    for name, branch in {**branches, "mobile": "release/4.2"}.items():
        place = make_project(folder / name, branch=branch)
        if name == "docs":
            continue
        with open_store(place) as store:
            session = begin(store, place.home, branch=branch)
            if name in ("api", "web"):
                begin(store, place.home, agent="claude", task_type="external_agent")
            if name == "api":
                ask(
                    store, session, "p-1", title="edit src/client.py", risk="medium", diffs=[DIFF],
                    body="The backoff is reset after a success.",
                )  # fmt: skip
            if name == "web":
                ask(store, session, "p-2", title="run make test")
                ask(store, session, "p-3", title="git push origin main", risk="high")
            if name == "infra":
                store.write_now(
                    lambda tx: tx.execute("INSERT INTO migrations VALUES ('9999_later','x','2027')")
                )
        if name == "legacy":
            (place.home / ".git").rename(place.home / "gone")


async def test_picture(user_state, tmp_path, monkeypatch, picture):
    monkeypatch.setenv("HOME", str(tmp_path))
    make_scene(tmp_path / "work")
    app = AllProjectsApp(clock=FixedClock())

    async def ready(pilot: Pilot[int]) -> None:
        await shown(pilot, 3)
        await calm(pilot)

    async with app.run_test(size=(60, 20)) as pilot:
        await picture(pilot, "projects", ((60, 20), (160, 45)), ready)
