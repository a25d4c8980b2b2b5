"""A session belongs to one live process; what is dead or late gives it up."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from store.store_world import begin, open_store, python

from cockpit.core.clock import FixedClock
from cockpit.core.errors import IllegalTransition, NotFound, Stale, StoreUnwritable
from cockpit.core.processes import current_process, is_process_alive
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import LEASE_S

OWNER = """
import sys
from pathlib import Path
from cockpit.core.processes import current_process
from cockpit.store.sessions import sessions
from cockpit.store.db.database import Store
with Store.open(Path(sys.argv[1])) as store:
    print(store.write_now(lambda tx: sessions.acquire(tx, sys.argv[2])), flush=True)
    print(current_process(), flush=True)
    sys.stdin.readline()
"""


def test_a_live_process_keeps_its_session_and_a_dead_one_loses_it(tmp_path: Path) -> None:
    with Store.open(tmp_path / "cockpit.db") as store:
        session_id = store.write_now(begin)
        other = python(OWNER, store.path, session_id)
        assert other.stdout is not None
        token = other.stdout.readline().strip()
        assert is_process_alive(other.stdout.readline().strip())
        with pytest.raises(Stale, match=f"Process {other.pid} of this machine runs session"):
            store.write_now(lambda tx: sessions.acquire(tx, session_id))
        other.kill()
        other.communicate()
        mine = store.write_now(lambda tx: sessions.acquire(tx, session_id))
        with pytest.raises(Stale, match="took over"):
            store.write_now(lambda tx: sessions.renew(tx, session_id, token))
        store.write_now(lambda tx: sessions.release(tx, session_id, token))
        store.write_now(lambda tx: sessions.renew(tx, session_id, mine))
        owner = store.read_now(lambda c: sessions.load(c, session_id).lease_owner)
        assert owner == current_process()


def test_a_pid_that_came_back_is_not_the_process_that_was() -> None:
    pid, _, started = current_process().partition("/")
    assert started, "this test needs a system that says when a process began"
    known = (f"{pid}/{started}", f"{pid}/1", "nobody", "")
    assert [is_process_alive(each) for each in known] == [True, False, False, False]


def test_a_lease_that_was_not_renewed_runs_out(tmp_path: Path) -> None:
    clock = FixedClock()
    with open_store(tmp_path, clock=clock) as store:
        session_id = store.write_now(begin)
        first = store.write_now(lambda tx: sessions.acquire(tx, session_id))
        with pytest.raises(Stale):
            store.write_now(lambda tx: sessions.acquire(tx, session_id))
        clock.advance(LEASE_S - 1)
        store.write_now(lambda tx: sessions.renew(tx, session_id, first))
        clock.advance(LEASE_S - 1)
        with pytest.raises(Stale):
            store.write_now(lambda tx: sessions.acquire(tx, session_id))
        clock.advance(1)
        second = store.write_now(lambda tx: sessions.acquire(tx, session_id))
        assert second != first
        store.write_now(lambda tx: sessions.release(tx, session_id, second))
        store.write_now(lambda tx: sessions.acquire(tx, session_id))


async def test_a_lease_that_cannot_be_released_is_given_up_all_the_same(tmp_path: Path) -> None:
    class Full(sqlite3.Connection):
        is_full = False

        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            if Full.is_full:
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
            return super().execute(sql, *arguments)

    with open_store(tmp_path, factory=Full) as store:
        session_id = store.write_now(begin)
        token = store.write_now(lambda tx: sessions.acquire(tx, session_id))
        Full.is_full = True
        with pytest.raises(StoreUnwritable):
            await sessions.end_lease(store, session_id, token)
        Full.is_full = False
        again = store.write_now(lambda tx: sessions.acquire(tx, session_id))
        with pytest.raises(Stale):
            store.write_now(lambda tx: sessions.acquire(tx, session_id))
        await sessions.end_lease(store, session_id, again)


def test_only_known_fields_and_statuses(store: Store) -> None:
    session_id = store.write_now(begin)
    with pytest.raises(IllegalTransition):
        store.write_now(lambda tx: sessions.change(tx, session_id, lease_owner="me"))
    with pytest.raises(IllegalTransition):
        store.write_now(lambda tx: sessions.set_status(tx, session_id, "asleep"))
    with pytest.raises(NotFound):
        store.write_now(lambda tx: sessions.acquire(tx, "s-none"))
    changed = store.write_now(
        lambda tx: sessions.change(
            tx, session_id, title="new", target={"pr": "1"}, limits={"waves": 3}, policy="all"
        )
    )
    assert (changed.title, changed.target, changed.limits, changed.policy) == (
        "new", {"pr": "1"}, {"waves": 3}, "all",
    )  # fmt: skip


def test_spending_adds_up_and_an_unpriced_call_keeps_the_cost(store: Store) -> None:
    session_id = store.write_now(begin)
    for cost in (None, 0.25, None, 0.5):
        store.write_now(
            lambda tx, cost=cost: sessions.add_usage(
                tx, session_id, input_tokens=3, output_tokens=2, cached_tokens=1, cost_usd=cost
            )
        )
    found = store.read_now(lambda c: sessions.load(c, session_id))
    assert (found.input_tokens, found.output_tokens, found.cached_tokens) == (12, 8, 4)
    assert found.cost_usd == 0.75
