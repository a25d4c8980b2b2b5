"""The backlog as JSON Lines: exported whole, imported with its ids, any number of times.

One object a line: ``kind`` is ``epic``, ``story``, ``task`` or ``dependency``. What a line leaves out
stays as it is, or at its default in something new. An import is one transaction: one bad line,
and nothing is imported.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.backlog import validation
from cockpit.backlog.service import EPIC_FIELDS
from cockpit.backlog.story_completion import (
    Boundaries,
    decay_handoffs,
    update_epic_status,
    update_story_status,
)
from cockpit.backlog.task_type_names import read_names_of_store
from cockpit.backlog.validation import BacklogInvalid
from cockpit.core.clock import parse_time
from cockpit.core.errors import CockpitError
from cockpit.store.backlog import dependencies, tasks, wip, work_queue
from cockpit.store.backlog.backlog_ids import (
    HIGHEST_NUMBER,
    TASK,
    Kind,
    id_number,
    read_id,
)
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES, Epic, Parents, Story
from cockpit.store.backlog.tasks import Task
from cockpit.store.db.transaction import Tx

P = TypeVar("P", Epic, Story)

MOST_LINES = 200_000
_TIMES = ("created_at", "started_at", "done_at")
_KEYS = {
    "epic": {"id", "source", *EPIC_FIELDS, "created_at", "done_at"},
    "story": {"id", "epic", "title", "description", "status", "created_at", "done_at"},
    "task": {"id", "story", "packages", "files", "wip", *tasks.PLAIN_FIELDS, *_TIMES},
    "dependency": {"task", "depends_on", "type"},
}


HIGHEST = HIGHEST_NUMBER // 10
"""The highest number that a file can give: far more can come after it than ever will."""


class ImportCounts(Struct):
    """How many lines an import created, changed or left unchanged."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0

    def count(self, *, new: bool, differs: bool) -> None:
        """Count one line."""
        self.created += new
        self.changed += not new and differs
        self.unchanged += not new and not differs


