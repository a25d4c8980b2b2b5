"""What is approved is what runs: a proposal or an action that is edited after it was shown is refused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from state_for_tests import put_store

from cockpit.access.principals import PERSON, agent
from cockpit.act.dispatch_actions import Dispatcher
from cockpit.act.workspace import open_workspace
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.core.clock import CountingIds, FixedClock
from cockpit.core.errors import AlreadyDecided, Altered, Stale
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.decisions.propose_profile_change import propose_profile_change
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.context import profiles
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests, outbox, proposals, sessions, waves
from cockpit.store.sessions.outbox import OutboxAction
from cockpit.store.sessions.proposals import Proposal

pytestmark = pytest.mark.slow

PAYLOAD = {"argv": ["true"], "cwd": "", "timeout_s": 5, "sandboxed": False}
EVIL = {"argv": ["sh", "-c", "touch stolen"], "cwd": "", "timeout_s": 5, "sandboxed": False}
BODY = {"type": "run", "summary": "run true", "diffs": [], "payload": PAYLOAD, "key": "k-1"}


class World:
    """One store, opened anew for each step, and edited in between."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = RuntimeSettings(user_dir=folder / "user")
        self.session_id = self.wave_id = ""

    def write(self, step: Callable[[Tx], Any]) -> Any:
        with self.open() as store:
            return store.write_now(step)

    def open(self) -> Store:
        return Store.open(put_store(self.folder / "cockpit.db"), FixedClock(), CountingIds())

    def edit(self, sql: str, *values: object) -> None:
        """Do what anybody with the file can do."""
        with closing(sqlite3.connect(self.folder / "cockpit.db")) as connection:
            triggers = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type='trigger' AND tbl_name='proposals'"
            ).fetchall()
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            done = connection.execute(sql, values)
            for _, statement in triggers:
                connection.execute(statement)
            connection.commit()
        assert done.rowcount == 1

    def begin(self, tx: Tx) -> None:
        session = sessions.create(
            tx, task_type="implement", title="t", words="w", target={}, model="offline",
            policy="ask", interactive=True, root=self.folder, rev=None, profile_id="default",
            limits={}, project="p", branch="main",
        )  # fmt: skip
        wave = waves.create(tx, session_id=session.session_id, trace_id=session.trace_id)
        self.session_id, self.wave_id = session.session_id, wave.wave_id

    def propose(self, tx: Tx, **changes: Any) -> Proposal:
        self.begin(tx)
        words: dict[str, Any] = {
            "proposal_id": "p-1", "kind": "action", "session_id": self.session_id,
            "wave_id": self.wave_id, "title": "run true", "body": BODY, "risk": "low", **changes,
        }  # fmt: skip
        return proposals.create(tx, **words)

    def decide(
        self, tx: Tx, decision: Any = "approved", by: Any = PERSON, shown_digest: str | None = None
    ) -> Any:
        return decide_proposal(tx, self.settings, "p-1", decision, by, shown_digest=shown_digest)

    def queue(self, tx: Tx) -> OutboxAction:
        planned = outbox.plan(
            tx, wave_id=self.wave_id, session_id=self.session_id, position=0, key="k-1",
            action_type="run", title="run true", payload=PAYLOAD,
        )  # fmt: skip
        return outbox.enqueue(tx, planned.action_id, proposal_id="p-1", payload=PAYLOAD)

    def queued(self) -> OutboxAction:
        self.write(self.propose)
        self.write(self.decide)
        action: OutboxAction = self.write(self.queue)
        return action


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


EVIL_BODY = canonical_json({**BODY, "payload": EVIL})


def test_an_edited_proposal_is_not_approved(world: World) -> None:
    world.write(world.propose)
    world.edit("UPDATE proposals SET body_json=?", EVIL_BODY)
    with pytest.raises(Altered):
        world.write(world.decide)
    # What does nothing may still be decided, so that it goes away.
    assert world.write(lambda tx: world.decide(tx, "rejected")).status == "rejected"


def test_what_is_approved_is_what_was_drawn(world: World) -> None:
    drawn = world.write(world.propose).shown_digest
    evil = digest({**BODY, "payload": EVIL})
    world.edit("UPDATE proposals SET body_json=?, shown_digest=?", EVIL_BODY, evil)
    with pytest.raises(Stale):
        world.write(lambda tx: world.decide(tx, shown_digest=drawn))


def test_what_was_not_approved_is_not_queued(world: World) -> None:
    world.write(world.propose)
    with pytest.raises(Altered, match="is pending"):
        world.write(world.queue)


