"""Verifying goes on from where the journal was verified last, and sees all that changed since."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_world import begin, open_store

from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import checkpoints, verify_chain
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import messages


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path) as opened:
        opened.write_now(begin)
        yield opened


def row(tx: Tx) -> int:
    return tx.append_row(Action.SESSION_RUNNING)


def verify_and_remember(store: Store) -> verify_chain.Verdict:
    verdict = store.read_now(verify_chain.verify)
    checkpoints.remember_verdict(store, verdict)
    return verdict


def tamper(store: Store, statement: str) -> None:
    with sqlite3.connect(store.path) as another_program:
        another_program.execute(statement)
    another_program.close()


def recent(store: Store) -> verify_chain.Verdict:
    return store.read_now(checkpoints.verify_recent)


def test_only_the_rows_since_are_read(store: Store) -> None:
    rows = verify_and_remember(store).rows
    for _ in range(3):
        store.write_now(row)
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
        "DELETE FROM journal WHERE seq=(SELECT max(seq)-1 FROM journal)",
        "UPDATE journal SET actor=x'00' WHERE seq=(SELECT max(seq) FROM journal)",
        "UPDATE journal_head SET sealed=sealed+1",
    ],
)
def test_a_change_of_a_newer_row_is_found(store: Store, statement: str) -> None:
    verify_and_remember(store)
    store.write_now(row)
    store.write_now(row)
    tamper(store, statement)
    assert not recent(store).ok


def test_a_change_of_an_older_row_is_found_by_a_whole_verification_only(store: Store) -> None:
    verify_and_remember(store)
    tamper(store, "UPDATE journal SET actor='x' WHERE seq=1")
    assert recent(store).ok
    assert not store.read_now(verify_chain.verify).ok


def test_a_changed_row_at_the_checkpoint_makes_it_void(store: Store) -> None:
    verify_and_remember(store)
    tamper(store, "UPDATE journal SET digest='0' WHERE seq=(SELECT max(seq) FROM journal)")
    verdict = recent(store)
    assert (verdict.ok, verdict.since) == (False, 0)


def test_a_broken_journal_is_not_remembered(store: Store) -> None:
    tamper(store, "UPDATE journal SET actor='x' WHERE seq=1")
    assert not verify_and_remember(store).ok
    assert store.read_now(lambda c: checkpoints.find(c, "verified")) is None


def test_a_message_may_stream_over_a_checkpoint(store: Store) -> None:
    session_id = store.write_now(begin)

    def stream(tx: Tx, number: int, text: str) -> None:
        messages.append_delta(
            tx, session_id=session_id, wave_id="w", message_id="m", number=number, text=text
        )

    store.write_now(
        lambda tx: messages.start(tx, session_id=session_id, wave_id="w", message_id="m")
    )
    verify_and_remember(store)
    store.write_now(lambda tx: stream(tx, 0, "some "))
    assert recent(store).ok
    verify_and_remember(store)
    store.write_now(lambda tx: stream(tx, 1, "words"))
    assert recent(store).ok
    store.write_now(
        lambda tx: messages.complete(
            tx, session_id=session_id, wave_id="w", message_id="m", role="agent",
            text="some words", interrupted=False,
        )
    )  # fmt: skip
    assert recent(store).ok
