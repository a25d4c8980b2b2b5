"""What the work queue costs at 10,000 tasks: taking a batch, and keeping the queue as tasks change."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from statistics import median

from measure import Row, at, row

from cockpit.backlog import service
from cockpit.backlog.import_export import import_backlog
from cockpit.store.backlog import queue_scope, tasks, work_queue
from cockpit.store.backlog.queue_scope import Scope
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

TASKS = 10_000
READS = 400
CHANGES = 120
BY = "bench"


def rows() -> list[Row]:
    """The table of this bench."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(Path(folder) / "queue.db") as store,
    ):
        began = time.perf_counter()
        store.write_now(_fill)
        filled = time.perf_counter() - began
        ready = store.read_now(work_queue.count_ready)
        batches = [_timed(lambda: store.read_now(_batch)) for _ in range(READS)]
        counts = [_timed(lambda: store.read_now(work_queue.count_ready)) for _ in range(READS)]
        scoped = {
            scope: [
                _timed(
                    lambda scope=scope: store.read_now(
                        lambda found: queue_scope.next_batch(found, scope, 4)
                    )
                )
                for _ in range(READS)
            ]  # type: ignore[misc]
            for scope in (Scope(), Scope("epic", "E-7"), Scope("story", "S-100"))
        }
        told = [
            row("tasks", store.read_now(tasks.count), ""),
            row("of them ready", ready, ""),
            row("import of all, the queue made once", filled, "s"),
            row("get_next_batch, median", 1000 * median(batches), "ms", most=2.0),
            row("get_next_batch, p95", 1000 * at(0.95, batches), "ms", most=2.0),
            row("get_ready_count, median", 1000 * median(counts), "ms"),
            *(
                row(
                    f"a chain's next batch, scope {scope.kind}, median",
                    1000 * median(took),
                    "ms",
                    most=2.0,
                )
                for scope, took in scoped.items()
            ),
        ]
        return told + _changes(store)


def _changes(store: Store) -> list[Row]:
    """Changes as they come: each is a durable transaction that brings the queue up to date."""
    pick = random.Random(4)  # the same tasks in every run
    status = {"done": "a status change to done", "in_progress": "a status change to in_progress"}
    told = []
    for name, words in (*status.items(), ("create", "a new task"), ("depend", "a new dependency")):
        took = []
        for _ in range(CHANGES):
            one, other = sorted(pick.sample(range(1, TASKS), 2))

            def step(tx: Tx, one: int = one, other: int = other, name: str = name) -> None:
                if name == "create":
                    service.create_task(tx, "Another task", files=[f"src/{one}.py"], by=BY)
                elif name == "depend":
                    service.add_dependency(tx, f"T-{other}", f"T-{one}", by=BY)
                else:
                    service.set_status(tx, f"T-{one}", name, by=BY)

            took.append(_timed(lambda step=step: store.write_now(step)))  # type: ignore[misc]
        told.append(row(f"{words}, median", 1000 * median(took), "ms", most=50.0))
    urgent = iter(("P0", "P3", "P1"))
    took = [
        _timed(
            lambda: store.write_now(
                lambda tx: service.update_epic(tx, "E-1", {"priority": next(urgent)}, by=BY)
            )
        )
        for _ in range(3)
    ]
    return [*told, row("an epic's priority (500 tasks)", 1000 * median(took), "ms")]


def _fill(tx: Tx) -> None:
    """Twenty epics, stories of eight tasks in which some wait for the one before, shared files."""
    pick = random.Random(42)
    lines: list[dict[str, object]] = []
    for epic in range(1, 21):
        lines.append(
            {"kind": "epic", "id": f"E-{epic}", "title": "Epic", "priority": f"P{epic % 4}"}
        )
    for story in range(1, TASKS // 8 + 1):
        lines.append(
            {"kind": "story", "id": f"S-{story}", "epic": f"E-{story % 20 + 1}", "title": "Story"}
        )
    for number in range(1, TASKS + 1):
        lines.append(
            {
                "kind": "task",
                "id": f"T-{number}",
                "story": f"S-{(number - 1) // 8 + 1}",
                "title": f"Task {number}",
                "files": [f"src/{pick.randrange(400)}.py", f"lib/{pick.randrange(400)}/x.py"],
            }
        )
    for number in range(2, TASKS + 1):
        if number % 8 != 1 and pick.random() < 0.6:
            lines.append(
                {"kind": "dependency", "task": f"T-{number}", "depends_on": f"T-{number - 1}"}
            )
        if number > 200 and pick.random() < 0.1:
            other = number - pick.randrange(20, 200)
            lines.append({"kind": "dependency", "task": f"T-{number}", "depends_on": f"T-{other}"})
    import_backlog(tx, enumerate(lines, start=1), by=BY)


def _batch(connection: object) -> list[work_queue.Queued]:
    return work_queue.next_batch(connection, 3)  # type: ignore[arg-type]


def _timed(work: object) -> float:
    began = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - began
