"""Following: every row, in order, once, whoever wrote it; and nothing is left running."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest
from store_world import begin, open_store, python

from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.follow import SLICE, follow, read_rows
from cockpit.store.journal.journal import Row


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


WRITER = """
import sys
from pathlib import Path
from cockpit.store.db.database import Store
from cockpit.store.journal.event_types import Action
with Store.open(Path(sys.argv[1])) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[2])):
        store.write_now(lambda tx: tx.append_row(Action.SESSION_RUNNING, body={"n": number}))
"""


async def test_rows_of_two_other_processes_come_in_order_without_a_gap(tmp_path: Path) -> None:
    with Store.open(tmp_path / "cockpit.db") as store:
        after = store.read_now(journal.last_seq)
        writers = [python(WRITER, store.path, 50) for _ in range(2)]
        for writer in writers:
            assert writer.stdout and writer.stdout.readline() == "ready\n"
        reading = asyncio.ensure_future(read(store, after + 150, after=after))
        for writer in writers:
            assert writer.stdin
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for _ in range(50):
            await store.write(row)
        found = await asyncio.wait_for(reading, 60)
        for writer in writers:
            assert writer.communicate(timeout=60)[1] == ""
        assert [one.seq for one in found] == list(range(after + 1, after + 151))


async def test_only_the_rows_of_one_session(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        mine, other = store.write_now(lambda tx: (begin(tx), begin(tx)))
        after = store.read_now(journal.last_seq)
        for session_id in (other, mine, other, mine):
            last = store.write_now(lambda tx, s=session_id: row(tx, s))
        found = await read(store, last, after=after, session_id=mine)
        assert [(one.seq, one.session_id) for one in found] == [
            (after + 2, mine),
            (after + 4, mine),
        ]


async def test_more_rows_than_one_batch(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        last = store.write_now(lambda tx: [row(tx) for _ in range(2_500)][-1])
        assert [one.seq for one in await read(store, last)] == list(range(1, last + 1))


def open_files() -> list[str]:
    """What this process's descriptors point to."""
    links = Path("/proc/self/fd").glob("*")
    return [str(link.readlink()) for link in links if link.is_symlink()]


def test_closing_leaves_no_task_thread_or_watch(tmp_path: Path) -> None:
    async def watch(store: Store) -> None:
        tasks = asyncio.all_tasks()
        for _ in range(4):
            batches = follow(store)
            await anext(batches)
            assert len(store._writer._listeners) == 1
            await batches.aclose()
            assert asyncio.all_tasks() == tasks
            assert store._writer._listeners == []
            assert not any("inotify" in target for target in open_files())

    with open_store(tmp_path) as store:
        threads = set(threading.enumerate())
        asyncio.run(watch(store))
        # The loop's pool of threads is its own; with the loop gone, all that was begun has to end.
        left = set(threading.enumerate()) - threads
        for thread in left:
            thread.join(30)
        assert not any(thread.is_alive() for thread in left)


@pytest.mark.parametrize("looks", range(0, 60, 3))
async def test_a_cancellation_is_never_lost(tmp_path: Path, looks: int) -> None:
    with open_store(tmp_path) as store:
        before = asyncio.all_tasks()
        reading = asyncio.ensure_future(read(store, 1_000_000))
        for _ in range(looks):
            await asyncio.sleep(0)
        writing = asyncio.ensure_future(store.write(row))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading], timeout=30)
        assert reading.cancelled()
        await writing
        assert asyncio.all_tasks() == before


def test_a_loop_that_closes_in_the_middle_of_following(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:

        async def abandon() -> None:
            batches = follow(store)
            await anext(batches)
            await batches.aclose()

        for _ in range(5):
            stop = threading.Event()

            def write(stop: threading.Event = stop) -> None:
                while not stop.is_set():
                    store.write_now(row)

            thread = threading.Thread(target=write)
            thread.start()
            asyncio.run(abandon())
            stop.set()
            thread.join()
        assert store.write_now(row) > 0
        assert store.read_now(verify_chain.verify).ok


@pytest.mark.parametrize(("count", "chars"), [(1000, 10), (1000, 5_000), (3, 300_000)])
async def test_many_rows_are_read_in_slices_that_let_others_run(
    tmp_path: Path, count: int, chars: int
) -> None:
    with Store.open(tmp_path / "cockpit.db") as store:
        detail = {"words": "x" * chars}

        def write(tx: Tx) -> None:
            for _ in range(count):
                tx.append_row(Action.SESSION_RUNNING, body=detail)

        after = store.read_now(journal.last_seq)
        store.write_now(write)
        sql = f"{journal.SELECT} WHERE seq>? ORDER BY seq"
        found = store.read_now(lambda c: c.execute(sql, (after,)).fetchall())
        reading = read_rows(found)
        pauses = 0
        try:
            while True:
                reading.send(None)
                pauses += 1
        except StopIteration as ended:
            rows = ended.value
        assert rows == store.read_now(lambda c: journal.rows(c, after=after, limit=count))
        assert (pauses + 1) * SLICE >= sum(len(json.dumps(row.raw_detail())) for row in rows[:-1])
        assert pauses >= 2
