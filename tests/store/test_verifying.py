"""Verifying in parts, and from where the journal was verified last: with the result of reading it whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from store.store_world import begin, open_store

from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import checkpoints, verify_chain
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.verify_part_program import check_part
from cockpit.store.journal.verify_parts import Check, start_check
from cockpit.store.journal.verify_tables import fold_seals
from cockpit.store.sessions import messages

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with a message that streams and more rows."""
    with open_store(tmp_path) as opened:
        session_id = opened.write_now(begin)
        opened.write_now(
            lambda tx: messages.start(tx, session_id=session_id, wave_id="", message_id="m-1")
        )
        opened.write_now(lambda tx: append(tx, 60))
        yield opened


def append(tx: Tx, rows: int) -> None:
    for _ in range(rows):
        tx.append_row(Action.SESSION_RUNNING)


def start(store: Store, least: int = 10) -> Check | None:
    return store.read_now(
        lambda connection: start_check(store.path, connection, least=least, processors=2)
    )


def check(store: Store) -> verify_chain.Verdict | None:
    started = start(store)
    assert started is not None
    assert len(started._parts) == 2
    chain = started.read_verdict()
    if chain is None:
        return None
    assert chain.seals == store.read_now(fold_seals)
    return chain.verdict


def tamper(store: Store, statement: str) -> None:
    with sqlite3.connect(store.path) as another_program:
        another_program.execute(statement)
    another_program.close()


def test_a_sound_journal_has_the_verdict_of_one_reading(store: Store) -> None:
    whole = store.read_now(verify_chain.verify)
    assert check(store) == whole
    assert whole.checkpoint is not None
    assert len(whole.checkpoint.streaming) == 1


@pytest.mark.parametrize(
    "statement", ["UPDATE journal SET actor='x' WHERE seq=30", "DELETE FROM journal WHERE seq=20"]
)
def test_a_broken_journal_is_left_to_be_read_in_one(store: Store, statement: str) -> None:
    assert store.read_now(lambda connection: check_part(connection, 0, 40)) is not None
    tamper(store, statement)
    assert store.read_now(lambda connection: check_part(connection, 0, 40)) is None
    assert check(store) is None
    assert store.read_now(verify_chain.verify).broken is not None


def test_rows_outside_of_the_chain_and_short_journals_are_read_in_one(store: Store) -> None:
    assert start(store, least=1_000) is None
    tamper(store, "UPDATE journal_head SET seq=seq-1")
    assert start(store) is None


def verify_and_remember(store: Store) -> verify_chain.Verdict:
    verdict = store.read_now(verify_chain.verify)
    checkpoints.remember_verdict(store, verdict)
    return verdict


def recent(store: Store) -> verify_chain.Verdict:
    return store.read_now(checkpoints.verify_recent)


def test_only_the_rows_since_are_read(store: Store) -> None:
    rows = verify_and_remember(store).rows
    store.write_now(lambda tx: append(tx, 3))
    verdict = recent(store)
    assert (verdict.rows, verdict.since, verdict.ok) == (3, rows, True)
    checkpoints.remember_verdict(store, verdict)
    assert recent(store).rows == 0
    assert store.read_now(verify_chain.verify).rows == rows + 3


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE journal SET actor='x' WHERE seq=(SELECT max(seq) FROM journal)",
        "DELETE FROM journal WHERE seq=(SELECT max(seq) FROM journal)",
        "UPDATE journal SET actor=x'00' WHERE seq=(SELECT max(seq) FROM journal)",
        "UPDATE journal_head SET sealed=sealed+1",
    ],
)
def test_a_change_of_a_newer_row_is_found(store: Store, statement: str) -> None:
    verify_and_remember(store)
    store.write_now(lambda tx: append(tx, 2))
    tamper(store, statement)
    assert not recent(store).ok


def test_a_change_of_an_older_row_is_found_by_a_whole_verification_alone(store: Store) -> None:
    verify_and_remember(store)
    tamper(store, "UPDATE journal SET actor='x' WHERE seq=1")
    assert recent(store).ok
    assert not verify_and_remember(store).ok, "and it is not remembered"
    tamper(store, "UPDATE journal SET digest='0' WHERE seq=(SELECT max(seq) FROM journal)")
    verdict = recent(store)
    assert (verdict.ok, verdict.since) == (False, 0), "nor is a checkpoint whose row changed"
