"""All projects followed at once: many, nested, moved, and as they come and go."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from loop.all_projects.projects_world import ask, begin, make_project, open_store
from loop.intake.repositories import Repo
from loop.loop_calc import git

from cockpit.core.project.known_projects import find_known, forget, list_known
from cockpit.core.project_paths import ProjectPaths, locate_project
from cockpit.loop.all_projects.follow_projects import ProjectsFeed, read_all

pytestmark = pytest.mark.slow

PATIENCE_S = 30


@asynccontextmanager
async def following() -> AsyncIterator[tuple[ProjectsFeed, Callable]]:
    """Follow all projects, with a function that waits for a state."""
    changed = asyncio.Event()
    feed = ProjectsFeed(changed.set)

    async def until(true: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                changed.clear()
                await changed.wait()

    running = asyncio.create_task(feed.run())
    try:
        await until(lambda: feed.is_read)
        yield feed, until
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def waiting(feed: ProjectsFeed) -> dict[str, int]:
    return {state.project.name: state.waiting for state in feed.states.values()}


async def test_projects_come_go_and_are_replaced_while_they_are_followed(user_state, tmp_path):
    first = make_project(tmp_path / "first")
    with open_store(first) as store:
        ask(store, begin(store, first.home), "p-1")
    async with following() as (feed, until):
        assert waiting(feed) == {"first": 1}
        second = make_project(tmp_path / "second")
        with open_store(second) as store:
            ask(store, begin(store, second.home), "p-2")
            await until(lambda: waiting(feed).get("second") == 1)
        shutil.move(first.home, tmp_path / "elsewhere")
        await until(lambda: feed.states[first.state.name].condition == "gone")
        assert feed.states[first.state.name].proposals == ()
        for path in second.state.glob("cockpit.db*"):
            path.unlink()
        with open_store(second) as store:
            session = begin(store, second.home)
            ask(store, session, "p-3")
            ask(store, session, "p-4")
            await until(lambda: waiting(feed)["second"] == 2)
        forget(find_known("second"))
        await until(lambda: second.state.name not in feed.states)
        shutil.rmtree(first.state)
        await until(lambda: feed.states == {})
    assert read_all() == {}


async def test_no_store_stays_open(user_state, tmp_path):
    """SQLite opens three files for each, of the 256 or 1,024 that a process may have."""
    places = [make_project(tmp_path / f"p{number:03}") for number in range(12)]
    with open_store(places[0]) as store:
        session = begin(store, places[0].home)
        ask(store, session, "p-1")
    content = places[0].database.read_bytes()
    for place in places[1:]:
        place.database.write_bytes(content)
    async with following() as (feed, until):
        states = {(state.condition, state.problem) for state in feed.states.values()}
        assert states == {("open", "")}
        assert set(waiting(feed).values()) == {1}
        opened = [path.resolve() for path in Path("/proc/self/fd").iterdir()]
        assert not {place.database for place in places} & set(opened)
        for place in (places[3], places[-1]):
            with open_store(place) as store:
                ask(store, session, f"p-{place.home.name}")
                await until(lambda name=place.home.name: waiting(feed)[name] == 2)


def repository(folder: Path) -> ProjectPaths:
    Repo(folder).commit("begin")
    return used(folder)


def used(folder: Path) -> ProjectPaths:
    """Use cockpit in a folder; returns its project."""
    place = locate_project(folder)
    place.prepare()
    return place


def test_what_lies_in_beside_and_behind_a_project_is_told_apart(user_state, tmp_path):
    outer = repository(tmp_path / "outer")
    inner = repository(tmp_path / "outer" / "vendor" / "inner")
    assert outer.state != inner.state
    with open_store(inner) as store:
        ask(store, begin(store, inner.home), "p-inner")
    (tmp_path / "outer" / "src").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "outer")
    git(outer.home, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    # A folder of it, a link to it and a worktree of it are the same project.
    for folder in ("outer/src", "link", "link/src", "side"):
        assert used(tmp_path / folder).state == outer.state, folder
    assert [each.home for each in list_known()] == [inner.home, outer.home]
    assert {state.project.name: state.waiting for state in read_all().values()} == {
        "inner": 1,
        "outer": 0,
    }
    # Moved away, the old place is a row that says so; used at the new one, both are there.
    moved = tmp_path / "moved"
    (tmp_path / "outer" / "vendor" / "inner").rename(moved)
    (lost,) = (state for state in read_all().values() if state.project.name == "inner")
    assert (lost.condition, lost.waiting) == ("gone", 0)
    again = used(moved)
    assert {state.project.name for state in read_all().values()} >= {"moved", "outer"}
    assert again.home == moved
