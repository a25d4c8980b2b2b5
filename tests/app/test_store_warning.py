"""A store that was cut, rewritten or swapped is told on every screen, in any width."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from app_world import calm, on_screen, settled, until

from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.small_dialogs import Warn
from cockpit.app.screens.replay_screen import ReplayApp, read_session_rows
from cockpit.app.store_watch import watch_store
from cockpit.backlog import service
from cockpit.core.project_paths import ProjectPaths, locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.journal.head_anchor import find_anchor_file

pytestmark = pytest.mark.slow

WARNING = "⚠ the journal was changed from outside"


def work(place: ProjectPaths, title: str) -> None:
    with Store.open(place.database) as store:
        store.write_now(lambda tx: service.create_task(tx, title, by="person"))


def older_copy(place: ProjectPaths) -> None:
    shutil.copyfile(place.state / "older.db", place.database)


def without_anchor(place: ProjectPaths) -> None:
    anchor = find_anchor_file(place.database)
    assert anchor is not None
    anchor.unlink()


def drawn(app: CockpitApp | ReplayApp) -> list[str]:
    return [strip.text for strip in app.screen._compositor.render_strips()]


def words(app: CockpitApp) -> str:
    """All words that are drawn, without frames and line ends."""
    return " ".join(" ".join(drawn(app)).replace("│", " ").split())


@pytest.fixture
def place(project: Path) -> ProjectPaths:
    """A project whose store was closed in order, beside an older copy of it."""
    place = locate_project(project)
    place.prepare()
    work(place, "First")
    shutil.copyfile(place.database, place.state / "older.db")
    work(place, "Second")
    return place


async def test_a_store_that_is_not_the_one_it_was_is_told(place, tmp_path):
    older_copy(place)
    async with open_runtime(place, RuntimeSettings(user_dir=tmp_path / "user")) as runtime:
        app = CockpitApp(runtime)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: isinstance(app.screen, Warn))
            await until(pilot, lambda: WARNING in " ".join(drawn(app)))
            assert "cockpit debug journal" in words(app)
            await pilot.press("enter")
            screen = await settled(pilot)
            assert drawn(app)[0].strip().startswith(WARNING)
            screen.host.main.prompt.focus()
            for width in (20, 120):
                await pilot.resize_terminal(width, 12)
                await calm(pilot)
                assert drawn(app)[0].strip().startswith(WARNING[: width - 4]), width
            await pilot.press("ctrl+t")
            await until(pilot, lambda: "Board" in drawn(app)[0])
            assert WARNING in drawn(app)[0]


async def test_a_replay_tells_it_as_well(place, tmp_path):
    async with open_runtime(place, RuntimeSettings(user_dir=tmp_path / "user")) as runtime:
        session_id = await runtime.start("Look around", model="offline")
    without_anchor(place)
    async with open_runtime(place, RuntimeSettings(user_dir=tmp_path / "user")) as runtime:
        assert WARNING.endswith(runtime.store.anchor.warning)
        rows = await read_session_rows(runtime.store, session_id)
        replay = ReplayApp(rows, session_id, runtime.store, warning=runtime.store.anchor.warning)
        async with replay.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: WARNING in drawn(replay)[0])


async def test_a_store_that_is_deleted_while_it_is_open_is_warned_of_once(place, tmp_path):
    async with (
        open_runtime(place, RuntimeSettings(user_dir=tmp_path / "user")) as runtime,
        on_screen(runtime, size=(100, 24)) as (pilot, app, _),
    ):
        looks = []
        watch_store(app, lambda _seconds, look: looks.append(look))
        for look in looks:
            await look()
        assert not isinstance(app.screen, Warn)
        moved = place.state.rename(place.state.with_name("moved"))
        for look in looks * 2:
            await look()
        await until(pilot, lambda: isinstance(app.screen, Warn))
        told = "deleted or moved while cockpit had it open"
        await until(pilot, lambda: told in words(app))
        await pilot.press("enter")
        await settled(pilot)
        assert "the store's file is gone" in drawn(app)[0]
        moved.rename(place.state)
        assert app.store_warning == ""
