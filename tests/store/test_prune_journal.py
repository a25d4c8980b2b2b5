"""The pruned journal: it verifies from its anchor on, and nothing in it changes without being found."""

from __future__ import annotations

import gzip
import json
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from store.store_world import begin, open_store

from cockpit.core.clock import FixedClock, format_time
from cockpit.core.errors import StoreCorrupt, StoreUnwritable
from cockpit.loop.views.metrics import fold_counts, measured
from cockpit.store.db.database import Store
from cockpit.store.db.free_space import free_pages
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import chain_digest, journal, prune_anchor, prune_journal, verify_chain
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import COLUMNS
from cockpit.store.sessions import messages, sessions

pytestmark = pytest.mark.slow

KINDS = (
    Action.SESSION_RUNNING,
    Action.HANDOFF_ARCHIVED,
    Action.PACKET_COMPILED,
    Action.FEEDBACK_RECORDED,
    Action.MESSAGE_DELTA,
)
BODIES = {
    Action.PACKET_COMPILED: {"token_used": 7, "drops": {"budget": 2}},
    Action.FEEDBACK_RECORDED: {"regret": True},
    Action.HANDOFF_ARCHIVED: {"task_id": "T-1"},
}


def write_rows(store: Store, clock: FixedClock, plan: list[tuple[int, int]]) -> None:
    """Write rows, a minute apart: (session, kind) by index; sessions 0 and 1 end, 2 stays open."""
    ids = [store.write_now(begin) for _ in range(3)]

    def write(tx: Tx, session_id: str, action: Action) -> None:
        if action is not Action.MESSAGE_DELTA:
            tx.append_row(action, BODIES.get(action, {"n": 1}), session_id=session_id)
            return
        # A message that is complete leaves gaps, one that streams leaves rows outside the chain.
        message_id = f"m-{tx.now()}"
        place = {"session_id": session_id, "wave_id": "w", "message_id": message_id}
        messages.start(tx, **place)
        messages.append_delta(tx, **place, text="some", number=0)
        if session_id != ids[2]:
            messages.complete(
                tx, session_id=session_id, role="agent", text="some", message_id=message_id
            )

    for which, kind in plan:
        clock.advance(60)
        store.write_now(lambda tx, w=which, k=kind: write(tx, ids[w], KINDS[k]))
    for session_id in ids[:2]:
        store.write_now(lambda tx, s=session_id: sessions.set_status(tx, s, "completed"))
    clock.advance(60)


def prune_before(store: Store, moment: object) -> prune_journal.JournalPruning:
    return prune_journal.prune_journal(store, format_time(moment), fold_counts)  # type: ignore[arg-type]


def totals(store: Store) -> object:
    counts = store.read_now(measured).counts
    counts.seq = 0
    return counts


def find_tampering(tx: Tx, statement: str, *values: object) -> bool:
    """Tell whether verification finds what the statement changes; the change is taken back."""
    tx.execute("SAVEPOINT tampering")
    changed = tx.execute(statement, values).rowcount
    verdict = verify_chain.verify(tx.connection)
    tx.execute("ROLLBACK TO tampering")
    tx.execute("RELEASE tampering")
    assert changed
    return not verdict.ok


PLAN = st.lists(st.tuples(st.integers(0, 2), st.integers(0, len(KINDS) - 1)), max_size=14)


