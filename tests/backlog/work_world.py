"""A backlog in a real store, and the queue worked out anew from what is in its tables."""

from __future__ import annotations

import json
import posixpath
import re
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from state_for_tests import put_store

from cockpit.backlog import service
from cockpit.backlog.story_completion import Boundaries
from cockpit.store.backlog import tasks, work_queue
from cockpit.store.backlog.tasks import Task
from cockpit.store.backlog.work_queue import Queued
from cockpit.store.db.database import Store

BY = "person"
WINDOW = 500


@dataclass
class Backlog:
    """The services, each in a transaction of its own."""

    store: Store

    def do(self, step: Callable[..., Any], *given: Any, **named: Any) -> Any:
        return self.store.write_now(lambda tx: step(tx, *given, by=BY, **named))

    def epic(self, title: str = "An epic", **fields: Any) -> str:
        return str(self.do(service.create_epic, title, **fields).epic_id)

    def story(self, epic_id: str | None = None, title: str = "A story") -> str:
        return str(self.do(service.create_story, title, epic_id=epic_id).story_id)

    def task(self, story_id: str | None = None, title: str = "A task", **fields: Any) -> str:
        made = self.do(service.create_task, title, story_id=story_id, **fields)
        return str(made.task_id)

    def stand(self, task_id: str, status: str, notes: str | None = None) -> Boundaries:
        reached: Boundaries = self.do(service.set_status, task_id, status, notes)
        return reached

    def depend(self, task_id: str, other: str, kind: str = "blocks") -> None:
        self.do(service.add_dependency, task_id, other, kind)

    def read(self, look: Callable[[sqlite3.Connection], Any]) -> Any:
        return self.store.read_now(look)

    def load(self, task_id: str) -> Task:
        found: Task = self.read(lambda connection: tasks.load(connection, task_id))
        return found

    def queue(self) -> dict[str, Queued]:
        rows = self.read(lambda connection: work_queue.select(connection, limit=-1))
        return {row.task_id: row for row in rows}

    def batch(self, limit: int = 50) -> list[str]:
        found = self.read(lambda connection: work_queue.next_batch(connection, limit))
        return [row.task_id for row in found]

    def status(self, table: str, identity: str) -> str:
        key = {"epics": "epic_id", "stories": "story_id", "tasks": "task_id"}[table]
        (found,) = self.read(
            lambda connection: connection.execute(
                f"SELECT status FROM {table} WHERE {key}=?", (identity,)
            ).fetchone()
        )
        return str(found)

    def actions(self) -> list[str]:
        rows = self.read(
            lambda connection: connection.execute("SELECT action FROM journal").fetchall()
        )
        return [action for (action,) in rows]

    def details(self, action: str) -> list[dict[str, Any]]:
        rows = self.read(
            lambda connection: connection.execute(
                "SELECT detail_json FROM journal WHERE action=? ORDER BY seq", (action,)
            ).fetchall()
        )
        return [json.loads(detail) for (detail,) in rows]


def opened(folder: Path) -> Backlog:
    return Backlog(Store.open(put_store(folder / "cockpit.db")))


