"""Two processes at one backlog: no id twice, nothing lost, one queue."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from examples import examples
from work_world import Backlog, tables_of_the_queue, worked_out_anew

pytestmark = pytest.mark.slow

_WRITER = """
import sys
from pathlib import Path
from cockpit.store.backlog import tasks
from cockpit.store.db.database import Store
from cockpit.backlog import service

folder, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with Store.open(folder / "cockpit.db") as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(rounds):
        made = store.write_now(
            lambda tx: service.create_task(tx, f"{name} {number}", story_id="S-1", by=name)
        )
        print(made.task_id, flush=True)
        store.write_now(lambda tx: service.set_status(tx, "T-1", "in_progress", name, by=name))
        store.write_now(lambda tx: service.set_status(tx, "T-1", "todo", by=name))
        store.write_now(lambda tx: service.set_status(tx, made.task_id, "done", by=name))
        if number:
            store.write_now(
                lambda tx: service.add_dependency(tx, made.task_id, "T-1", "blocks", by=name)
            )
"""
ROUNDS = examples(10)


@pytest.mark.search
def test_two_processes_write_tasks_and_statuses_at_once(work: Backlog, tmp_path: Path) -> None:
    story = work.story(work.epic())
    work.task(story, "Both change this one")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path), name, str(ROUNDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("left", "right")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    made = []
    for writer in writers:
        out, err = writer.communicate(timeout=240)
        assert writer.returncode == 0, err
        made += out.split()
    assert sorted(made, key=lambda one: int(one[2:])) == [
        f"T-{number}" for number in range(2, 2 * ROUNDS + 2)
    ]
    stored = work.read(
        lambda connection: connection.execute(
            "SELECT title, status FROM tasks WHERE task_id<>'T-1'"
        ).fetchall()
    )
    names = {f"{name} {number}" for name in ("left", "right") for number in range(ROUNDS)}
    assert {title for title, _ in stored} == names
    assert {status for _, status in stored} == {"done"}
    actions = work.actions()
    assert actions.count("task.changed") == 2 * ROUNDS + 1
    assert actions.count("task.dependency_changed") == 2 * (ROUNDS - 1)
    assert work.read(tables_of_the_queue) == work.read(worked_out_anew)