OUTBOX_EDITS = {
    "payload": ("UPDATE outbox_actions SET payload_json=?", canonical_json(EVIL)),
    "key": ("UPDATE outbox_actions SET idempotency_key='k-2'",),
    "payload of the proposal": ("UPDATE proposals SET body_json=?", EVIL_BODY),
}


@pytest.mark.parametrize("edit", OUTBOX_EDITS)
async def test_an_edited_action_is_not_run(world: World, edit: str) -> None:
    action = world.queued()
    world.edit(*OUTBOX_EDITS[edit])
    with world.open() as store:
        (ended,) = await Dispatcher(store, await open_workspace(world.folder)).run_wave(
            world.wave_id
        )
        assert (ended.action_id, ended.phase) == (action.action_id, "failed_terminal")
        assert "changed in the store" in ended.last_error
        assert not store.read_now(lambda c: outbox.select_receipts(c, action.action_id))
    assert not (world.folder / "stolen").exists()


async def test_recovery_does_not_even_probe_an_edited_action(world: World) -> None:
    action = world.queued()
    world.write(lambda tx: outbox.dispatch(tx, action.action_id, "999999/1"))
    world.edit(*OUTBOX_EDITS["payload"])
    probed: list[object] = []

    class Spy:
        ends_when_cancelled = False

        async def probe(self, *arguments: object) -> str:
            probed.append(arguments)
            return "not_done"

    with world.open() as store:
        dispatcher = Dispatcher(store, await open_workspace(world.folder), {"run": Spy()})  # type: ignore[dict-item]
        (ended,) = await dispatcher.recover(world.session_id)
    assert (ended.phase, probed) == ("failed_terminal", [])


ITEMS = [
    {"item": "file:a.py", "level": "full", "tokens": 1, "band": "situational", "refused": "", "note": ""}
]  # fmt: skip


def ask_for_context(world: World, tx: Tx) -> None:
    world.propose(tx, kind="context", body={"items": ITEMS, "total_tokens": 1})
    context_requests.create(
        tx, request_id="q-1", session_id=world.session_id, wave_id=world.wave_id, call_id="c",
        purpose="p", question="q", items=ITEMS, proposal_id="p-1",
    )  # fmt: skip


@pytest.mark.parametrize("items", [["file:.env"], ["file:a.py", "file:b.py"]])
def test_a_grant_that_was_widened_reads_nothing(world: World, items: list[str]) -> None:
    def ask(tx: Tx) -> None:
        ask_for_context(world, tx)
        world.decide(tx)
        context_requests.apply_decision(
            tx, "q-1", "approved", approved=["file:a.py"], decided_by="person"
        )

    world.write(ask)
    with world.open() as store:
        granted = store.read_now(lambda c: context_requests.select_granted(c, world.session_id))
        assert [request.approved for request in granted] == [("file:a.py",)]
    world.edit("UPDATE context_requests SET approved_json=?", json.dumps(items))
    with world.open() as store, pytest.raises(Altered, match="Nothing was read"):
        store.read_now(lambda c: context_requests.select_granted(c, world.session_id))


CHANGE = {
    "base_profile_version": 1, "effective_waves": 2, "reason": "r",
    "rules": [{"rule_id": "search", "priority_weight": 1.5}],
}  # fmt: skip


def ask_for_profile(world: World, **changes: int) -> None:
    words = json.dumps({**CHANGE, **changes})

    def ask(tx: Tx) -> Any:
        profiles.ensure_default(tx, 150_000)
        who = agent("s-1")
        return propose_profile_change(
            tx, world.settings, words, who, profile_id="default", proposal_id="p-1"
        )

    assert world.write(ask).status == "pending"


PROFILE_EDITS = {
    "change": (
        "UPDATE proposals SET body_json=json_set(body_json, '$.payload.effective_waves', 0,"
        " '$.effective_waves', 0)",
    ),
    "who asked": ("UPDATE proposals SET body_json=json_set(body_json, '$.requested_by', 'main')",),
}


@pytest.mark.parametrize("edit", PROFILE_EDITS)
def test_an_edited_profile_change_is_not_applied(world: World, edit: str) -> None:
    ask_for_profile(world)
    world.edit(*PROFILE_EDITS[edit])
    with suppress(Altered):  # else the guard refuses it
        world.write(world.decide)
    assert world.write(lambda tx: profiles.select_current(tx.connection))[0].version == 1


def test_a_profile_change_approved_in_the_table_is_never_applied(world: World) -> None:
    ask_for_profile(world, effective_waves=3)
    world.edit("UPDATE proposals SET status='approved', decided_by='person', decided_at='2026'")
    assert world.write(lambda tx: profiles.select_current(tx.connection))[0].version == 1
    with pytest.raises(AlreadyDecided):
        world.write(world.decide)
