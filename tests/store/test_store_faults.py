"""Every statement failing once, and the disk full at every size: the store stays whole."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from store.store_world import begin, python

from cockpit.core.clock import CountingIds, FixedClock
from cockpit.core.errors import StoreUnwritable
from cockpit.store.context import facts
from cockpit.store.context.facts import Fact, Level
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal, verify_chain
from cockpit.store.sessions import context_requests, events, messages, outbox, proposals, waves

pytestmark = [pytest.mark.slow, pytest.mark.search]


class Counting(sqlite3.Connection):
    """Counts statements; the one whose number is ``fails_at`` fails as a broken disk makes it."""

    counted = 0
    fails_at = 0

    def _next(self) -> None:
        kind = type(self)
        kind.counted += 1
        if kind.counted == kind.fails_at:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
            raise error

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._next()
        return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        self._next()
        return super().executemany(*arguments)


def everything(tx: Tx) -> None:
    """A bit of every aggregate, in one step."""
    session_id = begin(tx)
    event_id = events.ingest(
        tx, source="s", source_event_id=session_id, event_type="t", payload={"a": 1}
    )
    wave = waves.create(tx, session_id=session_id, trace_id="t", event_id=event_id)
    waves.advance(tx, wave.wave_id, "observing")
    place = {"session_id": session_id, "wave_id": wave.wave_id}
    fact = Fact("file", "file:a", "situational", Level("a", 1), Level("r", 1), dedupe_key="k")
    facts.record(tx, ordinal=1, pinned_now=wave.pinned_now, facts=[fact], **place)
    body = {"payload": {}, "key": session_id, "type": "run"}
    proposal = proposals.create(
        tx, proposal_id=f"p-{session_id}", kind="action", title="t", body=body, risk="low", **place
    )
    context_requests.create(
        tx, request_id=f"q-{session_id}", purpose="p", question="q",
        items=[{"item": "file:a"}], proposal_id=proposal.proposal_id, **place,
    )  # fmt: skip
    proposals.decide(tx, proposal.proposal_id, "approved", by="person")
    messages.start(tx, message_id=f"m-{session_id}", **place)
    messages.append_delta(tx, message_id=f"m-{session_id}", text="a", number=1, **place)
    messages.complete(tx, role="agent", text="a", message_id=f"m-{session_id}", **place)
    action = outbox.plan(
        tx, position=1, key=session_id, action_type="run", title="t", payload={}, **place
    )
    outbox.enqueue(tx, action.action_id, proposal_id=proposal.proposal_id, payload={})
    outbox.dispatch(tx, action.action_id, "o")
    outbox.confirm(tx, action.action_id, summary="s", detail={})


TABLES = (
    "events", "sessions", "wave_runs", "messages", "observed_facts", "session_facts",
    "context_requests", "proposals", "outbox_actions", "action_receipts",
)  # fmt: skip


def counts(connection: sqlite3.Connection) -> list[int]:
    return [connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES]


def test_the_nth_statement_of_a_write_failing(tmp_path: Path) -> None:
    class Mine(Counting):
        pass

    with Store.open(tmp_path / "cockpit.db", FixedClock(), CountingIds(), factory=Mine) as store:
        store.write_now(everything)
        Mine.counted = 0
        store.write_now(everything)
        statements = Mine.counted
        assert statements > 40
        whole = 2
        # A part of them each time, every one in a soak.
        step = max(1, 4 // examples(1))
        for number in range(1, statements + 1, step):
            Mine.counted, Mine.fails_at = 0, number
            with pytest.raises(StoreUnwritable):
                store.write_now(everything)
            Mine.fails_at = 0
            found = store.read_now(counts)
            assert found == [whole if name != "observed_facts" else 1 for name in TABLES], number
        store.write_now(everything)
        assert store.read_now(counts)[0] == whole + 1
        verdict = store.read_now(verify_chain.verify)
        assert verdict.ok, verdict


def test_the_nth_statement_of_opening_failing(tmp_path: Path) -> None:
    class Mine(Counting):
        pass

    def open_store(number: int) -> Store:
        Mine.counted, Mine.fails_at = 0, number
        place = tmp_path / str(number)
        place.mkdir(exist_ok=True)
        return Store.open(place / "cockpit.db", FixedClock(), CountingIds(), factory=Mine)

    open_store(0).close()
    statements = Mine.counted - 20  # the last ones are of closing
    assert statements > 100
    step = max(1, 50 // examples(1))
    for number in range(1, statements, step):
        with pytest.raises(StoreUnwritable):
            open_store(number)
        with closing(sqlite3.connect(tmp_path / str(number) / "cockpit.db")) as connection:
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            assert tables == (0,), f"half made: {number}"
        Mine.fails_at = 0
        with Store.open(tmp_path / str(number) / "cockpit.db", FixedClock()) as store:
            assert store.read_now(journal.last_seq) == 1
            assert store.read_now(verify_chain.verify).ok


FULL = """
import json, resource, signal, sys
from pathlib import Path
from cockpit.store.journal import journal, verify_chain
from cockpit.store.db.database import Store
from cockpit.core.errors import StoreUnwritable
from cockpit.store.journal.event_types import Action

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
folder, told = Path(sys.argv[1]), []
for size in range(0, 400_000, int(sys.argv[2])):
    with Store.open(folder / f"{size}.db") as store:
        written = refused = 0
        # Where the log stands already, and so much more.
        here = max(store.path.stat().st_size, Path(f"{store.path}-wal").stat().st_size)
        resource.setrlimit(resource.RLIMIT_FSIZE, (here + size, hard))
        for number in range(8):
            try:
                store.write_now(
                    lambda tx: tx.append_row(Action.SESSION_RUNNING, body={"t": "x y " * 8_000})
                )
                written += 1
            except StoreUnwritable as error:
                assert "Free some disk space" in str(error), error
                refused += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        store.write_now(lambda tx: tx.append_row(Action.SESSION_RUNNING))
        stored = len(store.read_now(journal.rows))
        verdict = store.read_now(verify_chain.verify)
    with Store.open(folder / f"{size}.db") as store:
        again = store.read_now(verify_chain.verify).rows
    told.append([written, refused, stored, again, verdict.ok])
print(json.dumps(told))
"""


def test_a_disk_that_is_full_at_any_size(tmp_path: Path) -> None:
    runner = python(FULL, tmp_path, 130_000 // examples(1))
    out, err = runner.communicate(timeout=120)
    assert runner.returncode == 0, err
    told = json.loads(out)
    for written, refused, stored, again, sound in told:
        assert written + refused == 8
        # The row of the opening, what was said to be written, and one after there was room.
        assert stored == again == 1 + written + 1
        assert sound
    assert told[0][0] == 0 and told[-1][0] > 3 and told[0][1] == 8
