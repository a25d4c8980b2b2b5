"""Phases and results that do not exist are refused by the tables themselves."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from store.store_world import begin, open_store

from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import outbox, waves


def write(tx: Tx) -> tuple[str, str]:
    session_id = begin(tx)
    wave = waves.create(tx, session_id=session_id, trace_id="t")
    planned = outbox.plan(
        tx, wave_id=wave.wave_id, session_id=session_id, position=1, key="k-1", action_type="run",
        title="run it", payload={"argv": ["true"]},
    )  # fmt: skip
    outbox.enqueue(tx, planned.action_id, proposal_id=None, payload=planned.payload)
    outbox.dispatch(tx, planned.action_id, "owner")
    outbox.confirm(tx, planned.action_id, summary="done", detail={})  # its receipt points to it
    return wave.wave_id, planned.action_id


def test_a_phase_or_result_that_is_none_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.write_now(write)
        for column in ("wave_runs SET phase", "outbox_actions SET phase", "journal SET result"):
            for value in ("", "Created", "queued ", "OK", None):
                with pytest.raises(sqlite3.IntegrityError, match="constraint failed"):
                    store.write_now(lambda tx, c=column, v=value: tx.execute(f"UPDATE {c}=?", (v,)))
