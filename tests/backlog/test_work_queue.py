"""The queue: kept by whatever changes it, in an order that can be explained, in groups that can run."""

from __future__ import annotations

import itertools
import sqlite3

import pytest
from work_world import Backlog, tables_of_the_queue, worked_out_anew

from cockpit.backlog import service
from cockpit.backlog.explain_queue import explain_rows
from cockpit.store.backlog import work_queue
from cockpit.store.db.transaction import Tx


def test_status_blocked_makes_it_not_ready_and_what_depends_waits_on(work: Backlog) -> None:
    first, second = work.task(), work.task()
    work.depend(second, first)
    work.stand(first, "blocked", "no key")
    queue = work.queue()
    assert (queue[first].ready, queue[first].batch_group) == (False, 0)
    assert queue[second].blocked_by == (first,)
    work.do(service.resolve_blocker, first)
    assert work.queue()[first].ready


def test_add_dependency_recomputes_both_tasks(work: Backlog) -> None:
    first, second = work.task(), work.task()
    work.depend(second, first)
    queue = work.queue()
    assert queue[first].unblocks == 1
    assert queue[first].priority_score == 1_019_999_998
    assert (queue[second].ready, queue[second].blocked_by) == (False, (first,))
    work.do(service.remove_dependency, second, first)
    queue = work.queue()
    assert queue[first].unblocks == 0
    assert queue[second].ready


def test_epic_priority_change_recomputes_all_its_tasks(work: Backlog) -> None:
    epic = work.epic(priority="P3")
    tasks = [work.task(story) for story in (work.story(epic), work.story(epic))]
    other = work.task()
    assert work.batch() == [other, *tasks]
    work.do(service.update_epic, epic, {"priority": "P0"})
    assert work.batch() == [*tasks, other]
    assert {row.priority for row in work.queue().values()} == {"P0", "P2"}


def _reasons(work: Backlog) -> dict[str, str]:
    """The words of each task's place, by id."""

    def read(connection: sqlite3.Connection) -> dict[str, str]:
        rows = work_queue.select(connection)
        return {str(row["id"]): str(row["why"]) for row in explain_rows(connection, rows)}

    reasons: dict[str, str] = work.read(read)
    return reasons


def test_what_an_urgent_task_waits_for_is_as_urgent(work: Backlog) -> None:
    """Through others, in either direction, and only for as long as it waits."""
    useful, deep, middle = work.task(), work.task(), work.task()
    for _ in range(3):
        work.depend(work.task(), useful)
    epic = work.epic(priority="P0")
    urgent = work.task(work.story(epic))
    work.depend(middle, deep)
    work.depend(urgent, middle)
    assert work.batch(2) == [deep, useful]
    queue = work.queue()
    assert queue[deep].priority_score == 3_029_999_997
    assert (queue[deep].priority, queue[deep].queue_priority) == ("P2", "P0")
    assert f"priority P0 of {urgent}, which waits for it; unblocks 2" in _reasons(work)[deep]
    assert "priority P2; unblocks 3" in _reasons(work)[useful]
    work.do(service.update_epic, epic, {"priority": "P3"})
    assert work.batch(2) == [useful, deep]
    work.do(service.update_epic, epic, {"priority": "P1"})
    assert work.batch(2) == [deep, useful]
    work.do(service.archive, urgent)
    assert work.batch(2) == [useful, deep]


def test_a_priority_reaches_further_than_counts_do(work: Backlog) -> None:
    """Past the hundredth task, and past a shorter way around: nothing keeps its old place."""
    epic = work.epic(priority="P2")
    story = work.story(epic)

    def fill(tx: Tx) -> list[str]:
        made = [service.create_task(tx, "A task", by="person").task_id for _ in range(104)]
        urgent = service.create_task(tx, "A task", story_id=story, by="person").task_id
        links = [*itertools.pairwise(made), (made[0], made[60]), (made[-1], urgent)]
        for before, after in links:
            service.add_dependency(tx, after, before, by="person")
        return made

    chain = work.store.write_now(fill)
    for priority, digit in (("P0", 3), ("P3", 1)):
        work.do(service.update_epic, epic, {"priority": priority})
        assert {work.queue()[task].priority_score // 10**9 for task in chain} == {digit}
    assert work.read(tables_of_the_queue) == work.read(worked_out_anew)


def test_the_queue_and_its_cause_are_one_transaction(work: Backlog) -> None:
    first, second = work.task(), work.task()
    work.depend(second, first)
    before = work.read(tables_of_the_queue)

    def fails(tx: Tx) -> None:
        service.set_status(tx, first, "done", by="person")
        raise KeyError(first)

    with pytest.raises(KeyError):
        work.store.write_now(fails)
    assert work.read(tables_of_the_queue) == before
    assert work.load(first).status == "todo"


def test_why_says_what_a_place_is_made_of(work: Backlog) -> None:
    first = work.task(work.story(work.epic(priority="P1")), files=["src/a.py"])
    second = work.task(files=["src"])
    third = work.task()
    work.depend(third, first)
    assert list(_reasons(work).values()) == [
        "priority P1; unblocks 1; number 1; can begin now",
        "priority P2; number 2; after T-1, which touches src as well",
        "waits for T-1; priority P2; number 3",
    ]
    assert [first, second, third] == ["T-1", "T-2", "T-3"]


def test_a_place_follows_priority_then_unblocking_then_age(work: Backlog) -> None:
    old, useful, story = work.task(), work.task(), work.story(work.epic(priority="P3"))
    urgent = work.task(story)
    work.do(service.update_story, story, {"epic_id": work.epic(priority="P1")})
    assert work.queue()[urgent].priority_score == 2_009_999_996
    waiting = [work.task(), work.task()]
    for task in waiting:
        work.depend(task, useful)
    assert work.batch() == [urgent, useful, old]
    assert work.batch(2) == [urgent, useful]
    assert work.read(work_queue.count_ready) == 3
    work.stand(useful, "done")
    assert useful not in work.queue()
    assert work.batch() == [urgent, old, *waiting]
    # Neither related nor archived work blocks.
    work.depend(old, urgent, "relates_to")
    work.depend(old, waiting[0])
    work.do(service.archive, waiting[0], "not wanted")
    assert work.batch() == [urgent, old, waiting[1]]
