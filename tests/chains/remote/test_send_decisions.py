"""The user's decisions on their way to workers: none waits for another, or for a worker that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chains.chain_world import Chains
from commands.cli_world import PATIENCE_S
from state_for_tests import state_of

from cockpit.chains.remote.jetstream_queue import QueueUnreachable, Subjects
from cockpit.chains.remote.message_types import (
    DecisionAnswer,
    DecisionMessage,
    ProposalNotice,
    decode,
    encode,
)
from cockpit.chains.remote.remote_proposals import DecisionSender, open_session, show_proposal
from cockpit.chains.remote.remote_run import _DecisionTaker
from cockpit.core.project_paths import locate_project
from cockpit.store.chains import remote_runs, task_runs
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals

COUNT = 3


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with COUNT tasks, each with a worker whose proposal the user approved."""
    chains = Chains.made(tmp_path, COUNT)
    place = locate_project(chains.root)

    def propose(tx: Tx) -> None:
        for number in range(1, COUNT + 1):
            task_id, worker = f"T-{number}", f"w{number}"
            task_runs.begin(tx, task_id, 1, "implement", chain_id="", ordinal=0)
            remote_runs.send(tx, task_id, 1, "a" * 40)
            fence = remote_runs.claim(tx, task_id, 1, worker)
            open_session(tx, place, task_id, worker, "reads")
            notice = ProposalNotice(
                task_id=task_id, run=1, fence=fence, worker=worker, proposal_id=f"p-{number}",
                shown_digest="0" * 64, kind="action", title="write a file", risk="low", body={},
            )  # fmt: skip
            show_proposal(tx, notice, place)
        for shown in proposals.select_pending(tx.connection):
            proposals.decide(tx, shown.proposal_id, "approved", by="person")

    with Store.open(state_of(chains.root) / "cockpit.db") as opened:
        asyncio.run(opened.write(propose))
        yield opened


class Workers:
    """A queue whose first worker answers only once all others have their decisions."""

    subjects = Subjects("shop")

    def __init__(self, store: Store) -> None:
        self.asked: list[str] = []
        self.is_answered: Callable[[], bool] = lambda: (
            len(store.read_now(remote_runs.select_unanswered)) <= 1
        )

    async def request(self, subject: str, data: bytes) -> bytes:
        self.asked.append(subject)
        assert decode(DecisionMessage, data).verdict == "approved"
        if subject == self.subjects.decide("T-1", 1, 1):
            while not self.is_answered():
                await asyncio.sleep(0.01)
            raise QueueUnreachable("The worker did not answer.")
        return encode(DecisionAnswer(True))


async def test_no_decision_waits_for_a_worker_that_does_not_answer(store: Store):
    workers = Workers(store)
    sending = asyncio.create_task(DecisionSender(store, workers, print).run())
    silent = workers.subjects.decide("T-1", 1, 1)
    async with asyncio.timeout(PATIENCE_S):
        while workers.asked.count(silent) < 2:  # it is asked again, since it waits still
            await asyncio.sleep(0.01)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    for number in range(2, COUNT + 1):
        assert workers.asked.count(workers.subjects.decide(f"T-{number}", 1, 1)) == 1
    (left,) = store.read_now(remote_runs.select_unanswered)
    assert left.task_id == "T-1"


class Deciding:
    """A runtime that counts what it approves."""

    def __init__(self) -> None:
        self.approved: list[str] = []

    async def approve(self, proposal_id: str, **given: Any) -> None:
        self.approved.append(proposal_id)


async def test_a_decision_whose_answer_was_lost_counts_once():
    runtime = Deciding()
    taker = _DecisionTaker(runtime, asyncio.Event())  # type: ignore[arg-type]  # what it needs of one
    data = encode(DecisionMessage("p-1", "0" * 64, "approved"))
    for _ in range(2):
        assert decode(DecisionAnswer, await taker.take(data)).taken
    assert runtime.approved == ["p-1"]
