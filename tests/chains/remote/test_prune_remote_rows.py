"""Pruning the journals of workers of other machines: with the journal, whole or not at all."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from chains.chain_world import Chains
from state_for_tests import state_of

from cockpit.store.chains import remote_runs
from cockpit.store.chains.prune_remote_rows import prune_remote_rows
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.db.write_archive import read_archive
from cockpit.store.journal import verify_chain

LATER, EARLIER = "2999-01-01T00:00:00.000000Z", "2000-01-01T00:00:00.000000Z"


def fill(tx: Tx) -> None:
    """T-1 is over, T-2 is with its second worker, T-3 is in the queue again."""
    for task_id in ("T-1", "T-2", "T-3"):
        remote_runs.send(tx, task_id, 1, "a" * 40)
        add(tx, task_id)
    remote_runs.record_result(tx, "T-1", 1, 1, "w1", {"status": "ready"})
    remote_runs.finish(tx, "T-1", 1)
    add(tx, "T-2")
    remote_runs.record_result(tx, "T-3", 1, 1, "w1", {"status": "interrupted"})
    remote_runs.give_back(tx, "T-3", 1)


def add(tx: Tx, task_id: str) -> None:
    fence = remote_runs.claim(tx, task_id, 1, "w1")
    rows = [(seq, json.dumps({"seq": seq})) for seq in (1, 2, 3)]
    remote_runs.add_rows(tx, task_id, 1, fence, "w1", rows, "c" * 64)


def test_journals_of_runs_that_are_over_go_into_an_archive(tmp_path: Path):
    chains = Chains.made(tmp_path, 3)
    with Store.open(state_of(chains.root) / "cockpit.db") as store:
        asyncio.run(store.write(fill))
        assert prune_remote_rows(store, EARLIER).runs == 0, "its rows came later"
        due = prune_remote_rows(store, LATER, dry_run=True)
        assert (due.runs, due.rows, due.archive) == (3, 9, None)
    body = chains.project.json("prune", "--older-than", "2999-01-01", "--journal", "--json")
    assert body["remote_rows"] == 9
    with Store.open(state_of(chains.root) / "cockpit.db") as store:
        archived = read_archive(state_of(chains.root) / "archive" / body["remote_archive"])
        keys = {(row["task_id"], row["fence"]) for table, row in archived if table == "remote_rows"}
        assert keys == {("T-1", 1), ("T-2", 1), ("T-3", 1)} and len(archived) == 9
        assert len(store.read_now(lambda c: remote_runs.select_rows(c, "T-2", 1, 2))) == 3
        assert not store.read_now(lambda c: remote_runs.select_rows(c, "T-2", 1, 1))
        assert prune_remote_rows(store, LATER).runs == 0
        assert store.read_now(verify_chain.verify).ok
