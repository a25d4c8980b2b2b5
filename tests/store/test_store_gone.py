"""A store that is deleted, moved or replaced while it is open: nothing is written into the void."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from store.store_world import begin

from cockpit.core.clock import FixedClock
from cockpit.core.errors import StoreGone
from cockpit.store.db.database import Store
from cockpit.store.journal import journal


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The place of a store in a state folder, which has a place for its anchor."""
    folder = tmp_path / "state" / "projects" / "key"
    folder.mkdir(parents=True)
    return folder / "cockpit.db"


def delete(database: Path) -> None:
    shutil.rmtree(database.parents[2])


def move(database: Path) -> None:
    database.parents[2].rename(database.parents[3] / "elsewhere")


def replace(database: Path) -> None:
    delete(database)
    database.parent.mkdir(parents=True)
    Store.open(database).close()


CHANGES = {delete: "deleted or moved", move: "deleted or moved", replace: "replaced"}


@pytest.mark.parametrize(("change", "queued"), [(delete, True), (move, False), (replace, False)])
async def test_a_write_is_refused_and_says_what_happened(database, change, queued):
    with Store.open(database, FixedClock()) as store:
        store.write_now(begin)
        assert store.anchor.warning == ""
        change(database)
        with pytest.raises(StoreGone, match=CHANGES[change]) as error:
            await store.write(begin) if queued else store.write_now(begin)
        assert str(database) in str(error.value)
        assert "start cockpit again" in str(error.value)
        assert store.anchor.warning.startswith("the store's file is gone")


@pytest.mark.parametrize("change", [delete, move])
def test_the_next_store_at_its_path_is_not_taken_for_a_changed_one(database, change):
    with Store.open(database) as store:
        store.write_now(begin)
        change(database)
    assert not database.parents[2].exists()
    database.parent.mkdir(parents=True)
    with Store.open(database) as store:
        assert store.anchor.fault == ""


def test_a_file_that_is_back_is_written_again(database):
    with Store.open(database) as store:
        store.write_now(begin)
        move(database)
        with pytest.raises(StoreGone):
            store.write_now(begin)
        (database.parents[3] / "elsewhere").rename(database.parents[2])
        rows = len(store.read_now(journal.rows))
        store.write_now(begin)
        assert len(store.read_now(journal.rows)) > rows
    with Store.open(database) as store:
        assert store.anchor.fault == ""


async def test_a_reader_that_finds_no_file_says_so(database):
    with Store.open(database) as store:
        move(database)
        with pytest.raises(StoreGone, match="is not there"):
            # The idle connection is in use, so another one is opened.
            await store.read(lambda _: store.read_now(journal.rows))