def export_backlog(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """Every line, in an order in which each names only what came before it."""
    for status in (None, "archived"):
        epics = EPICS.select(connection, status=status, limit=-1)
        yield from map(epic_line, sorted(epics, key=lambda epic: epic.number))
    for status in (None, "archived"):
        yield from map(story_line, STORIES.select(connection, status=status, limit=-1))
    for status in (None, "archived"):
        for task in tasks.select(connection, status=status, limit=-1):
            yield {
                "kind": "task",
                "id": task.task_id,
                "story": task.story_id,
                **_read_fields(task, (*tasks.PLAIN_FIELDS, *_TIMES)),
                "packages": list(task.packages),
                "files": list(task.files),
                "wip": None if task.wip is None else dict(task.wip),
            }
    yield from map(dependency_line, dependencies.select_all(connection))


def epic_line(epic: Epic) -> dict[str, Any]:
    """Return the line of an epic."""
    fields = _read_fields(epic, (*EPIC_FIELDS, "source", "created_at", "done_at"))
    return {"kind": "epic", "id": epic.epic_id, **fields}


def story_line(story: Story) -> dict[str, Any]:
    """Return the line of a story."""
    names = ("title", "description", "status", "created_at", "done_at")
    fields = _read_fields(story, names)
    return {"kind": "story", "id": story.story_id, "epic": story.epic_id, **fields}


def dependency_line(dependency: dependencies.Dependency) -> dict[str, Any]:
    """Return the line of a dependency."""
    return {
        "kind": "dependency",
        "task": dependency.task_id,
        "depends_on": dependency.depends_on_task_id,
        "type": dependency.dependency_type,
    }


def _read_fields(row: Epic | Story | Task, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def read_lines(text: Iterable[str]) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a file with their line numbers, kinds and keys checked.

    Raises :class:`BacklogInvalid`, which names the line.
    """
    entries: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        if len(entries) >= MOST_LINES:
            raise BacklogInvalid(
                f"The file has more than {MOST_LINES:,} lines; import parts of it."
            )
        try:
            read = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BacklogInvalid(f"Line {number} is not JSON: {error}.") from error
        kind = read.get("kind") if isinstance(read, dict) else None
        if kind not in _KEYS:
            raise BacklogInvalid(
                f"Line {number} is not an epic, story, task or dependency: give it a kind."
            )
        strange = sorted(set(read) - _KEYS[kind] - {"kind"})
        if strange:
            raise BacklogInvalid(
                f"Line {number}: a {kind} has no {strange[0]!r}; it has"
                f" {', '.join(sorted(_KEYS[kind]))}."
            )
        entries.append((number, read))
    return entries


def import_backlog(tx: Tx, lines: Iterable[tuple[int, dict[str, Any]]], *, by: str) -> ImportCounts:
    """Import the lines (of :func:`read_lines`) into the backlog.

    An id that is there is brought in line with the file, a new one is made, a line without an id
    creates a new entry each time. Raises :class:`BacklogInvalid` and ``DependencyCycle``; nothing is
    imported then.
    """
    taking = _Import(tx, by)
    takes = {
        "epic": taking.epic,
        "story": taking.story,
        "task": taking.task,
        "dependency": taking.dependency,
    }
    order = {kind: place for place, kind in enumerate(takes)}
    for number, line in sorted(lines, key=lambda entry: order[entry[1]["kind"]]):
        try:
            takes[line["kind"]](line)
        except CockpitError as error:
            raise BacklogInvalid(f"Line {number}: {error}", code=error.code) from error
        except (TypeError, AttributeError, ValueError) as error:
            raise BacklogInvalid(
                f"Line {number} has a value of the wrong kind: {error}."
            ) from error
    taking.settle()
    return taking.done


class _Import(Struct):
    """A running import: its counts, and the stories and epics whose status is updated at its end."""

    tx: Tx
    by: str
    done: ImportCounts = field(default_factory=ImportCounts)
    stories: dict[str | None, None] = field(default_factory=dict)
    epics: dict[str | None, None] = field(default_factory=dict)
    types: tuple[str, ...] = validation.TASK_TYPES
    read_types: bool = False

    def epic(self, line: dict[str, Any]) -> None:
        fields = _given_values(line, (*EPIC_FIELDS, "source"))
        before, _ = self._parent(EPICS, line, fields)
        self.epics[before.epic_id] = None

    def story(self, line: dict[str, Any]) -> None:
        fields = _given_values(line, ("title", "description", "status"))
        if "epic" in line:
            named = line["epic"]
            fields["epic_id"] = EPICS.load(self.tx.connection, named).epic_id if named else None
        before, after = self._parent(STORIES, line, fields)
        self.stories[before.story_id] = None
        self.epics |= dict.fromkeys((before.epic_id, after.epic_id))

    def _parent(
        self, table: Parents[P], line: dict[str, Any], fields: dict[str, Any]
    ) -> tuple[P, P]:
        """Import an epic or a story; returns it as it was (or as it was created) and as it is now."""
        number = self._number(table.kind, line)
        new = number is None or not self._exists(table.kind, number)
        if new:
            before = table.insert(self.tx, _title(line), number=number, by=self.by)
        else:
            before = table.load(self.tx.connection, line["id"])
        after = table.change(self.tx, before, fields, by=self.by)
        if new:
            self._times(table.kind, table.key, table.id_of(before), line)
        self.done.count(new=new, differs=after != before)
        return before, after

    def task(self, line: dict[str, Any]) -> None:
        values = _given_values(
            line, (*tasks.PLAIN_FIELDS, "packages", "files"), self._task_types(line)
        )
        if "story" in line:
            named = line["story"]
            values["story_id"] = STORIES.load(self.tx.connection, named).story_id if named else None
        number = self._number(TASK, line)
        new = number is None or not self._exists(TASK, number)
        if new:
            ended = self.tx.now() if values.get("status") == "done" else None
            draft = replace(tasks.new_draft(_title(line)), **values, done_at=ended)
            before = tasks.insert(self.tx, draft, number=number, by=self.by)
            self._times(TASK, "task_id", before.task_id, line)
        else:
            before = tasks.load(self.tx.connection, line["id"])
            if values.get("status", before.status) != before.status:
                values["done_at"] = self.tx.now() if values["status"] == "done" else None
            if any(getattr(before, name) != value for name, value in values.items()):
                tasks.journal_change(self.tx, tasks.change(self.tx, before, values), by=self.by)
        progress = line.get("wip")
        if progress and progress != (None if before.wip is None else dict(before.wip)):
            wip.update(self.tx, before.task_id, progress, by=self.by)
        after = tasks.load(self.tx.connection, before.task_id)
        self.stories |= dict.fromkeys((before.story_id, after.story_id))
        self.done.count(new=new, differs=replace(after, updated_at=before.updated_at) != before)

    def dependency(self, line: dict[str, Any]) -> None:
        kind = validation.one_of("The type", line.get("type", "blocks"), dependencies.TYPES)
        ends = [line.get("task"), line.get("depends_on")]
        if not all(isinstance(end, str) and end for end in ends):
            raise BacklogInvalid("A dependency needs task and depends_on.")
        task, other = (tasks.load(self.tx.connection, str(end)).task_id for end in ends)
        added = dependencies.add(self.tx, task, other, kind, by=self.by)
        self.done.count(new=added, differs=False)

    def settle(self) -> None:
        """Bring stories, epics and the queue in line with what was taken."""
        for story_id in self.stories:
            decay_handoffs(self.tx, update_story_status(self.tx, story_id, by=self.by), None)
        for epic_id in self.epics:
            ended = update_epic_status(self.tx, epic_id, by=self.by)
            decay_handoffs(self.tx, Boundaries(False, ended, None, epic_id), None)
        if self.done.created or self.done.changed:
            work_queue.rebuild(self.tx)

    def _number(self, kind: Kind, line: dict[str, Any]) -> int | None:
        """The number in the line's id; None for a line without one."""
        if line.get("id") is None:
            return None
        identity = read_id(kind, str(line["id"]))
        number = id_number(identity)
        if number > HIGHEST and not self._exists(kind, number):
            raise BacklogInvalid(
                f"{identity} is too high for a new {kind.word}: those to come are numbered after it."
                f" Give it a number up to {HIGHEST:,}, or none."
            )
        return number

    def _exists(self, kind: Kind, number: int) -> bool:
        rows = self.tx.execute(f"SELECT 1 FROM {kind.table} WHERE number=?", (number,))  # noqa: S608
        return rows.fetchone() is not None

    def _task_types(self, line: dict[str, Any]) -> tuple[str, ...]:
        """The types that a line may name; task-type files are read once, for the first custom type."""
        named = line.get("task_type")
        if named in (None, *self.types):
            return self.types
        if not self.read_types:
            self.read_types, self.types = True, read_names_of_store(self.tx.connection)
        # The type that a task has stays valid, though its file may be gone.
        rows = self.tx.execute(
            "SELECT task_type FROM tasks WHERE task_id=?", (str(line.get("id", "")),)
        )
        return (*self.types, *(current for (current,) in rows))

    def _times(self, kind: Kind, key: str, identity: str, line: dict[str, Any]) -> None:
        """Something new keeps the times that the file says: when it was written, begun and done."""
        for name in _TIMES:
            value = line.get(name)
            if not value:
                continue
            try:
                parse_time(str(value))
            except ValueError as error:
                raise BacklogInvalid(
                    f"{name} {value!r} is not a time like 2026-01-05T10:00:00.000000Z."
                ) from error
            sql = f"UPDATE {kind.table} SET {name}=? WHERE {key}=?"  # noqa: S608
            self.tx.execute(sql, (value, identity))


def _given_values(
    line: dict[str, Any], names: Sequence[str], task_types: Sequence[str] = validation.TASK_TYPES
) -> dict[str, Any]:
    return validation.changes(
        {name: line.get(name) for name in names}, names, task_types=task_types
    )


def _title(line: dict[str, Any]) -> str:
    return validation.title(line.get("title", ""))
