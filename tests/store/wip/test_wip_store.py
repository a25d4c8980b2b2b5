"""Work in progress in the store: what is journalled, what is masked, and what writers lose: nothing."""

from __future__ import annotations

import json
import sqlite3

import pytest
from store.store_world import race
from store.wip.wip_world import CANARY

from cockpit.core.errors import NotFound
from cockpit.store.backlog import tasks, wip
from cockpit.store.backlog.wip import WipInvalid

pytestmark = pytest.mark.slow

WRITES = 1_000
EACH = 10
"""Turns from one entry of a list to the next: each update reads and writes all that there is."""
UPDATES = f"""
import json
import sys
from pathlib import Path
from cockpit.store.backlog import tasks, wip
from cockpit.store.db.database import Store
number, path = sys.argv[1:]
with Store.open(Path(path), busy_timeout_ms=60_000) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range({WRITES}):
        name = f"{{number}}-{{turn}}"
        patch = {{"phase": name, "test_results": {{number: turn}}}}
        if turn % {EACH} == 0:
            patch |= {{"decisions": [name], "files_modified": [f"src/{{name}}.py"]}}
        def update(tx):
            (held,) = tx.connection.execute(
                "SELECT work_in_progress FROM tasks WHERE task_id='T-1'"
            ).fetchone()
            last = json.loads(held or "{{}}").get("test_results", {{}}).get(number, -1)
            assert last == turn - 1, f"{{name}}: the other process undid an update"
            wip.update(tx, "T-1", patch, by="agent")
        store.write_now(update)
        if turn % 250 == 125:
            from cockpit.backlog import service
            change = {{"context_summary": name}}
            store.write_now(lambda tx: service.update_task(tx, "T-1", change, by="agent"))
            store.write_now(lambda tx: service.create_task(tx, name, by="agent"))
"""


def test_an_update_is_merged_stamped_and_journalled_with_all_that_a_screen_draws(world):
    world.update("T-1", phase="coding", files_modified=["b.py"], decisions=["JWT"])
    after = world.update("T-1", phase="testing", files_modified=["a.py"], next_step="expiry")
    assert after == {
        "phase": "testing",
        "files_modified": ["a.py", "b.py"],
        "decisions": [{"decision": "JWT"}],
        "next_step": "expiry",
    }
    task = world.task("T-1")
    assert (task.wip, world.task("T-2").wip) == (after, None)
    assert task.wip_updated_at is not None
    first, second = world.rows("wip.updated")
    assert (first.actor, second.raw_detail()["task_id"]) == ("agent/s-1", "T-1")
    assert second.raw_detail()["patch"] == {
        "phase": "testing",
        "files_modified": ["a.py"],
        "next_step": "expiry",
    }
    assert (second.raw_detail()["phase"], second.raw_detail()["next_step"]) == ("testing", "expiry")
    assert (second.raw_detail()["files"], second.raw_detail()["files_count"]) == (
        ["a.py", "b.py"],
        2,
    )


def test_what_changes_nothing_is_not_told(world):
    world.update("t-1", phase="testing", test_results={"passed": 3})
    stamped = world.task("T-1").wip_updated_at
    world.update("1", phase="testing", test_results={"passed": 3, "failed": None}, context=None)
    world.update("T-1")
    assert len(world.rows("wip.updated")) == 1
    assert world.task("T-1").wip_updated_at == stamped


def test_a_task_that_there_is_not_and_a_patch_that_is_none_leave_nothing_behind(world):
    with pytest.raises(NotFound, match="T-9"):
        world.update("T-9", phase="x")
    with pytest.raises(NotFound, match="T-9"):
        world.store.read_now(lambda connection: tasks.load(connection, "T-9").wip)
    with pytest.raises(WipInvalid):
        world.update("T-1", stage="x")
    assert world.store.read_now(lambda connection: tasks.load(connection, "T-1").wip) is None
    assert world.rows("wip.updated") == []


def test_no_secret_reaches_the_file(world):
    world.update(
        "T-1",
        context=f"the token is {CANARY}",
        decisions=[{"decision": CANARY, "reason": f"Bearer {CANARY}"}],
        errors=[{"message": f"curl -H 'token: {CANARY}'", "password": "hunter2hunter2xyz9"}],
        test_results={"failing_test": CANARY},
        files_modified=[f"{CANARY}.txt"],
        next_step="a\ud800b",
    )
    world.store.close()
    for file in world.store.path.parent.iterdir():
        if file.is_file():
            assert CANARY.encode() not in file.read_bytes()
            assert b"hunter2" not in file.read_bytes()


def test_files_that_two_tasks_touch_keep_them_apart_in_the_queue(world):
    def groups() -> dict[str, int]:
        found = world.store.read_now(
            lambda connection: connection.execute(
                "SELECT task_id, batch_group FROM work_queue"
            ).fetchall()
        )
        return dict(found)

    assert groups() == {"T-1": 1, "T-2": 1}
    world.update("T-1", files_modified=["src/auth.py"])
    world.update("T-2", files_modified=["src/auth.py"])
    assert sorted(groups().values()) == [1, 2]


def test_an_update_reads_and_writes_its_own_row_alone(world):
    """Whatever else there is, the work of an update without new files is the same."""

    def steps() -> list[str]:
        told: list[str] = []

        def step(tx):
            tx.connection.set_trace_callback(told.append)
            wip.update(tx, "T-1", {"phase": f"{len(told)}{world.store.clock.now()}"}, by="agent")
            tx.connection.set_trace_callback(None)

        world.store.write_now(step)
        # A trigger that seals what a statement wrote shows as that statement again.
        return [line for line in dict.fromkeys(told) if "tasks" in line]

    steps()  # the first update of a connection makes the table's triggers
    before = steps()
    assert [line.split()[0] for line in before] == ["SELECT", "UPDATE"]
    plan = world.store.read_now(
        lambda connection: connection.execute(
            "EXPLAIN QUERY PLAN SELECT work_in_progress FROM tasks WHERE task_id='T-1'"
        ).fetchall()
    )
    assert all("SEARCH" in row[3] for row in plan)


def test_two_processes_update_one_task_a_thousand_times_each_and_lose_nothing(world):
    world.store.close()
    race(UPDATES, 2, world.store.path)
    connection = sqlite3.connect(world.store.path)
    task, summary = connection.execute(
        "SELECT work_in_progress, context_summary FROM tasks WHERE task_id='T-1'"
    ).fetchone()
    listed = {f"{number}-{turn}" for number in (0, 1) for turn in range(0, WRITES, EACH)}
    known = json.loads(task)
    assert {entry["decision"] for entry in known["decisions"]} == listed
    assert len(known["decisions"]) == len(listed)
    assert known["files_modified"] == sorted(f"src/{name}.py" for name in listed)
    assert known["test_results"] == {"0": WRITES - 1, "1": WRITES - 1}
    # What was written in between, to this row and to others, is there as well.
    between = {f"{number}-{turn}" for number in (0, 1) for turn in range(125, WRITES, 250)}
    assert summary in between
    titles = {title for (title,) in connection.execute("SELECT title FROM tasks WHERE number > 2")}
    assert titles == between
    (rows,) = connection.execute(
        "SELECT count(*) FROM journal WHERE action='wip.updated'"
    ).fetchone()
    assert rows == 2 * WRITES
    connection.close()
