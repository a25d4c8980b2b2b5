"""The outbox: every transition from every phase, one dispatcher, one terminal receipt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from store.store_world import begin, open_store, race, racer

from cockpit.core.clock import FixedClock
from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal, verify_chain
from cockpit.store.sessions import outbox, waves
from cockpit.store.sessions.outbox import OutboxAction

Step = Callable[[Tx, str], Any]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(tmp_path_factory.mktemp("outbox"), clock=FixedClock()) as made:
        yield made


def plan(tx: Tx, key: str = "") -> OutboxAction:
    session_id = begin(tx)
    wave = waves.create(tx, session_id=session_id, trace_id="t")
    return outbox.plan(
        tx, wave_id=wave.wave_id, session_id=session_id, position=1, key=key or session_id,
        action_type="run", title="run it", payload={"argv": ["true"]},
    )  # fmt: skip


def enqueue(tx: Tx, action_id: str) -> OutboxAction:
    return outbox.enqueue(tx, action_id, proposal_id=None, payload={"argv": ["true"]})


def dispatch(tx: Tx, action_id: str) -> OutboxAction | None:
    return outbox.dispatch(tx, action_id, "o")


def confirm(tx: Tx, action_id: str) -> OutboxAction:
    return outbox.confirm(tx, action_id, summary="done", detail={})


def fail(tx: Tx, action_id: str) -> OutboxAction:
    return outbox.fail(tx, action_id, status="failure", summary="no", detail={})


def retry(tx: Tx, action_id: str) -> OutboxAction:
    return outbox.fail(tx, action_id, status="timeout", summary="no", detail={}, retry_in_s=0)


def doubt(tx: Tx, action_id: str) -> OutboxAction:
    return outbox.mark_uncertain(tx, action_id, "who knows")


def drop(tx: Tx, action_id: str) -> OutboxAction:
    return outbox.drop(tx, action_id, "rejected")


PATHS: dict[str, tuple[Step, ...]] = {
    "planned": (),
    "queued": (enqueue,),
    "dispatched": (enqueue, dispatch),
    "confirmed": (enqueue, dispatch, confirm),
    "failed_retryable": (enqueue, dispatch, retry),
    "failed_terminal": (enqueue, dispatch, fail),
    "uncertain": (enqueue, dispatch, doubt),
}
ALLOWED: dict[Step, dict[str, str]] = {
    enqueue: {"planned": "queued"},
    drop: {"planned": "failed_terminal"},
    dispatch: {"queued": "dispatched", "failed_retryable": "dispatched"},
    confirm: {"dispatched": "confirmed", "uncertain": "confirmed"},
    fail: {"dispatched": "failed_terminal", "uncertain": "failed_terminal"},
    retry: {"dispatched": "failed_retryable", "uncertain": "failed_retryable"},
    doubt: {"dispatched": "uncertain"},
    outbox.requeue: {"dispatched": "queued", "uncertain": "queued"},
}


def brought_to(tx: Tx, phase: str) -> str:
    action_id = plan(tx).action_id
    for step in PATHS[phase]:
        step(tx, action_id)
    return action_id


def state(store: Store, action_id: str) -> tuple[Any, ...]:
    return store.read_now(
        lambda c: (
            outbox.load(c, action_id),
            outbox.select_receipts(c, action_id),
            journal.last_seq(c),
        )
    )


@pytest.mark.parametrize("step", ALLOWED)
def test_every_step_from_every_phase(store: Store, step: Step) -> None:
    for there in PATHS:
        take_step(store, there, step)


def take_step(store: Store, there: str, step: Step) -> None:
    action_id = store.write_now(lambda tx: brought_to(tx, there))
    before = state(store, action_id)
    assert before[0].phase == there
    wanted = ALLOWED[step].get(there)
    if wanted is not None:
        assert store.write_now(lambda tx: step(tx, action_id)).phase == wanted
        return
    if step is dispatch:
        assert store.write_now(lambda tx: dispatch(tx, action_id)) is None
    else:
        with pytest.raises(IllegalTransition):
            store.write_now(lambda tx: step(tx, action_id))
    assert state(store, action_id) == before


def test_a_retry_waits_until_it_is_due_and_attempts_end(store: Store) -> None:
    clock = store.clock
    assert isinstance(clock, FixedClock)
    action_id = store.write_now(lambda tx: brought_to(tx, "queued"))
    for attempt in (1, 2, 3):
        sent = store.write_now(lambda tx: dispatch(tx, action_id))
        assert sent is not None and sent.attempts == attempt
        ended = store.write_now(
            lambda tx: outbox.fail(
                tx, action_id, status="failure", summary="no", detail={}, retry_in_s=30
            )
        )
        if attempt < 3:
            assert ended.phase == "failed_retryable"
            clock.advance(29.9)
            assert store.write_now(lambda tx: dispatch(tx, action_id)) is None
            clock.advance(0.1)
    assert ended.phase == "failed_terminal"
    kinds = [one.terminal for one in store.read_now(lambda c: outbox.select_receipts(c, action_id))]
    assert kinds == [False, False, True]


def test_the_same_key_is_the_same_action(store: Store) -> None:
    first = store.write_now(lambda tx: plan(tx, "one key"))
    assert store.write_now(lambda tx: plan(tx, "one key")) == first
    with pytest.raises(NotFound):
        store.read_now(lambda c: outbox.load(c, "a-none"))


DISPATCHER = racer("""
for action_id in sys.argv[3:]:
    if store.write_now(lambda tx: outbox.dispatch(tx, action_id, sys.argv[1])) is not None:
        print(action_id)
""")


def test_racing_processes_dispatch_each_action_once(store: Store) -> None:
    queued = [store.write_now(lambda tx: brought_to(tx, "queued")) for _ in range(15)]
    told = race(DISPATCHER, 2, store.path, *queued)
    assert sorted(line for out in told for line in out.split()) == sorted(queued)
    assert store.read_now(verify_chain.verify).ok