def tables_of_the_queue(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """What is in the queue, but for when it was worked out."""
    return connection.execute(
        "SELECT task_id, number, priority_score, unblocks, batch_group, blocked_by, claims, ready,"
        " running FROM work_queue ORDER BY number"
    ).fetchall()


def worked_out_anew(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """The queue as its documentation says, by the plainest means: sets, pairs and a path search."""
    settled = ("done", "archived")
    found = {
        row[0]: row
        for row in connection.execute(
            "SELECT task_id, t.number, t.status, coalesce(priority, 'P2'), packages_json, files_json,"
            " work_in_progress, files_changed FROM tasks t LEFT JOIN stories s USING(story_id)"
            " LEFT JOIN epics USING(epic_id) LEFT JOIN task_handoffs USING(task_id)"
        )
    }
    waits: dict[str, set[str]] = {task_id: set() for task_id in found}
    for task_id, other in connection.execute(
        "SELECT task_id, depends_on_task_id FROM task_dependencies"
        " WHERE dependency_type IN ('blocks','requires')"
    ):
        waits[task_id].add(other)

    def is_open(task_id: str) -> bool:
        return found[task_id][2] not in settled

    everything = {task_id: _before(waits, task_id, lambda _: True) for task_id in found}
    behind = {task_id: _before(waits, task_id, is_open) for task_id in found if is_open(task_id)}
    rows = {}
    for task_id, (_, number, status, priority, *paths) in found.items():
        if not is_open(task_id):
            continue
        unblocks = min(99, sum(task_id in before for before in behind.values()))
        blocked_by = sorted(
            (o for o in waits[task_id] if is_open(o)), key=lambda o: int(o.partition("-")[2])
        )
        waiting = [other for other, before in behind.items() if task_id in before]
        priority = min([priority, *(found[other][3] for other in waiting)])
        rows[task_id] = {
            "number": number,
            "score": (3 - int(priority[1])) * 10**9 + unblocks * 10**7 + 9_999_999 - number,
            "unblocks": unblocks,
            "blocked_by": blocked_by,
            "claims": _claims(paths),
            "ready": status == "todo" and not blocked_by,
            "running": status in ("in_progress", "review"),
        }
    order = sorted(
        (task_id for task_id in rows if rows[task_id]["ready"]),
        key=lambda one: (-rows[one]["score"], rows[one]["number"]),
    )
    running = [task_id for task_id in rows if rows[task_id]["running"]]
    groups: dict[str, int] = {}
    for task_id in order[:WINDOW]:
        group = 1
        while any(
            _together_not(rows, everything, task_id, other)
            for other, at in groups.items()
            if at == group
        ) or (
            group == 1
            and any(
                _collide(rows[task_id]["claims"], rows[other]["claims"])
                or other in everything[task_id]
                for other in running
            )
        ):
            group += 1
        groups[task_id] = group
    return [
        (
            task_id,
            row["number"],
            row["score"],
            row["unblocks"],
            groups.get(task_id, 0),
            json.dumps(row["blocked_by"], separators=(",", ":")),
            json.dumps(row["claims"], separators=(",", ":"), ensure_ascii=False),
            int(row["ready"]),
            int(row["running"]),
        )
        for task_id, row in sorted(rows.items(), key=lambda one: one[1]["number"])
    ]


def _before(waits: dict[str, set[str]], start: str, counts: Callable[[str], bool]) -> set[str]:
    """What ``start`` waits for, directly or behind others, as far as these count."""
    seen: set[str] = set()
    edge = {other for other in waits[start] if counts(other)}
    while edge:
        seen |= edge
        edge = {o for one in edge for o in waits[one] if counts(o)} - seen
    return seen


def _together_not(
    rows: dict[str, Any], everything: dict[str, set[str]], one: str, other: str
) -> bool:
    return (
        _collide(rows[one]["claims"], rows[other]["claims"])
        or one in everything[other]
        or other in everything[one]
    )


def _collide(ours: Iterable[str], theirs: Iterable[str]) -> bool:
    return any(
        one == other
        or not one
        or not other
        or one.startswith(f"{other}/")
        or other.startswith(f"{one}/")
        for one in ours
        for other in theirs
    )


def _claims(paths: list[str | None]) -> list[str]:
    packages, files, progress, handed = paths
    named = [*json.loads(packages or "[]"), *json.loads(files or "[]"), *json.loads(handed or "[]")]
    named += json.loads(progress or "{}").get("files_modified", [])
    made = set()
    for name in named:
        wild = re.search(r"[*?\[{]", name)
        plain = name[: wild.start()].rpartition("/")[0] if wild else name
        sound = posixpath.normpath(plain) if plain else "."
        made.add("" if sound == "." else sound.lstrip("/"))
    return sorted(made)
