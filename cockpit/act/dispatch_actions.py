"""The dispatcher: every approved action happens once, in order, and leaves a receipt.

An action is stored as ``dispatched`` before its effect; receipt and final phase are one transaction
after it. :meth:`Dispatcher.recover` probes actions that a dead process left in between, and an attempt
that may have had its effect is probed before it is retried. Where a probe cannot tell, the action
becomes ``uncertain`` and waits for the user (:func:`settle`). See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Literal

from msgspec.structs import replace

from cockpit.act.adapters import ADAPTERS, Adapter, Outcome
from cockpit.act.adapters.adapter import Failure, Found, failed, succeeded
from cockpit.act.live_output import LiveOutput, forget_live_output
from cockpit.act.workspace import Workspace
from cockpit.core.clock import parse_time
from cockpit.core.errors import (
    Altered,
    CockpitError,
    IllegalTransition,
    MachineFault,
    find_machine_fault,
)
from cockpit.core.processes import current_process, is_process_alive
from cockpit.core.text import end_sentence
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import outbox, proposals
from cockpit.store.sessions.outbox import OutboxAction

BACKOFF_S = 2.0
"""The wait after the first transient failure; it doubles with each, up to :data:`BACKOFF_MAX_S`."""

BACKOFF_MAX_S = 60.0

_RUNNABLE = ("queued", "failed_retryable")
_DOUBT = "cockpit cannot find out whether this happened. Check, and say whether it did."
LOOK_FIRST = (
    "It may have run, wholly or in part. Look first at what it has done, and repeat only what is"
    " missing."
)
"""What the agent is told of an action that was cut off: it would run the same again."""

_in_flight: set[tuple[str, str]] = set()
# What this very process performs now, by store and action: the owner written in the store names a
# process, and two dispatchers of one process must not take each other's work for abandoned.


class Dispatcher:
    """Run the approved actions of a session, one after the other.

    Several dispatchers may work on one store, in any number of processes: an action is claimed by a
    compare-and-set, so that only one of them runs it.
    """

    def __init__(
        self, store: Store, ground: Workspace, adapters: Mapping[str, Adapter] = ADAPTERS
    ) -> None:
        self._store = store
        self._ground = ground
        self._adapters = adapters

    async def run_wave(self, wave_id: str) -> list[OutboxAction]:
        """Run the wave's queued actions in their order, retrying transient failures.

        Returns all of its actions in their final state. Cancelling ends the running one and leaves the rest
        queued. Raises ``MachineFault`` where the machine was short of something: the action stays queued.
        """
        for action in self._store.read_now(lambda c: outbox.select_for_wave(c, wave_id)):
            current = action
            while current.phase in _RUNNABLE:
                await self._until_due(current)
                claimed = await self._attempt(current)
                if claimed is None:
                    # Another dispatcher has it; what comes of it is read below.
                    break
                current = claimed
        return self._store.read_now(lambda c: outbox.select_for_wave(c, wave_id))

    async def find_abandoned(self, session_id: str) -> list[OutboxAction]:
        """Return the actions of the session that a dead process left unfinished."""
        actions = await self._store.read(lambda c: outbox.select_for_session(c, session_id))
        return [
            action for action in actions if action.phase == "dispatched" and self._abandoned(action)
        ]

    async def recover(self, session_id: str) -> list[OutboxAction]:
        """Probe the actions of :meth:`find_abandoned`; returns the changed ones.

        A done action becomes ``confirmed``, one not done ``queued`` (run its wave again), an unknown one
        ``uncertain``.
        """
        abandoned = await self.find_abandoned(session_id)
        for action in abandoned:
            forget_live_output(self._store.path, action.action_id)
        resolved = [await self._resolve(action) for action in abandoned]
        return [action for action in resolved if action is not None]

    def _abandoned(self, action: OutboxAction) -> bool:
        owner = action.lease_owner or ""
        if owner == current_process():
            return self._mark(action) not in _in_flight
        return not is_process_alive(owner)

    def _mark(self, action: OutboxAction) -> tuple[str, str]:
        return str(self._store.path), action.action_id

    async def _until_due(self, action: OutboxAction) -> None:
        if action.phase == "failed_retryable" and action.next_retry_at is not None:
            wait = (parse_time(action.next_retry_at) - self._store.clock.now()).total_seconds()
            await self._store.clock.sleep(max(wait, 0.0))

    async def _attempt(self, action: OutboxAction) -> OutboxAction | None:
        """Make one attempt; None when another process has claimed the action."""
        mark = self._mark(action)
        if mark in _in_flight:
            return None
        _in_flight.add(mark)
        try:
            try:
                claimed = await self._claim(action)
            except Altered as error:
                words = str(error)
                return await self._store.write(
                    lambda tx: outbox.refuse_altered(tx, action.action_id, words)
                )
            if claimed is None:
                return None
            try:
                outcome = await self._perform(claimed, again=action.phase == "failed_retryable")
            except asyncio.CancelledError:
                # The attempt has ended (adapters see to that): report its result now.
                await asyncio.shield(self._interrupted(claimed))
                raise
            return await _to_the_end(self._record(claimed, outcome))
        finally:
            _in_flight.discard(mark)

    async def _claim(self, action: OutboxAction) -> OutboxAction | None:
        dispatched = asyncio.ensure_future(
            self._store.write(lambda tx: outbox.dispatch(tx, action.action_id, current_process()))
        )
        try:
            return await asyncio.shield(dispatched)
        except asyncio.CancelledError:
            if await dispatched is not None:
                # Claimed but never begun: nothing needs to be probed.
                await self._store.write(lambda tx: outbox.requeue(tx, action.action_id))
            raise

    async def _perform(self, action: OutboxAction, *, again: bool) -> Outcome:
        adapter = self._adapters[action.action_type]
        if again:
            answer = await self._probe(action)
            if answer == "done":
                return Outcome("success", "An earlier attempt had done it.")
            if answer == "unknown":
                words = "It is unknown whether an earlier attempt did it."
                return failed("transient", words, maybe=True)
        try:
            with LiveOutput(self._store, action.action_id) as live:
                ground = replace(self._ground, on_output=live.feed)
                return await adapter.perform(action.payload, action.key, ground)
        except CockpitError as error:
            # It may have ended with an error after its effect, as a commit whose name could not be read.
            if await self._probe(action) == "done":
                return succeeded(f"It happened, although it ended with: {error}")
            return failed("machine" if find_machine_fault(error) else "permanent", str(error))
        except Exception as error:
            words = f"It broke off: {type(error).__name__}: {end_sentence(str(error))}"
            kind: Failure = "machine" if find_machine_fault(error) else "permanent"
            return failed(kind, words, maybe=True)

    async def _interrupted(self, action: OutboxAction) -> None:
        if self._adapters[action.action_type].ends_when_cancelled:
            words = "It was ended: the wave was interrupted."
            if not action.payload.get("reading"):
                words = f"{words} {LOOK_FIRST}"
            await self._record(action, failed("permanent", words))
        else:
            await self._resolve(action)

    async def _record(self, action: OutboxAction, outcome: Outcome) -> OutboxAction:
        if outcome.failure is None:
            return await self._confirm(action, outcome.summary, outcome.detail)
        final = outcome.failure != "transient" or action.attempts >= action.max_attempts
        if final and outcome.maybe:
            # What the world says counts, not how the attempt ended.
            answer = await self._probe(action)
            if answer == "done":
                words = f"It happened, although it ended with: {outcome.summary}"
                return await self._confirm(action, words, outcome.detail)
            if answer == "unknown":
                words = f"{outcome.summary} {_DOUBT}"
                return await self._store.write(
                    lambda tx: outbox.mark_uncertain(tx, action.action_id, words)
                )
        if outcome.failure == "machine":
            await self._store.write(lambda tx: outbox.requeue(tx, action.action_id))
            raise MachineFault(f"{outcome.summary} Make room, then resume.")
        retry = None if final else min(BACKOFF_S * 2 ** (action.attempts - 1), BACKOFF_MAX_S)
        return await self._store.write(
            lambda tx: outbox.fail(
                tx,
                action.action_id,
                status=outcome.status,
                summary=outcome.summary,
                detail={**outcome.detail, "failure": outcome.failure},
                retry_in_s=retry,
                error_code=outcome.failure or "",
            )
        )

    async def _confirm(
        self, action: OutboxAction, summary: str, detail: Mapping[str, object]
    ) -> OutboxAction:
        return await self._store.write(
            lambda tx: outbox.confirm(tx, action.action_id, summary=summary, detail=detail)
        )

    async def _probe(self, action: OutboxAction) -> Found:
        try:
            return await self._adapters[action.action_type].probe(
                action.payload, action.key, self._ground
            )
        except (CockpitError, OSError):
            return "unknown"

    async def _resolve(self, action: OutboxAction) -> OutboxAction | None:
        """Set an unfinished action to the phase that its probe reports.

        Returns None when another process did so meanwhile.
        """
        try:
            await self._store.write(lambda tx: outbox.require_as_queued(tx, action.action_id))
        except Altered as error:
            # Not even a probe of it: it names files and commands that nobody approved.
            words = str(error)
            return await self._store.write(
                lambda tx: outbox.refuse_altered(tx, action.action_id, words)
            )
        answer = await self._probe(action)

        def step(tx: Tx) -> OutboxAction | None:
            now = outbox.load(tx.connection, action.action_id)
            if (now.phase, now.lease_owner, now.attempts) != (
                "dispatched",
                action.lease_owner,
                action.attempts,
            ):
                return None
            if answer == "done":
                words = "It was cut off, and had been done."
                return outbox.confirm(tx, action.action_id, summary=words, detail={"probed": True})
            if answer == "not_done":
                return outbox.requeue(tx, action.action_id)
            return outbox.mark_uncertain(tx, action.action_id, f"It was cut off. {_DOUBT}")

        return await self._store.write(step)


async def _to_the_end(work: Coroutine[Any, Any, OutboxAction]) -> OutboxAction:
    """Finish ``work`` even when cancelled, then raise the cancellation: an outcome is never lost."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def settle(
    store: Store,
    action_id: str,
    decision: Literal["done", "retry", "drop"],
    *,
    by: str = "person",
    proposal_id: str | None = None,
) -> OutboxAction:
    """Decide an ``uncertain`` action: it happened, run it again, or give it up.

    ``proposal_id`` is the proposal that asked. Raises ``IllegalTransition`` when the action is not
    uncertain, and ``Altered`` when that proposal was not approved as it is.
    """
    detail = {"settled_by": by, "decision": decision}

    def step(tx: Tx) -> OutboxAction:
        action = outbox.load(tx.connection, action_id)
        if action.phase != "uncertain":
            raise IllegalTransition(
                f"Action {action_id} is {action.phase}; only an uncertain one is settled by hand."
            )
        if decision == "done":
            words = f"It happened, says {by}."
            return outbox.confirm(tx, action_id, summary=words, detail=detail)
        if decision == "retry":
            if proposal_id is not None:
                proposals.load_approved(tx.connection, proposal_id)
            return outbox.requeue(tx, action_id)
        why = action.last_error.removesuffix(_DOUBT).strip()
        words = f"{why} {LOOK_FIRST} It was not run again, as {by} decided.".strip()
        return outbox.fail(
            tx, action_id, status="failure", summary=words, detail=detail, error_code="dropped"
        )

    return await store.write(step)
