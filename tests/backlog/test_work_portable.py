"""The backlog out and in again: ids, dependencies and all; again and again; whole or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from work_world import Backlog, opened, tables_of_the_queue, worked_out_anew

from cockpit.backlog import service
from cockpit.backlog.import_export import export_backlog, import_backlog, read_lines
from cockpit.core.errors import CockpitError
from cockpit.store.backlog import wip


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Backlog]:
    (tmp_path / "elsewhere").mkdir()
    made = opened(tmp_path / "elsewhere")
    yield made
    made.store.close()


def lines_of(work: Backlog) -> list[dict[str, Any]]:
    return list(work.read(lambda connection: list(export_backlog(connection))))


def take(work: Backlog, lines: list[dict[str, Any]]) -> tuple[int, int, int]:
    text = [json.dumps(line) for line in lines]
    done = work.do(import_backlog, read_lines(text))
    return done.created, done.changed, done.unchanged


def filled(work: Backlog) -> None:
    epic = work.epic("Login", priority="P1")
    story = work.story(epic)
    work.story(None, "Alone")
    first = work.task(
        story, "Expiry", description="line one\nline two", files=["src/a.ts"], estimate_hours=2.5
    )
    second, third = work.task(story, "Refresh", packages=["app"]), work.task(None, "Docs")
    work.depend(second, first)
    work.depend(third, second, "relates_to")
    work.stand(first, "done")
    work.do(wip.update, second, {"phase": "testing", "decisions": [{"decision": "JWT"}]})
    work.stand(third, "blocked", "no key")
    work.do(service.archive, work.task(None, "Not wanted"))


def test_what_goes_out_comes_in_as_it_was(work: Backlog, elsewhere: Backlog) -> None:
    filled(work)
    before = lines_of(work)
    assert take(elsewhere, before) == (9, 0, 0)
    assert lines_of(elsewhere) == before
    assert elsewhere.read(tables_of_the_queue) == work.read(tables_of_the_queue)
    assert elsewhere.read(tables_of_the_queue) == elsewhere.read(worked_out_anew)


def test_the_same_again_changes_nothing(work: Backlog) -> None:
    filled(work)
    before, rows = lines_of(work), len(work.actions())
    assert take(work, before) == (0, 0, len(before))
    assert lines_of(work) == before
    assert len(work.actions()) == rows


def test_new_tasks_go_on_after_the_highest_number(work: Backlog) -> None:
    take(work, [{"kind": "task", "id": "T-40", "title": "Forty"}])
    assert work.task() == "T-41"


def test_a_line_changes_what_it_says_and_leaves_the_rest(work: Backlog) -> None:
    filled(work)
    assert take(work, [{"kind": "task", "id": "T-2", "title": "Renamed"}]) == (0, 1, 0)
    found = work.load("T-2")
    assert (found.title, found.packages, found.story_id) == ("Renamed", ("app",), "S-1")


def test_lines_may_come_in_any_order_and_without_ids(work: Backlog) -> None:
    lines = [
        {"kind": "dependency", "task": "T-2", "depends_on": "T-1"},
        {"kind": "task", "title": "One", "story": "S-1"},
        {"kind": "task", "title": "Two", "story": "s1"},
        {"kind": "story", "title": "A story", "id": "S-1", "epic": "E-7"},
        {"kind": "epic", "id": "E-7", "title": "Seven", "priority": "p0"},
    ]
    assert take(work, lines) == (5, 0, 0)
    assert work.queue()["T-2"].blocked_by == ("T-1",)
    assert work.load("T-1").priority == "P0"


TASK = '{"kind": "task", "title": "x", '
WRONG = [
    ("{", "Line 2 is not JSON"),
    ("[" * 100_000, "Line 2 is not JSON"),
    ("[]", "Line 2 is not an epic, story, task or dependency"),
    ('{"kind": "task"}', "Line 2: The title is empty"),
    (TASK + '"colour": 1}', "Line 2: a task has no 'colour'"),
    (TASK + '"status": "open"}', "Line 2: The status is 'open'"),
    ('{"kind": "task", "title": ["x"]}', "Line 2 has a value of the wrong kind"),
    (TASK + '"packages": "api"}', "Line 2: Packages must be a list"),
    (TASK + '"files": ["a", 3]}', "Line 2: Files must be a list"),
    (TASK + '"id": "T-9999999"}', "Line 2: T-9999999 is too high"),
    (TASK + '"story": "S-9"}', "Line 2: There is no story S-9"),
    (TASK + '"id": "S-9"}', "Line 2: 'S-9' is not a task id"),
    (TASK + '"created_at": "now"}', "Line 2: created_at 'now' is no"),
    (TASK + '"wip": {"a": 1}}', "Line 2: Work in progress has no a"),
    ('{"kind": "dependency", "task": "T-1"}', "Line 2: A dependency needs"),
    ('{"kind": "dependency", "task": "T-1", "depends_on": "T-1"}', "T-1 → T-1"),
]


def test_one_line_that_cannot_be_taken_and_nothing_was(work: Backlog) -> None:
    for line, words in WRONG:
        lines = ['{"kind": "task", "title": "Fine", "id": "T-1"}', line]
        with pytest.raises(CockpitError, match=re.escape(words)):
            work.do(import_backlog, read_lines(lines))
    assert lines_of(work) == []
