"""The journal's chain: nothing is changed, removed or inserted without being found."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from store.store_world import begin, open_store, race, racer

from cockpit.core.errors import StoreCorrupt
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.details.sessions import SessionRunning
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import COLUMNS
from cockpit.store.sessions import messages

pytestmark = pytest.mark.slow

CHANGES: dict[str, object] = {
    "seq": 1_000,
    "at": "2020-01-01T00:00:00.000000Z",
    "profile_version": 7,
    "result": "refused",
    "latency_ms": 9,
    "detail_json": '{"changed":true}',
    "digest": "0" * 64,
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Ten sealed rows, a finished message, and one that streams."""
    with open_store(tmp_path) as made:
        session_id = made.write_now(begin)

        def go(tx: Tx) -> None:
            for message_id in ("m-done", "m-streaming"):
                messages.start(tx, session_id=session_id, wave_id="w", message_id=message_id)
                for number, text in enumerate(("some ", "words ", "\ud800")):
                    messages.append_delta(
                        tx, session_id=session_id, wave_id="w", message_id=message_id,
                        text=text, number=number,
                    )  # fmt: skip
                if message_id == "m-done":
                    messages.complete(
                        tx, session_id=session_id, role="agent", text="some", message_id=message_id
                    )
            for number in range(5):
                tx.append_row(
                    Action.SESSION_RUNNING, {"n": 1}, session_id=session_id, latency_ms=number
                )

        made.write_now(go)
        yield made


def tampered(store: Store, statement: str) -> verify_chain.Verdict:
    store.write_now(lambda tx: tx.execute(statement))
    return store.read_now(verify_chain.verify)


def sealed(store: Store) -> list[int]:
    return [row.seq for row in store.read_now(journal.rows) if row.digest]


def test_any_changed_column_of_any_row_is_found(store: Store) -> None:
    def change(tx: Tx, seq: int, column: str, value: str, *bound: object) -> int:
        tx.execute("SAVEPOINT tampering")
        try:
            changed = tx.execute(
                f"UPDATE OR IGNORE journal SET {column}={value}"
                f" WHERE seq=? AND {column} IS NOT {value}",
                (*bound, seq, *bound),
            ).rowcount
        except sqlite3.IntegrityError:
            changed = 0  # not a number where only a number can stand: the table refuses it
        broken = verify_chain.verify(tx.connection).broken
        assert (broken is not None) == (changed > 0), (seq, column, value, broken)
        tx.execute("ROLLBACK TO tampering")
        tx.execute("RELEASE tampering")
        return changed

    def change_all(tx: Tx, column: str) -> None:
        other = CHANGES.get(column, "other")
        changed = sum(change(tx, seq, column, "?", other) for seq in seqs)
        assert changed >= len(seqs) - 1, "the change was not made"
        change(tx, seqs[-1], column, "?", None)
        change(tx, seqs[-1], column, "?", b"\x00\xff")
        change(tx, seqs[-1], column, "CAST(x'ff' AS TEXT)")

    seqs = sealed(store)
    assert store.read_now(verify_chain.verify) == verify_chain.Verdict(len(seqs), None)
    for column in COLUMNS:
        store.write_now(lambda tx, c=column: change_all(tx, c))
    assert store.read_now(verify_chain.verify).ok


def test_removed_rows_and_a_tampered_head_are_found(store: Store) -> None:
    seqs = sealed(store)
    for statement in (
        *(f"DELETE FROM journal WHERE seq={seqs[place]}" for place in (0, 3, -2, -1)),
        f"DELETE FROM journal WHERE seq>{seqs[3]}",
        "DELETE FROM journal",
        "UPDATE journal_head SET seq=seq+1",
        "UPDATE journal_head SET seq=seq-1",
        "UPDATE journal_head SET digest='0'",
        "UPDATE journal_head SET sealed=sealed+1",
        "DELETE FROM journal_head",
    ):
        with opened_copy(store) as copy:
            assert not tampered(copy, statement).ok, statement


COPY = (
    f"INSERT INTO journal({', '.join(COLUMNS)}) SELECT {{seq}}, {', '.join(COLUMNS[1:])}"
    " FROM journal WHERE seq={of}"
)


