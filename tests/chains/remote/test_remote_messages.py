"""What crosses machines, from hands that mean harm; and that a run's result counts once, from one worker."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.chains.remote import jetstream_queue
from cockpit.chains.remote.jetstream_queue import QueueUnreachable, open_queue
from cockpit.chains.remote.message_types import (
    Claim,
    JournalRows,
    MessageInvalid,
    RunMessage,
    RunResult,
    StepResult,
    check_worker_name,
    decode,
    encode,
)
from cockpit.chains.remote.scale_settings import ScaleSettings
from cockpit.store.backlog import tasks
from cockpit.store.chains import remote_runs
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.export_rows import select_exported, verify_continuation

COMMIT = "a" * 40
RESULT = RunResult(
    task_id="T-1",
    run=1,
    fence=1,
    worker="build-1",
    status="ready",
    summary="done",
    commit=COMMIT,
    steps=(StepResult("implement", "done", {"summary": "x"}),),
)


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(encode(RESULT)), **fields}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        changed(task_id="T-1; rm -rf /"),
        changed(task_id="--upload-pack=sh"),
        changed(worker="../evil"),
        changed(commit="--output=/etc/passwd"),
        changed(run=0),
        changed(policy="all"),
        changed(steps="implement"),
        changed(tokens=10**30),
    ],
)
def test_a_message_of_another_shape_is_refused(data: bytes):
    with pytest.raises(MessageInvalid):
        decode(RunResult, data)


def test_a_message_that_unpacks_to_more_than_is_taken_is_refused(monkeypatch):
    packed = zlib.compress(encode(RESULT))
    assert jetstream_queue._unpack("cockpit.shop.back.T-1.result", [packed]) == RESULT
    monkeypatch.setattr(jetstream_queue, "MOST_BYTES", 100)
    with pytest.raises(MessageInvalid, match="larger"):
        jetstream_queue._unpack("cockpit.shop.back.T-1.result", [packed])


def test_a_message_reads_back_as_it_was():
    assert decode(RunResult, encode(RESULT)) == RESULT
    claim = Claim("T-7", 2, "build-2")
    assert decode(Claim, encode(claim)) == claim
    with pytest.raises(MessageInvalid):
        decode(RunMessage, encode(claim))
    for name in ("", "-a", "a b", "a/b", "a" * 65):
        with pytest.raises(MessageInvalid):
            check_worker_name(name)


def write(store: Store, change: Callable[[Tx], object]) -> None:
    asyncio.run(store.write(change))


EVENTS = st.lists(
    st.one_of(
        st.just(("send",)),
        st.just(("withdraw",)),
        st.just(("give back",)),
        st.just(("finish",)),
        st.tuples(st.just("claim"), st.sampled_from("abc")),
        st.tuples(st.just("result"), st.integers(0, 4), st.sampled_from("abc")),
    ),
    max_size=30,
)


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(Path(tmp_path_factory.mktemp("remote")) / "cockpit.db") as store:
        yield store


@settings(max_examples=examples(25))
@given(events=EVENTS)
def test_a_result_counts_once_and_from_who_has_the_run(shared_store: Store, events):
    taken: list[tuple[int, str]] = []
    holders: dict[int, str] = {}

    def play(tx: Tx) -> None:
        task = tasks.insert(tx, tasks.new_draft("Write it"), by="test").task_id
        current = 0
        for name, *given_ in events:
            before = remote_runs.find(tx.connection, task, 1)
            state = before.state if before is not None else "none"
            match name:
                case "send":
                    remote_runs.send(tx, task, 1, COMMIT)
                case "withdraw":
                    assert remote_runs.withdraw(tx, task, 1) is (state == "sent")
                case "give back" if state == "returned":
                    remote_runs.give_back(tx, task, 1)
                case "finish" if state == "returned":
                    remote_runs.finish(tx, task, 1)
                case "claim":
                    fence = remote_runs.claim(tx, task, 1, given_[0])
                    assert bool(fence) is (state in ("sent", "claimed"))
                    if fence:
                        assert fence == current + 1, "numbers rise by one"
                        current, holders[fence] = fence, given_[0]
                case "result":
                    fence, worker = given_
                    body = {"status": "ready", "commit": COMMIT, "tokens": 3, "cost_usd": None}
                    counts = remote_runs.record_result(tx, task, 1, fence, worker, body)
                    assert counts is (
                        state == "claimed" and (fence, worker) == (current, holders.get(current))
                    )
                    if counts:
                        taken.append((fence, worker))
        after = remote_runs.find(tx.connection, task, 1)
        assert after is None or after.fence == current
        assert after is None or after.tokens == 3 * len(taken)

    write(shared_store, play)
    assert len({fence for fence, _ in taken}) == len(taken), "each number brings one result"


def test_rows_of_a_worker_follow_from_each_other(shared_store: Store):
    for number in range(3):
        write(
            shared_store, lambda tx, n=number: tasks.insert(tx, tasks.new_draft(f"{n}"), by="test")
        )
    with sqlite3.connect(shared_store.path) as connection:
        lines = [
            line for _, line in select_exported(connection, after=0, session_id=None, limit=100_000)
        ]
        head = connection.execute("SELECT digest FROM journal_head").fetchone()[0]
    middle = len(lines) // 2
    assert verify_continuation(None, lines) == head
    assert verify_continuation(lines[middle - 1], lines[middle:]) == head
    forged = json.loads(lines[middle])
    forged["actor"] = "person" if forged["actor"] != "person" else "agent"
    for wrong in (
        [*lines[:middle], json.dumps(forged), *lines[middle + 1 :]],
        [*lines[:middle], *lines[middle + 1 :]],
        [lines[1], lines[0], *lines[2:]],
    ):
        with pytest.raises(ValueError, match="does not follow"):
            verify_continuation(None, wrong)
    rows = JournalRows(task_id="T-1", run=1, fence=1, worker="a", lines=tuple(lines))
    assert decode(JournalRows, encode(rows)) == rows


async def test_a_server_that_is_not_there_is_named_without_its_password():
    scale = ScaleSettings("nats", "nats://me:secret@127.0.0.1:1", "q")
    with pytest.raises(QueueUnreachable) as refused:
        async with open_queue(scale, name="x"):
            raise AssertionError("nobody serves there")
    assert "nats://127.0.0.1:1 cannot be reached" in str(refused.value)
    assert "secret" not in str(refused.value)
