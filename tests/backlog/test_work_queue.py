"""The queue: kept by whatever changes it, in an order that can be explained, in groups that can run."""

from __future__ import annotations

import itertools

import pytest
from work_world import Backlog, tables_of_the_queue

from cockpit.backlog import service
from cockpit.backlog.explain_queue import explain_rows
from cockpit.store.backlog import handoffs, wip, work_queue
from cockpit.store.db.transaction import Tx


def test_create_task_inserts_it_with_its_score(work: Backlog) -> None:
    task = work.task(work.story(work.epic(priority="P1")))
    row = work.queue()[task]
    assert (row.ready, row.batch_group, row.blocked_by) == (True, 1, ())
    assert row.priority_score == 2_009_999_998


def test_status_done_removes_it_and_readies_what_waited(work: Backlog) -> None:
    first, second = work.task(), work.task()
    work.depend(second, first)
    assert not work.queue()[second].ready
    work.stand(first, "done")
    assert first not in work.queue()
    row = work.queue()[second]
    assert (row.ready, row.blocked_by, row.batch_group) == (True, (), 1)


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


def test_a_story_that_moves_takes_its_tasks_to_another_priority(work: Backlog) -> None:
    urgent, story = work.epic(priority="P0"), work.story(work.epic(priority="P3"))
    task = work.task(story)
    work.do(service.update_story, story, {"epic_id": urgent})
    assert work.queue()[task].priority_score == 3_009_999_998


def test_relates_to_never_blocks(work: Backlog) -> None:
    first, second = work.task(), work.task()
    work.depend(second, first, "relates_to")
    assert work.batch() == [first, second]
    assert work.queue()[first].unblocks == 0


def test_what_is_archived_blocks_nobody(work: Backlog) -> None:
    first, second = work.task(), work.task()
    work.depend(second, first)
    work.do(service.archive, first, "not wanted")
    assert work.batch() == [second]


def test_priority_weighs_more_than_unblocking_and_that_more_than_age(work: Backlog) -> None:
    old, useful, urgent = work.task(), work.task(), work.task(work.story(work.epic(priority="P1")))
    for _ in range(2):
        work.depend(work.task(), useful)
    assert work.batch() == [urgent, useful, old]


def test_a_chain_unblocks_all_that_is_behind(work: Backlog) -> None:
    chain = [work.task() for _ in range(4)]
    for before, after in itertools.pairwise(chain):
        work.depend(after, before)
    assert [work.queue()[task].unblocks for task in chain] == [3, 2, 1, 0]


def test_the_score_does_not_move_with_the_clock(work: Backlog) -> None:
    work.task()
    before = work.read(tables_of_the_queue)
    work.store.write_now(lambda tx: work_queue.refresh(tx, ["T-1"]))
    assert work.read(tables_of_the_queue) == before


def test_group_one_touches_nothing_twice(work: Backlog) -> None:
    first = work.task(files=["src/auth.py"])
    second = work.task(files=["src"])
    third = work.task(packages=["docs"])
    assert work.batch() == [first, third]
    assert work.queue()[second].batch_group == 2


def test_what_runs_holds_what_it_touches(work: Backlog) -> None:
    running, waiting = work.task(files=["src/a.py"]), work.task(files=["src/a.py"])
    free = work.task(files=["src/b.py"])
    work.stand(running, "in_progress")
    assert work.batch() == [free]
    work.stand(running, "done")
    assert work.batch() == [waiting, free]


def test_files_of_work_in_progress_and_of_handoffs_count(work: Backlog) -> None:
    first, second, third = work.task(), work.task(), work.task(files=["x.py", "y.py"])
    assert work.batch() == [first, second, third]
    work.do(wip.update, first, {"files_modified": ["x.py"]})
    assert work.batch() == [first, second]
    work.do(handoffs.set_handoff, second, "FAIL", "It broke.", ["x.py"])
    assert work.batch() == [first]


def test_two_that_depend_on_each_other_through_finished_work_are_apart(work: Backlog) -> None:
    """T-3 is ready, for T-2 is done; but T-2 was done before the T-1 that it needed."""
    first, second, third = work.task(), work.task(), work.task()
    work.depend(second, first)
    work.depend(third, second)
    work.stand(second, "done")
    queue = work.queue()
    assert queue[first].ready
    assert queue[third].ready
    assert (queue[first].batch_group, queue[third].batch_group) == (1, 2)


def test_next_batch_is_limited_and_counts_what_is_ready(work: Backlog) -> None:
    made = [work.task() for _ in range(5)]
    assert work.batch(3) == made[:3]
    assert work.read(work_queue.count_ready) == 5


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

    def read(connection: object) -> list[str]:
        rows = work_queue.select(connection)  # type: ignore[arg-type]
        return [one["why"] for one in explain_rows(connection, rows)]  # type: ignore[arg-type]

    assert work.read(read) == [
        "priority P1; unblocks 1; number 1; can begin now",
        "priority P2; number 2; after T-1, which touches src as well",
        "waits for T-1; priority P2; number 3",
    ]
    assert [first, second, third] == ["T-1", "T-2", "T-3"]


def test_the_journal_says_how_many_are_ready(work: Backlog) -> None:
    first, second = work.task(), work.task()
    work.depend(second, first)
    assert work.details("queue.recomputed")[-1] == {"ready": 1, "waiting": 1}