def test_an_inserted_row_is_found(store: Store) -> None:
    known = sealed(store)
    taken = {row.seq for row in store.read_now(journal.rows)}
    free = min(set(range(1, known[-1])) - taken)
    for seq, of in ((0, known[0]), (-1, known[-1]), (free, known[0]), (known[-1] + 1, known[-1])):
        with opened_copy(store) as copy:
            assert not tampered(copy, COPY.format(seq=seq, of=of)).ok, seq


def opened_copy(store: Store) -> Store:
    folder = store.path.parent / f"copy-{sum(1 for _ in store.path.parent.iterdir())}"
    folder.mkdir()
    copy = sqlite3.connect(folder / "c.db")
    store.read_now(lambda connection: connection.backup(copy))
    copy.close()
    return Store.open(folder / "c.db")


def test_a_forged_row_behind_the_end_is_found_and_does_not_stop_the_work(store: Store) -> None:
    forged = (
        "INSERT INTO journal(seq, at, actor, action, detail_json, session_id)"
        " SELECT seq+1, 'x', 'agent', 'message.delta', '{}', '' FROM journal_head"
    )
    with sqlite3.connect(store.path) as another_program:
        another_program.execute(forged)
    another_program.close()
    verdict = store.read_now(verify_chain.verify)
    last = store.read_now(journal.last_seq)
    assert verdict.broken == (last + 1, f"row {last + 1} is behind the recorded end {last}")
    assert store.write_now(lambda tx: tx.append_row(Action.SESSION_RUNNING)) == last + 2
    later = store.read_now(verify_chain.verify)
    assert later.broken == (last + 1, f"row {last + 1} belongs to no message that is streaming")


def test_a_fragment_of_no_streaming_message_is_found(store: Store) -> None:
    for detail in ("{", "[]", "null", "3", '{"message_id":"m-done"}'):
        with opened_copy(store) as copy:
            verdict = tampered(
                copy,
                "INSERT INTO journal(seq, at, actor, action, detail_json, session_id)"
                f" SELECT -5, 'x', 'agent', 'message.delta', '{detail}', session_id"
                " FROM journal WHERE seq=2",
            )
            assert verdict.broken is not None, detail


def test_fragments_of_a_finished_message_are_found(store: Store) -> None:
    first = sealed(store)[2]
    gone = [n for n in range(first, first + 4) if n not in {r.seq for r in all_rows(store)}]
    text = '{"message_id":"m-done","text":"again"}'
    verdict = tampered(
        store,
        "INSERT INTO journal(seq, at, actor, action, detail_json, session_id)"
        f" SELECT {gone[0]}, 'x', 'agent', 'message.delta', '{text}', session_id"
        " FROM journal WHERE seq=2",
    )
    assert verdict.broken == (gone[0], f"row {gone[0]} is a fragment of a finished message")


def all_rows(store: Store) -> list[journal.Row]:
    return store.read_now(journal.rows)


def test_a_journal_without_its_end_tells_a_person(store: Store) -> None:
    tampered(store, "DELETE FROM journal_head")
    with pytest.raises(StoreCorrupt, match="backups"):
        store.write_now(lambda tx: tx.append_row(Action.SESSION_RUNNING))


WRITER = racer("""
for number in range(40):
    print(store.write_now(lambda tx: tx.append_row(Action.SESSION_RUNNING, {"p": sys.argv[1]})))
""")


def test_writers_in_several_processes_make_one_chain(store: Store) -> None:
    before = store.read_now(journal.last_seq)
    told = race(WRITER, 2, store.path)
    seqs = sorted(int(line) for out in told for line in out.split())
    assert seqs == list(range(before + 1, before + 81))
    assert store.read_now(verify_chain.verify).ok


def test_a_row_that_cannot_be_inserted_undoes_its_step(tmp_path: Path) -> None:
    def step(tx: Tx) -> None:
        tx.journal(SessionRunning(), session_id="s-1")
        tx.journal(SessionRunning(), session_id="s-1", result="no such result")
        with contextlib.suppress(sqlite3.IntegrityError):
            tx.execute("SELECT count(*) FROM journal")

    with Store.open(tmp_path / "cockpit.db") as store:
        before = store.read_now(journal.last_seq)
        with pytest.raises(sqlite3.IntegrityError):
            store.write_now(step)
        assert store.read_now(journal.last_seq) == before
        store.write_now(lambda tx: tx.journal(SessionRunning(), session_id="s-1"))
        assert store.read_now(verify_chain.verify).ok
