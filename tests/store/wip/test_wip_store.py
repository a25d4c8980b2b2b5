"""Work in progress in the store: what is journalled, what is masked, and what writers lose: nothing."""

from __future__ import annotations

import pytest
from examples import examples
from store.store_world import open_store, race
from store.wip.wip_world import CANARY

from cockpit.core.errors import NotFound
from cockpit.store.backlog import tasks
from cockpit.store.backlog.wip import WipInvalid
from cockpit.store.journal import verify_chain

pytestmark = pytest.mark.slow

WRITES = examples(12)
UPDATES = f"""
import sys
from pathlib import Path
from cockpit.backlog import service
from cockpit.store.backlog import wip
from cockpit.store.db.database import Store
number, path = sys.argv[1:]
with Store.open(Path(path), busy_timeout_ms=60_000) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range({WRITES}):
        name = f"{{number}}-{{turn}}"
        patch = {{"test_results": {{number: turn}}, "decisions": [name], "files_modified": [name]}}
        store.write_now(lambda tx: wip.update(tx, "T-1", patch, by="agent"))
        store.write_now(lambda tx: service.create_task(tx, name, by="agent"))
"""


def test_an_update_is_merged_stamped_and_journalled_with_all_that_a_screen_draws(world):
    world.update("T-1", phase="coding", files_modified=["b.py"], decisions=["JWT"])
    after = world.update("T-1", phase="testing", files_modified=["a.py"], next_step="expiry")
    assert after == {
        "phase": "testing", "files_modified": ["a.py", "b.py"], "next_step": "expiry",
        "decisions": [{"decision": "JWT"}],
    }  # fmt: skip
    task = world.task("T-1")
    assert (task.wip, world.task("T-2").wip) == (after, None)
    assert task.wip_updated_at is not None
    first, second = world.rows("wip.updated")
    assert (first.actor, second.raw_detail()["task_id"]) == ("agent/s-1", "T-1")
    detail = second.raw_detail()
    patch = {"phase": "testing", "files_modified": ["a.py"], "next_step": "expiry"}
    assert detail["patch"] == patch
    assert (detail["phase"], detail["next_step"]) == ("testing", "expiry")
    assert (detail["files"], detail["files_count"]) == (["a.py", "b.py"], 2)


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


@pytest.mark.search
def test_two_processes_update_one_task_and_lose_nothing(world):
    world.store.close()
    race(UPDATES, 2, world.store.path)
    with open_store(world.store.path.parent) as store:
        known = store.read_now(lambda connection: tasks.load(connection, "T-1").wip)
        names = {f"{number}-{turn}" for number in (0, 1) for turn in range(WRITES)}
        newest = {f"{number}-{WRITES - 1}" for number in (0, 1)}
        assert newest <= {entry["decision"] for entry in known["decisions"]} <= names
        assert known["files_modified"] == sorted(names)
        assert known["test_results"] == {"0": WRITES - 1, "1": WRITES - 1}
        titles = "SELECT title FROM tasks WHERE number > 2"
        rows = store.read_now(lambda connection: connection.execute(titles).fetchall())
        assert {title for (title,) in rows} == names
        assert store.read_now(verify_chain.verify).ok
