"""A plan is proposed, edited, decided once, and taken in whole or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from backlog.work_world import tables_of_the_queue
from msgspec.structs import replace

from cockpit.access.principals import PERSON, Caller, agent
from cockpit.access.token_scopes import NotAllowed
from cockpit.backlog import service
from cockpit.backlog.planning.backlog_plan_target import APPROVAL_EFFECTS
from cockpit.backlog.planning.plan import PlanInvalid
from cockpit.backlog.planning.propose_plan import plan_result, propose
from cockpit.core.clock import CountingIds, FixedClock
from cockpit.core.errors import Stale
from cockpit.loop.decisions.approval_effects import NoApprovalEffect
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.backlog import dependencies, tasks, work_queue
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal

TEXT = """# Accounts [P1]

## Tokens

- [x] Seed the jitter [chore]
- [ ] Refuse expired ones in `src/auth.py` [bug, 3h] (after #1)
- [ ] Refresh (after #2)
"""
SETTINGS = RuntimeSettings(approval_effects=APPROVAL_EFFECTS, environment={})


def proposed(store: Store, text: str = TEXT, **given: object) -> Proposal:
    return store.write_now(lambda tx: propose(tx, text, PERSON, **given))  # type: ignore[arg-type]  # keywords of the test's


def approve(store: Store, made: Proposal, **given: object) -> None:
    store.write_now(
        lambda tx: decide_proposal(
            tx,
            SETTINGS,
            made.proposal_id,
            "approved",
            PERSON,
            shown_digest=made.shown_digest,
            **given,
        )  # type: ignore[arg-type]  # keywords of the test's
    )


def counted(store: Store) -> tuple[int, int, int, int]:
    return store.read_now(
        lambda c: tuple(
            c.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("epics", "stories", "tasks", "task_dependencies")
        )
    )  # type: ignore[return-value]  # four tables, four numbers


def test_approving_takes_all_of_it_in(store: Store) -> None:
    made = proposed(store)
    approve(store, made)
    became = store.read_now(lambda c: plan_result(c, made.proposal_id))
    assert became is not None
    assert (became.epics, became.stories, became.tasks) == (
        ("E-1",),
        ("S-1",),
        ("T-1", "T-2", "T-3"),
    )
    assert became.dependencies == 2
    epic = store.read_now(lambda c: EPICS.load(c, "E-1"))
    assert (epic.priority, epic.source) == ("P1", f"plan {made.proposal_id}")
    assert store.read_now(lambda c: STORIES.load(c, "S-1")).epic_id == "E-1"
    one, two, three = (store.read_now(lambda c, n=n: tasks.load(c, f"T-{n}")) for n in (1, 2, 3))
    assert (one.status, two.status, two.task_type) == ("done", "todo", "bug")
    assert (two.estimate_hours, two.files, two.priority) == (3.0, ("src/auth.py",), "P1")
    waits = store.read_now(lambda c: dependencies.select_prerequisites(c, three.task_id))
    assert [wait.depends_on_task_id for wait in waits] == ["T-2"]
    assert store.read_now(lambda c: work_queue.count_ready(c)) == 1
    assert store.read_now(verify_chain.verify).ok


def test_an_agent_proposes_and_does_not_approve(store: Store) -> None:
    made = store.write_now(
        lambda tx: propose(tx, TEXT, agent("s-1"), settings=replace(SETTINGS, policy="all"))
    )
    assert made.status == "pending"
    assert counted(store) == (0, 0, 0, 0)
    with pytest.raises(NotAllowed):
        store.write_now(lambda tx: propose(tx, TEXT, Caller("ci", frozenset())))


def test_what_is_read_otherwise_than_it_was_shown_is_not_taken_in(store: Store) -> None:
    made = proposed(store)
    forged = {**made.body, "payload": {"markdown": "- [ ] Another thing\n"}}
    other = store.write_now(
        lambda tx: proposals.create(
            tx, proposal_id="p-forged", kind="action", session_id="", wave_id="",
            title=made.title, body=forged, risk="low",
        )
    )  # fmt: skip
    with pytest.raises(Stale, match="otherwise than it was shown"):
        approve(store, other)
    assert counted(store) == (0, 0, 0, 0)
    assert store.read_now(lambda c: proposals.load(c, "p-forged")).status == "pending"


def test_a_cockpit_that_does_not_know_plans_does_not_approve_them(store: Store) -> None:
    made = proposed(store)
    with pytest.raises(NoApprovalEffect, match="backlog_plan"):
        store.write_now(
            lambda tx: decide_proposal(tx, RuntimeSettings(), made.proposal_id, "approved", PERSON)
        )
    assert store.read_now(lambda c: proposals.load(c, made.proposal_id)).status == "pending"


def test_a_secret_in_a_plan_is_nowhere_in_the_file(tmp_path: Path) -> None:
    canary = "ghp_" + "A1b2C3d4E5" * 3 + "A1b2C3"
    with Store.open(tmp_path / "cockpit.db", FixedClock(), CountingIds()) as store:
        made = proposed(store, f"# E\n\n- [ ] Call it with {canary}\n  token = {canary}\n")
        approve(store, made)
        assert counted(store) == (1, 1, 1, 0)
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert canary.encode() not in held


def test_nothing_is_in_the_backlog_before_it_is_approved(store: Store) -> None:
    made = proposed(store)
    assert (made.kind, made.session_id, made.status, made.risk) == ("action", "", "pending", "low")
    assert made.title == "Plan: Accounts (1 epic, 1 story, 3 tasks)"
    assert counted(store) == (0, 0, 0, 0)
    assert store.read_now(lambda c: plan_result(c, made.proposal_id)) is None
    assert proposed(store).proposal_id == made.proposal_id, "the same text is one proposal"
    with pytest.raises(PlanInvalid, match="Line 1: #1 waits for T-9"):
        proposed(store, "- [ ] A (after T-9)\n")
    store.write_now(
        lambda tx: decide_proposal(
            tx, SETTINGS, made.proposal_id, "rejected", PERSON, reason="later"
        )
    )
    again = proposed(store, settings=replace(SETTINGS, policy="all"))
    assert again.proposal_id != made.proposal_id
    assert (again.status, again.decided_by) == ("approved", "policy:all")
    assert counted(store) == (1, 1, 3, 2)


def test_the_queue_is_as_if_it_were_made_anew(store: Store) -> None:
    store.write_now(lambda tx: service.create_task(tx, "Known", files=("src/a.py",), by="person"))
    approve(store, proposed(store, TEXT + "- [ ] More in `src/a.py` (after T-1)\n- [ ] Free\n"))
    made = store.read_now(tables_of_the_queue)
    assert len(made) == 5
    store.write_now(lambda tx: work_queue.rebuild(tx))
    assert store.read_now(tables_of_the_queue) == made


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["INSERT INTO tasks", "COMMIT"])
def test_a_kill_while_a_plan_enters_the_backlog_leaves_it_waiting(
    tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "cockpit.db"
    with Store.open(path) as store:
        made = proposed(store)
    ran = subprocess.run([sys.executable, "-c", DIE, str(path), made.proposal_id, statement])
    assert ran.returncode == -signal.SIGKILL
    with Store.open(path) as store:
        assert counted(store) == (0, 0, 0, 0)
        assert store.read_now(lambda c: proposals.load(c, made.proposal_id)).status == "pending"
        approve(store, made)
        assert counted(store) == (1, 1, 3, 2)


DIE = """
import os, sys
from pathlib import Path
from cockpit.access.principals import PERSON
from cockpit.backlog.planning.backlog_plan_target import APPROVAL_EFFECTS
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store

path, identity, statement = sys.argv[1:]
seen = []

def look(sql):
    seen.extend([sql] * sql.lstrip().startswith(statement))
    if len(seen) == (2 if statement.startswith("INSERT") else 1):
        os.kill(os.getpid(), 9)

def approve(tx):
    tx.connection.set_trace_callback(look)
    settings = RuntimeSettings(approval_effects=APPROVAL_EFFECTS, environment={})
    decide_proposal(tx, settings, identity, "approved", PERSON)

with Store.open(Path(path)) as store:
    store.write_now(approve)
"""
