"""Sending the user's decisions to the workers that wait for them.

Each decision goes on its own: none waits for a worker that does not answer. See
``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from cockpit.chains.remote.jetstream_queue import MessageQueue, QueueUnreachable
from cockpit.chains.remote.message_types import (
    DecisionAnswer,
    DecisionMessage,
    MessageInvalid,
    decode,
    encode,
)
from cockpit.chains.remote.remote_proposals import (
    find_decision,
    has_left_proposals,
    set_answered,
    show_proposals_anew,
)
from cockpit.store.chains import remote_runs
from cockpit.store.chains.remote_runs import RemoteProposal
from cockpit.store.db.database import Store

LOOK_S = 0.25
"""Seconds between two looks at the proposals that workers wait for."""

_Key = tuple[str, int, int, str]


class DecisionSender:
    """Sends each decision once to the worker that waits for it, bound to what the worker showed."""

    def __init__(self, store: Store, queue: MessageQueue, say: Callable[[str], None]) -> None:
        self._store = store
        self._queue = queue
        self._say = say
        self._sending: set[_Key] = set()

    async def run(self) -> None:
        """Look for decisions and send them, until cancelled. Raises the store's errors."""
        async with asyncio.TaskGroup() as group:
            while True:
                if self._store.read_now(has_left_proposals):
                    await self._store.write(show_proposals_anew)
                for proposal in self._store.read_now(remote_runs.select_unanswered):
                    key = (proposal.task_id, proposal.run, proposal.fence, proposal.remote_id)
                    if key in self._sending:
                        continue
                    decision = self._store.read_now(partial(find_decision, proposal=proposal))
                    if decision is not None:
                        self._sending.add(key)
                        group.create_task(self._send(key, proposal, decision))
                await self._store.clock.sleep(LOOK_S)

    async def _send(self, key: _Key, proposal: RemoteProposal, decision: DecisionMessage) -> None:
        subject = self._queue.subjects.decide(proposal.task_id, proposal.run, proposal.fence)
        try:
            if decision.verdict != "void":
                answer = _read_answer(await self._queue.request(subject, encode(decision)))
                if not answer.taken:
                    self._say(f"{proposal.task_id}: your decision came too late. {answer.error}")
            await self._store.write(lambda tx: set_answered(tx, proposal))
        except QueueUnreachable:
            return  # the worker is away, or gone: the next look sends it again, or finds it void
        finally:
            self._sending.discard(key)


def _read_answer(data: bytes) -> DecisionAnswer:
    try:
        return decode(DecisionAnswer, data)
    except MessageInvalid as error:
        return DecisionAnswer(False, str(error))