@pytest.mark.search
@settings(max_examples=examples(6), deadline=None)
@given(plan=PLAN, cuts=st.lists(st.integers(0, 20), min_size=1, max_size=3))
def test_after_any_pruning_the_journal_verifies_and_tampering_is_found(
    tmp_path_factory: pytest.TempPathFactory, plan: list[tuple[int, int]], cuts: list[int]
) -> None:
    clock = FixedClock()
    began = clock.now()
    with open_store(tmp_path_factory.mktemp("pruned"), clock=clock) as store:
        write_rows(store, clock, plan)
        before = totals(store)
        everything = {row.seq: row.line() for row in store.read_now(journal.rows)}
        for cut in cuts:
            clock.advance(1)
            prune_before(store, began + timedelta(minutes=cut))
            verdict = store.read_now(verify_chain.verify)
            assert verdict.ok, verdict
            assert totals(store) == before
            rows = [row for row in store.read_now(journal.rows) if row.digest]
            assert all(everything.get(row.seq, row.line()) == row.line() for row in rows)
            for row in rows[:: max(len(rows) // 3, 1)]:
                for statement in (
                    "DELETE FROM journal WHERE seq=?",
                    "UPDATE journal SET detail_json='{\"x\":2}' WHERE seq=?",
                    "UPDATE journal SET digest='0' WHERE seq=?",
                ):
                    assert store.write_now(
                        lambda tx, s=statement, q=row.seq: find_tampering(tx, s, q)
                    )
        if store.read_now(prune_anchor.find):
            for change in ("seq=seq+1", "digest='0'", "sealed=sealed-1", "kept=kept+1"):
                update = f"UPDATE journal_anchor SET {change}"
                assert store.write_now(lambda tx, s=update: find_tampering(tx, s))
            update = "UPDATE journal_anchor SET metrics_json='{\"regrets\":9}'"
            assert store.write_now(lambda tx: find_tampering(tx, update))
            assert store.write_now(lambda tx: find_tampering(tx, "DELETE FROM journal_anchor"))


def test_a_clock_that_was_ahead_once_stops_no_pruning(tmp_path: Path) -> None:
    clock = FixedClock()
    began = clock.now()
    with open_store(tmp_path, clock=clock) as store:
        write_rows(store, clock, [(0, 0)] * 4)
        clock.advance(3600 * 24 * 400)
        write_rows(store, clock, [(0, 0)] * 2)
        clock.advance(-3600 * 24 * 400)
        write_rows(store, clock, [(0, 0)] * 4)
        old = clock.now()
        clock.advance(3600)
        write_rows(store, clock, [(0, 0)] * 2)
        before = store.read_now(lambda c: c.execute("SELECT count(*) FROM journal").fetchone())[0]
        cut = prune_before(store, old)
        assert cut.rows >= 10 and cut.ahead, "sessions of the time ahead stay"
        assert store.read_now(verify_chain.verify).ok
        clock.advance(-3600 * 48)
        behind = prune_before(store, began)
        assert not behind.rows, "where it is this clock that is behind, nothing recent goes"
        assert before > cut.rows


def archived(folder: Path) -> list[dict[str, object]]:
    """The rows of all archives of the journal in ``folder``, oldest first."""
    rows = []
    for path in sorted((folder / "archive").glob("journal-*")):
        with gzip.open(path, "rt") as file:
            lines = [json.loads(line) for line in file]
        assert [line["table"] for line in lines] == ["journal_anchor"] + ["journal"] * (
            len(lines) - 1
        )
        rows += [line["row"] for line in lines[1:]]
    return rows


def test_the_archives_and_the_journal_are_the_whole_chain(tmp_path: Path) -> None:
    clock = FixedClock()
    with open_store(tmp_path, clock=clock) as store:
        write_rows(store, clock, [(n % 3, n % 4) for n in range(12)])
        whole = {row.seq for row in store.read_now(journal.rows) if row.digest}
        first = prune_before(store, clock.now())
        clock.advance(1)
        fill(store, clock, 5)
        whole |= {row.seq for row in store.read_now(journal.rows) if row.digest}
        second = prune_before(store, clock.now())
        assert 0 < first.until < second.until
        rows = archived(tmp_path)
        assert [row["seq"] for row in rows] == sorted(whole)
        previous = ""
        for row in rows:
            values = tuple(row[name] for name in COLUMNS[:-1])
            previous = chain_digest.chain_digest(previous, values)
            assert previous == row["digest"]
        left = store.read_now(journal.rows)
        (open_session,) = store.read_now(
            lambda c: c.execute(
                "SELECT session_id FROM sessions WHERE status<>'completed'"
            ).fetchone()
        )
        # Rows of the open session and the handoffs stay, with what commands read from them.
        old = [row for row in left if row.seq <= second.until]
        assert old and all(
            row.action in prune_journal.KEPT_ACTIONS or row.session_id == open_session
            for row in old
        )
        assert left[-1].action == Action.JOURNAL_PRUNED


def test_a_journal_that_does_not_verify_or_cannot_be_archived_stays(tmp_path: Path) -> None:
    clock = FixedClock()
    with open_store(tmp_path, clock=clock) as store:
        write_rows(store, clock, [(0, 0)] * 4)
        rows = len(store.read_now(journal.rows))
        (tmp_path / "archive").write_text("in the way")
        with pytest.raises(StoreUnwritable, match="Nothing was deleted"):
            prune_before(store, clock.now())
        (tmp_path / "archive").unlink()
        store.write_now(lambda tx: tx.execute("UPDATE journal SET actor='x' WHERE seq=2"))
        with pytest.raises(StoreCorrupt, match="row 2 does not follow"):
            prune_before(store, clock.now())
        assert len(store.read_now(journal.rows)) == rows


def fill(store: Store, clock: FixedClock, rows: int) -> None:
    def write(tx: Tx) -> None:
        for number in range(rows):
            tx.append_row(Action.SESSION_RUNNING, {"text": f"{number} " + "x" * 900})

    store.write_now(write)
    clock.advance(60)


def test_space_is_given_back_in_steps_while_others_read(tmp_path: Path) -> None:
    clock = FixedClock()
    with open_store(tmp_path, clock=clock) as store:
        fill(store, clock, 1_200)
        reader = sqlite3.connect(store.path)
        reader.execute("SELECT count(*) FROM journal").fetchone()
        prune_before(store, clock.now())
        freed = free_pages(store)
        assert freed > 1_000_000
        assert store.read_now(lambda c: c.execute("PRAGMA freelist_count").fetchone()) == (0,)
        reader.close()
    assert (tmp_path / "cockpit.db").stat().st_size < 1_000_000
