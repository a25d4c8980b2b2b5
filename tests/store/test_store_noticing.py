"""Noticing another process's commits: soon, without waking up in between, with and without inotify."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest
from store_world import open_store, python
from test_store_follow import WRITER, read, row

from cockpit.store.db.database import Store
from cockpit.store.journal import file_changes, journal
from cockpit.store.journal import follow as following
from cockpit.store.journal.follow import follow


def no_inotify() -> int:
    raise OSError(24, "inotify gives no more instances")


@pytest.fixture
def hourly_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a report of a write, nothing is read for an hour."""
    monkeypatch.setattr(following.Changes, "pause_s", 3_600.0)


async def test_a_commit_of_another_process_is_noticed_by_its_write(
    tmp_path: Path, hourly_looks: None
) -> None:
    with Store.open(tmp_path / "cockpit.db") as store:
        after = store.read_now(journal.last_seq)
        writer = python(WRITER, store.path, 20)
        assert writer.stdout and writer.stdout.readline() == "ready\n"
        reading = asyncio.ensure_future(read(store, after + 20, after=after))
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
        rows = await asyncio.wait_for(reading, 60)
        assert len(rows) == 20
        assert writer.communicate(timeout=60)[1] == ""


async def test_without_inotify_watchfiles_reports_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_changes, "_start_inotify", no_inotify)
    monkeypatch.setattr(following.Changes, "pause_s", 3_600.0)
    with Store.open(tmp_path / "cockpit.db") as store, Store.open(store.path) as other:
        after = store.read_now(journal.last_seq)
        reading = asyncio.ensure_future(read(store, after + 1, after=after))
        writes = 0
        while not reading.done():
            # The watch begins on another thread: a write before it is not reported, a later one is.
            await asyncio.to_thread(other.write_now, row)
            writes += 1
            await asyncio.wait({reading}, timeout=0.5)
        assert 1 <= len(reading.result()) <= writes


async def test_where_nothing_reports_writes_commits_are_found_by_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_reports(path: Path, notify: object) -> None:
        raise OSError(24, "no watch left")

    monkeypatch.setattr(file_changes, "_start_inotify", no_inotify)
    monkeypatch.setattr(following, "watch_without_inotify", no_reports)
    with Store.open(tmp_path / "cockpit.db") as store, Store.open(store.path) as other:
        after = store.read_now(journal.last_seq)
        reading = asyncio.ensure_future(read(store, after + 1, after=after))
        await asyncio.sleep(0)
        await asyncio.to_thread(other.write_now, row)
        assert len(await asyncio.wait_for(reading, 60)) == 1


async def test_files_beside_the_store_wake_nobody(tmp_path: Path, hourly_looks: None) -> None:
    with open_store(tmp_path) as store:
        async with following.changes(store) as changed:
            changed.clear()
            (store.path.parent / "draft").write_text("a", encoding="utf-8")
            wal = store.path.with_name(store.path.name + "-wal")
            await asyncio.sleep(0)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(changed.wait(), 0.1)
            with wal.open("ab"), Store.open(store.path) as other:
                await asyncio.to_thread(other.write_now, row)
            await asyncio.wait_for(changed.wait(), 60)


async def test_an_idle_follower_hardly_wakes_up(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        batches = follow(store)
        await anext(batches)
        waiting = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        await asyncio.sleep(0.5)
        woken = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert woken <= 15, f"{woken} wakeups in half a second"
