"""All projects on one screen: the one queue, decided with the guarantees of each project's own screen."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from app_world import SIZES, calm, settled, until
from loop.all_projects.projects_world import ask, begin, make_project, open_store, status
from textual.pilot import Pilot

from cockpit.app.all_projects.jump import Jump
from cockpit.app.all_projects.one_queue import OneQueue, name_projects, order_projects, project_rows
from cockpit.app.all_projects.projects_app import AllProjectsApp
from cockpit.app.all_projects.projects_screen import AllProjectsScreen
from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.key_menu import KeyMenuDialog
from cockpit.core.clock import FixedClock
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.state_folder import VARIABLE
from cockpit.loop.all_projects.follow_projects import read_all
from widgets.frame.footer import ELLIPSIS, hint_at
from widgets.proposals.waiting_rows import WaitingRows

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


def text(pilot: Pilot[int]) -> str:
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())


async def shown(pilot: Pilot[int], count: int) -> AllProjectsScreen:
    """Wait until every project was read and so many proposals are drawn, the one in front with its frame."""
    screen = screen_of_all(pilot)
    await until(pilot, lambda: screen._has_begun and screen._drawn_queue.total == count)
    front = screen._drawn_queue.front
    if front is not None and pilot.app.screen is screen:
        policy = screen.key_policy
        await until(
            pilot,
            lambda: (
                policy.front is not None
                and policy.front.digest == front.digest
                and policy.front.proposal_id == front.proposal_id
                and policy.is_read
            ),
        )
    return screen


async def armed(pilot: Pilot[int], clock: FixedClock, count: int) -> AllProjectsScreen:
    """Wait likewise, and let the proposal be seen for a second."""
    screen = await shown(pilot, count)
    clock.advance(1)
    await until(pilot, lambda: screen.key_policy.is_armed)
    return screen


async def decided(pilot: Pilot[int], place: ProjectPaths, proposal_id: str, wanted: str) -> None:
    tasks = screen_of_all(pilot)._tasks
    await until(pilot, lambda: not any(task.get_name() for task in tasks), looks=3_000)
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
        assert "look first" in text(pilot)
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
        await pilot.press(*"Why?", "enter")
        await shown(pilot, 0)
        await decided(pilot, places["api"], "p-same", "discussed")
        assert "No proposals" in text(pilot)
        with open_store(places["docs"]) as store:
            session = begin(store, places["docs"].home)
            ask(store, session, "p-high", title="push", risk="high")
            await armed(pilot, clock, 1)
            await pilot.press("enter")
            assert screen.key_policy.second is not None
            await pilot.press("down")
            assert screen.key_policy.second is None
            await armed(pilot, clock, 1)
            await pilot.press("enter", "y")
            await shown(pilot, 0)
            await decided(pilot, places["docs"], "p-high", "approved")
            ask(store, session, "p-no", title="delete it")
            await armed(pilot, clock, 1)
            await pilot.press("x")
            await until(pilot, lambda: app.screen is not screen)
            await pilot.press(*"No.", "enter")
            await shown(pilot, 0)
            await decided(pilot, places["docs"], "p-no", "rejected")


async def test_of_two_cockpits_one_decides_and_the_other_is_told(places):
    clock = FixedClock()
    app = AllProjectsApp(clock=clock)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await armed(pilot, clock, 2)
        # The other one decides, and this one has not heard of it yet.
        feed_runs = [task for task in screen._tasks if not task.get_name()]
        for task in feed_runs:
            task.cancel()
        await asyncio.gather(*feed_runs, return_exceptions=True)
        other = AllProjectsApp(clock=FixedClock())
        front = screen._drawn_queue.front
        waiting = screen._queue.waiting[front.proposal_id]
        async with other_engine(waiting) as engine:
            await engine.reject("p-same", shown_digest=front.digest, reason="first")
        assert other.jump is None
        await armed(pilot, clock, 2)
        await pilot.press("enter")
        await until(pilot, lambda: len(app._notifications) > 0, looks=3_000)
        (notice,) = app._notifications
        assert "api: " in notice.message
        assert "already" in notice.message
        assert screen.key_policy.open is not None, "it is open again"
        assert status(places["api"], "p-same") == "rejected"


def other_engine(waiting):
    from cockpit.app.all_projects.owner_engine import open_owner

    return open_owner(waiting.state.project)


async def test_a_new_request_rings_once_and_is_told_once(places, monkeypatch):
    told: list[str] = []
    rung: list[int] = []
    screens: list[AllProjectsScreen] = []

    class Quiet(AllProjectsApp):
        def get_default_screen(self):
            screens.append(
                AllProjectsScreen(
                    self._go, clock=self._clock, on_request=lambda each: told.append(each.key), is_only=True
                )
            )  # fmt: skip
            return screens[0]

        def bell(self) -> None:
            rung.append(1)

    app = Quiet(clock=FixedClock())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await shown(pilot, 2)
        assert not told, "what waited before is not news"
        await pilot.press("tab")
        assert app.focused is screen.projects
        with open_store(places["docs"]) as store:
            ask(store, begin(store, places["docs"].home), "p-new")
        await until(pilot, lambda: screen._drawn_queue.total == 3)
        screen.paint()
        screen.paint()
        assert [each.rpartition("/")[2] for each in told] == ["p-new"]
        assert rung == [1]
        names = [row.name for row in screen.projects.rows]
        assert names == ["api", "web", "docs"], "no row moves while the user looks"
        await pilot.press("s")
        assert [row.name for row in screen.projects.rows] == ["api", "docs", "web"]
        assert app.focused is screen.projects, "the focus is the user's"


async def test_keys_lead_to_projects_and_out(places):
    app = AllProjectsApp(clock=FixedClock())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await shown(pilot, 2)
        await pilot.press("tab", "g", "j", "w")
        await until(pilot, lambda: app.focused is screen.panel)
        assert screen._drawn_queue.front.project == "web"
        await pilot.press("o")
        await until(pilot, lambda: app.jump is not None)
    jump = app.jump
    assert jump.home == places["web"].home
    assert (jump.session_id, jump.resumes) == (read_session(places["web"]), True)


async def test_a_touch_puts_a_proposal_in_front(places):
    """On the width of a phone: two lines for each proposal; Alt+Q leads to the queue, as on other screens."""
    app = AllProjectsApp(clock=FixedClock())
    async with app.run_test(size=(46, 50)) as pilot:
        screen = await shown(pilot, 2)
        assert screen._drawn_queue.front.project == "api"
        rows = screen.panel.query_one(WaitingRows)
        await until(pilot, lambda: rows.size.height >= 4)
        await pilot.click(rows, offset=(10, 2))
        await until(pilot, lambda: screen._drawn_queue.front.project == "web")
        await pilot.press("tab")
        assert app.focused is screen.projects
        await pilot.press("alt+q")
        assert app.focused is screen.panel


async def test_the_ellipsis_of_the_footer_shows_all_keys(places):
    app = AllProjectsApp(clock=FixedClock())
    async with app.run_test(size=(46, 30)) as pilot:
        screen = await shown(pilot, 2)
        await pilot.press("tab", "g")
        await until(pilot, lambda: "q" in [hint.key for hint in screen.bar.hints])
        bar = screen.bar
        cells = range(bar.content_size.width)
        more = [x for x in cells if hint_at(bar.hints, bar.content_size.width, x) is ELLIPSIS]
        await pilot.click(bar, offset=(more[0] + 1, 0))
        await until(pilot, lambda: isinstance(app.screen, KeyMenuDialog))
        await until(pilot, lambda: "what waits there" in text(pilot))
        await pilot.press("w")
        await until(pilot, lambda: app.screen is screen and app.focused is screen.panel)


def read_session(place: ProjectPaths) -> str:
    state = read_all()[place.state.name]
    return state.proposals[0].session_id


async def test_what_cannot_be_opened_says_why(places):
    with open_store(places["docs"]):
        pass
    (places["docs"].home / ".git").rename(places["docs"].home / "moved")
    app = AllProjectsApp(clock=FixedClock())
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await shown(pilot, 2)
        await pilot.press("tab", "G", "enter")
        await until(pilot, lambda: app.screen is not screen)
        assert "docs is gone" in text(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        assert app.jump is None
        await pilot.press("q")
        await until(pilot, lambda: app.return_code is not None)


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
    for size in ((80, 24), (160, 45)):
        async with app.run_test(size=size) as pilot:
            await shown(pilot, 2)
            await calm(pilot)
            drawn = text(pilot)
            assert not [each for each in drawn if each != "\n" and not each.isprintable()], drawn
            assert "[red]" in drawn, "markup stays text"
        app = AllProjectsApp(clock=FixedClock())


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


async def test_from_a_project_and_back(still, project, places, monkeypatch):
    app = CockpitApp(still)
    async with app.run_test(size=(130, 40)) as pilot:
        await settled(pilot)
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
        monkeypatch.setattr(type(app.runs), "any_running", True)
        await pilot.press("o")
        await until(pilot, lambda: not isinstance(app.screen, AllProjectsScreen))
        assert "pause when you leave" in text(pilot)
        await pilot.press("down", "enter")
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


async def test_picture(user_state, tmp_path, monkeypatch, pictures):
    monkeypatch.setenv("HOME", str(tmp_path))
    make_scene(tmp_path / "work")
    app = AllProjectsApp(clock=FixedClock())

    async def ready(pilot: Pilot[int]) -> None:
        screen = await shown(pilot, 3)
        rows = screen.panel.query_one(WaitingRows)
        lines = len(rows._rows()) + (rows._most > 3)
        await until(pilot, lambda: rows.size.height == lines and screen.projects.cursor == 0)
        await calm(pilot)

    async with app.run_test(size=SIZES[0]) as pilot:
        await pictures(pilot, ready)
