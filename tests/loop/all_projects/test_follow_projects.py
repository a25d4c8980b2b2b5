"""All projects followed at once: writes in any of them, projects that come and go."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from loop.all_projects.projects_world import ask, begin, make_project, open_store

from cockpit.core.project.known_projects import find_known, forget
from cockpit.loop.all_projects import follow_projects
from cockpit.loop.all_projects.follow_projects import ProjectsFeed, read_all

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


async def test_a_proposal_in_any_project_comes_and_goes(user_state, tmp_path):
    places = [make_project(tmp_path / f"p{number}") for number in range(12)]
    stores = [open_store(place) for place in places]
    try:
        sessions = [begin(store, place.home) for store, place in zip(stores, places, strict=True)]
        async with following() as (feed, until):
            assert set(waiting(feed).values()) == {0}
            for number in (3, 11, 0):
                ask(stores[number], sessions[number], "p-same")
                await until(lambda number=number: waiting(feed)[f"p{number}"] == 1)
            assert sum(waiting(feed).values()) == 3
    finally:
        for store in stores:
            store.close()


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


async def test_without_a_watch_of_the_system_it_looks_often(user_state, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError("no watch is left")

    monkeypatch.setattr(follow_projects, "FoldersWatch", refuse)
    place = make_project(tmp_path / "api")
    with open_store(place) as store:
        session = begin(store, place.home)
        async with following() as (feed, until):
            ask(store, session, "p-1")
            await until(lambda: waiting(feed) == {"api": 1})


@pytest.mark.parametrize("name", ["cockpit.db-wal", "cockpit.db"])
async def test_lost_events_and_late_looks_after_the_end_harm_nothing(user_state, tmp_path, name):
    place = make_project(tmp_path / "api")
    async with following() as (feed, _):
        feed._note_write(None, "")
        feed._note_write(place.state, name)
        feed._note_write(place.state, "draft")
    feed.refresh(place.state.name)
