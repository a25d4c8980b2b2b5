"""A long journal is verified in parts by other processes, with the result of reading it in one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from store_world import begin, open_store

from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal, verify_chain, verify_parts
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.verify_part_program import check_part
from cockpit.store.journal.verify_parts import start_check
from cockpit.store.journal.verify_tables import fold_seals
from cockpit.store.sessions import messages

ROWS = 60


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store whose parts are short, on a machine with three processors."""
    monkeypatch.setattr(verify_parts, "LEAST", 10)
    monkeypatch.setattr(verify_parts.os, "sched_getaffinity", lambda _: {0, 1, 2})
    with open_store(tmp_path) as opened:
        session_id = opened.write_now(begin)
        opened.write_now(
            lambda tx: messages.start(tx, session_id=session_id, wave_id="", message_id="m-1")
        )
        for _ in range(ROWS):
            opened.write_now(append)
        yield opened


def append(tx: Tx) -> int:
    return tx.append_row(Action.SESSION_RUNNING)


def check(store: Store) -> verify_chain.Verdict | None:
    started = store.read_now(lambda connection: start_check(store.path, connection))
    assert started is not None
    assert len(started._parts) == 3
    chain = started.read_verdict()
    if chain is None:
        return None
    assert chain.seals == store.read_now(fold_seals)
    return chain.verdict


def tamper(store: Store, *statements: str) -> None:
    with sqlite3.connect(store.path) as another_program:
        for statement in statements:
            another_program.execute(statement)
    another_program.close()


def test_a_sound_journal_has_the_verdict_of_one_reading(store: Store) -> None:
    verdict = check(store)
    whole = store.read_now(verify_chain.verify)
    assert verdict == whole
    assert verdict is not None
    assert whole.checkpoint is not None
    assert verdict.checkpoint == whole.checkpoint
    assert len(whole.checkpoint.streaming) == 1


def test_a_row_that_was_changed_removed_or_added_is_seen_in_its_part(store: Store) -> None:
    head = store.read_now(journal.last_seq)
    ends = [0, head // 3, 2 * head // 3, head]
    changes = {
        "UPDATE journal SET actor='x' WHERE seq={}": (1, ends[1], ends[1] + 1, ends[2], head),
        "UPDATE journal SET digest='x' WHERE seq={}": (1, ends[1], ends[1] + 1, ends[2], head),
        "UPDATE journal SET digest=NULL WHERE seq={}": (ends[1] + 3,),
        "UPDATE journal SET seals='{{}}' WHERE seq={}": (ends[2] + 2,),
        "DELETE FROM journal WHERE seq={}": (1, ends[1] + 1, ends[2], head),
        "UPDATE journal SET detail_json=CAST(x'ff' AS TEXT) WHERE seq={}": (ends[2] + 1,),
    }
    for statement, places in changes.items():
        for seq in places:
            with sqlite3.connect(store.path, isolation_level=None) as other:
                other.execute("BEGIN")
                other.execute(statement.format(seq))
                sound = [_check_safely(other, *part) for part in pairwise(ends)]
                other.execute("ROLLBACK")
            other.close()
            assert None in sound, (statement, seq)
    assert store.read_now(verify_chain.verify).ok


def _check_safely(connection: sqlite3.Connection, after: int, until: int) -> object:
    try:
        return check_part(connection, after, until)
    except sqlite3.OperationalError:
        return None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE journal SET actor='x' WHERE seq=30",
        "UPDATE journal_head SET digest='x'",
        "UPDATE journal_head SET sealed=sealed+1",
    ],
)
def test_a_broken_journal_is_left_to_be_read_in_one(store: Store, statement: str) -> None:
    tamper(store, statement)
    assert check(store) is None
    assert store.read_now(verify_chain.verify).broken is not None


def test_rows_outside_of_the_chain_and_short_journals_are_read_in_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check(store) is not None
    tamper(store, "UPDATE journal_head SET seq=seq-1")
    assert store.read_now(lambda c: start_check(store.path, c)) is None
    monkeypatch.setattr(verify_parts, "LEAST", 1_000)
    tamper(store, "UPDATE journal_head SET seq=seq+1")
    assert store.read_now(lambda c: start_check(store.path, c)) is None
