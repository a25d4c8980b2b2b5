"""Proposals are decided once, as they were shown, in time; receipts and packets stay."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from store.store_world import begin, open_store, race, racer

from cockpit.core.clock import FixedClock
from cockpit.core.errors import AlreadyDecided, NotFound, Stale
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.sessions import outbox, proposals, waves
from cockpit.store.sessions.proposals import Proposal

pytestmark = pytest.mark.slow

ITEMS = {"items": [{"item": f"file:{name}.py", "tokens": 1} for name in "abc"]}


def propose(tx: Tx, proposal_id: str = "p-1", **words: Any) -> Proposal:
    given = {"kind": "context", "wave_id": "w", "title": "look", "body": ITEMS, "risk": "low"}
    return proposals.create(tx, proposal_id=proposal_id, session_id=begin(tx), **{**given, **words})


def decide(store: Store, verdict: str = "approved", name: str = "p-1", **more: Any) -> Proposal:
    return store.write_now(lambda tx: proposals.decide(tx, name, verdict, by="person", **more))


def status(store: Store, name: str = "p-1") -> str:
    return store.read_now(lambda c: proposals.load(c, name).status)


def test_a_decision_is_final(tmp_path: Path) -> None:
    verdicts = ("approved", "rejected", "discussed", "expired")
    with open_store(tmp_path) as store:
        for first in verdicts:
            store.write_now(lambda tx, name=first: propose(tx, name))
            decide(store, first, name=first, reason="r")
            before = store.read_now(journal.last_seq)
            for second in verdicts:
                with pytest.raises(AlreadyDecided, match=first):
                    decide(store, second, name=first)
            assert status(store, first) == first
            assert store.read_now(journal.last_seq) == before


DECIDER = racer("""
verdict = ("approved", "rejected")[int(sys.argv[1])]
for number in range(6):
    try:
        store.write_now(lambda tx: proposals.decide(tx, f"p-{number}", verdict, by=sys.argv[1]))
        print(number, verdict)
    except AlreadyDecided:
        pass
""")


def test_racing_processes_decide_each_proposal_once(tmp_path: Path) -> None:
    with Store.open(tmp_path / "cockpit.db") as store:
        for number in range(6):
            store.write_now(lambda tx, n=number: propose(tx, f"p-{n}"))
        told = race(DECIDER, 2, store.path)
        won = sorted(line for out in told for line in out.splitlines())
        stored = store.read_now(
            lambda c: [f"{n} {proposals.load(c, f'p-{n}').status}" for n in range(6)]
        )
        assert won == stored
        verdicts = [row for row in store.read_now(journal.rows) if row.action == "proposal.decided"]
        assert len(verdicts) == 6


def test_what_was_not_shown_is_not_approved(store: Store) -> None:
    shown = store.write_now(propose).shown_digest
    with pytest.raises(Stale, match="differs from what was shown"):
        decide(store, shown_digest="0" * 64)
    assert status(store) == "pending"
    assert decide(store, shown_digest=shown).status == "approved"


def test_after_the_deadline_only_expiry(tmp_path: Path) -> None:
    clock = FixedClock()
    with open_store(tmp_path, clock=clock) as store:
        store.write_now(lambda tx: propose(tx, deadline_s=10))
        clock.advance(9.999)
        assert store.write_now(proposals.expire_due) == []
        clock.advance(0.001)
        with pytest.raises(Stale, match="deadline"):
            decide(store)
        assert [one.status for one in store.write_now(proposals.expire_due)] == ["expired"]
        assert store.write_now(proposals.expire_due) == []


def test_narrowing_only_takes_away(store: Store) -> None:
    store.write_now(propose)
    for narrowed in (["file:d.py"], ["file:a.py", "file:d.py"], []):
        with pytest.raises(Stale):
            decide(store, narrowed=narrowed)
    with pytest.raises(Stale):
        decide(store, "rejected", narrowed=["file:a.py"])
    store.write_now(lambda tx: propose(tx, "p-2", kind="action"))
    with pytest.raises(Stale):
        decide(store, name="p-2", narrowed=["file:a.py"])
    assert status(store) == status(store, "p-2") == "pending"
    kept = decide(store, narrowed=["file:c.py", "file:a.py"]).narrowed
    assert kept == ("file:a.py", "file:c.py"), "in the order in which they were shown"


def test_the_same_proposal_again_is_the_first(store: Store) -> None:
    first = store.write_now(propose)
    again = store.write_now(lambda tx: propose(tx, body={"items": []}, title="other"))
    assert again == first
    with pytest.raises(NotFound):
        store.read_now(lambda c: proposals.load(c, "p-2"))


def test_the_table_keeps_a_decided_proposal(store: Store) -> None:
    store.write_now(propose)
    decide(store, "rejected")
    for column in ("body_json", "shown_digest", "status", "reason", "title"):
        refused(store, f"UPDATE proposals SET {column}='approved'")
    refused(store, "DELETE FROM proposals")
    refused(store, "INSERT OR REPLACE INTO proposals SELECT * FROM proposals")
    refused(store, "UPDATE OR REPLACE proposals SET status='pending', decided_at=NULL")
    assert status(store) == "rejected"


def receipt(tx: Tx) -> None:
    session_id = begin(tx)
    wave = waves.create(tx, session_id=session_id, trace_id="t")
    made = outbox.plan(
        tx, wave_id=wave.wave_id, session_id=session_id, position=1, key="k", action_type="run",
        title="t", payload={},
    )  # fmt: skip
    outbox.enqueue(tx, made.action_id, proposal_id=None, payload={})
    outbox.dispatch(tx, made.action_id, "o")
    outbox.confirm(tx, made.action_id, summary="s", detail={})


def test_the_table_keeps_receipts(store: Store) -> None:
    store.write_now(receipt)
    refused(store, "UPDATE action_receipts SET status='failure'")
    refused(store, "DELETE FROM action_receipts")
    refused(store, "INSERT OR REPLACE INTO action_receipts SELECT * FROM action_receipts")
    other = (
        "SELECT 'r-other', action_id, idempotency_key, attempt, 'failure', terminal, summary,"
        " detail_json, created_at FROM action_receipts"
    )
    refused(store, f"INSERT OR REPLACE INTO action_receipts {other}")
    refused(store, f"INSERT INTO action_receipts {other}")


def packet(tx: Tx) -> None:
    wave = waves.create(tx, session_id=begin(tx), trace_id="t")
    tx.execute(
        "INSERT INTO orientation_packets VALUES ('k', ?, 'default', 1, 2, 1, '{}', 'd', 'now')",
        (wave.wave_id,),
    )


def test_the_table_keeps_packets_except_from_pruning(store: Store) -> None:
    store.write_now(packet)
    refused(store, "UPDATE orientation_packets SET packet_json='[]'")
    refused(store, "DELETE FROM orientation_packets")
    refused(store, "INSERT OR REPLACE INTO orientation_packets SELECT * FROM orientation_packets")
    other = (
        "SELECT 'k2', wave_id, profile_id, profile_version, token_budget, token_used, '[]',"
        " digest_sha256, created_at FROM orientation_packets"
    )
    refused(store, f"INSERT OR REPLACE INTO orientation_packets {other}")

    def prune(tx: Tx) -> int:
        tx.execute("INSERT INTO pruning VALUES (1)")
        gone = tx.execute("DELETE FROM orientation_packets").rowcount
        tx.execute("DELETE FROM pruning")
        return gone

    assert store.write_now(prune) == 1


def refused(store: Store, statement: str) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        store.write_now(lambda tx: tx.execute(statement))
