"""Collections of a program that draws: short ones while it works, all of them once it rests."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from cockpit.app.terminal.gc_pauses import YOUNG, ShortCollections
from cockpit.app.terminal.terminal_app import TerminalApp


class Ring:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def collections() -> Iterator[ShortCollections]:
    before = gc.get_threshold()
    collections = ShortCollections()
    collections.begin()
    yield collections
    collections.end()
    assert gc.get_threshold() == before
    collections.end()


def test_what_outlives_a_collection_is_not_looked_at_again(collections: ShortCollections) -> None:
    frozen = gc.get_freeze_count()
    kept = [[number] for number in range(YOUNG * 8)]
    assert gc.get_freeze_count() > frozen + YOUNG
    assert gc.get_count()[2] == 0 or len(gc.get_objects(generation=2)) < len(kept)


def test_garbage_among_it_is_found_when_the_program_rests(collections: ShortCollections) -> None:
    ring = Ring()
    found = weakref.ref(ring)
    gc.collect(1)
    del ring
    gc.collect()
    assert found() is not None
    collections.collect_at_rest()  # objects were made since the last time
    assert found() is not None
    collections.collect_at_rest()
    assert found() is None


def test_young_garbage_is_found_at_once(collections: ShortCollections) -> None:
    ring = Ring()
    found = weakref.ref(ring)
    del ring
    gc.collect(0)
    assert found() is None


class Leaving(TerminalApp[None]):
    """An application that has an end of its own, too."""

    async def on_unmount(self) -> None:
        self.unsent.append("ended")


async def test_an_application_leaves_the_collector_as_it_was() -> None:
    before = gc.get_threshold()
    app = Leaving()
    async with app.run_test() as pilot:
        app.collect_shortly()
        await pilot.pause()
        assert gc.get_threshold()[0] == YOUNG
    assert app.unsent == ["ended"]
    assert gc.get_threshold() == before
