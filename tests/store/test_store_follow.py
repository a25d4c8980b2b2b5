"""Following: every row, in order, once, whoever wrote it; and nothing is left running."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from store.store_world import PATIENCE_S, begin, open_store, python, racer

from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.follow import changes, follow
from cockpit.store.journal.journal import Row

pytestmark = pytest.mark.slow


def row(tx: Tx, session_id: str = "") -> int:
    return tx.append_row(Action.SESSION_RUNNING, session_id=session_id)


async def read(store: Store, until: int, **words: object) -> list[Row]:
    """Rows until that seq has come."""
    found: list[Row] = []
    batches = follow(store, **words)
    async for batch in batches:
        assert batch
        found.extend(batch)
        if found[-1].seq >= until:
            break
    await batches.aclose()
    return found


WRITER = racer("""
for number in range(int(sys.argv[3])):
    store.write_now(lambda tx: tx.append_row(Action.SESSION_RUNNING, {"n": number}))
""")


async def test_rows_of_two_other_processes_come_in_order_without_a_gap(tmp_path: Path) -> None:
    with Store.open(tmp_path / "cockpit.db") as store:
        after = store.read_now(journal.last_seq)
        writers = [python(WRITER, 0, store.path, 50) for _ in range(2)]
        for writer in writers:
            assert writer.stdout and writer.stdout.readline() == "ready\n"
        reading = asyncio.ensure_future(read(store, after + 150, after=after))
        for writer in writers:
            assert writer.stdin
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for _ in range(50):
            await store.write(row)
        found = await asyncio.wait_for(reading, PATIENCE_S)
        for writer in writers:
            assert writer.communicate(timeout=PATIENCE_S)[1] == ""
        assert [one.seq for one in found] == list(range(after + 1, after + 151))


async def test_only_the_rows_of_one_session(store: Store) -> None:
    mine, other = store.write_now(lambda tx: (begin(tx), begin(tx)))
    after = store.read_now(journal.last_seq)
    for session_id in (other, mine, other, mine):
        last = store.write_now(lambda tx, s=session_id: row(tx, s))
    rows = await read(store, last, after=after, session_id=mine)
    assert [(one.seq, one.session_id) for one in rows] == [(after + n, mine) for n in (2, 4)]


async def test_more_rows_than_one_batch(store: Store) -> None:
    last = store.write_now(lambda tx: [row(tx) for _ in range(2_500)][-1])
    assert [one.seq for one in await read(store, last)] == list(range(1, last + 1))


def count_watches() -> int:
    """The watches of this process, those that other tests have left included."""
    count = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # it is closed meanwhile, as the one that lists them
            count += "inotify" in str(link.readlink())
    return count


def test_closing_leaves_no_task_thread_or_watch(tmp_path: Path) -> None:
    async def watch(store: Store) -> None:
        tasks, watches = asyncio.all_tasks(), count_watches()
        for _ in range(4):
            batches = follow(store)
            await anext(batches)
            assert len(store._writer._listeners) == 1
            await batches.aclose()
            assert asyncio.all_tasks() == tasks
            assert store._writer._listeners == []
            assert count_watches() <= watches

    with open_store(tmp_path) as store:
        threads = set(threading.enumerate())
        asyncio.run(watch(store))
        # The loop's pool of threads is its own; with the loop gone, all that was begun has to end.
        left = set(threading.enumerate()) - threads
        for thread in left:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in left)


async def test_a_cancellation_is_never_lost(store: Store) -> None:
    before = asyncio.all_tasks()
    for looks in range(0, 60, 3):
        await cancel_after(store, looks)
        assert asyncio.all_tasks() == before


async def cancel_after(store: Store, looks: int) -> None:
    """Cancel a reader after so many turns of the loop, while a commit comes."""
    reading = asyncio.ensure_future(read(store, 1_000_000))
    for _ in range(looks):
        await asyncio.sleep(0)
    writing = asyncio.ensure_future(store.write(row))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading], timeout=PATIENCE_S)
    assert reading.cancelled()
    await writing


async def test_a_commit_of_another_process_is_noticed_by_its_write(tmp_path: Path) -> None:
    with Store.open(tmp_path / "cockpit.db") as store:
        writer = python(WRITER, 0, store.path, 1)
        assert writer.stdout and writer.stdout.readline() == "ready\n"
        async with changes(store) as changed:
            changed.clear()
            assert await asyncio.to_thread(writer.communicate, "go\n", PATIENCE_S) == ("", "")
            await asyncio.wait_for(changed.wait(), PATIENCE_S)
