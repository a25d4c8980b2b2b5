"""Epics, stories and tasks: how they stand, where they end, what is refused."""

from __future__ import annotations

import itertools
import sqlite3
from typing import Any

import pytest
from work_world import Backlog

from cockpit.backlog import service
from cockpit.backlog.story_completion import Boundaries, status_from_parts
from cockpit.backlog.validation import BacklogInvalid
from cockpit.core.errors import CockpitError, NotFound
from cockpit.store.backlog import dependencies, handoffs, task_activity, tasks
from cockpit.store.backlog.dependencies import DependencyCycle
from cockpit.store.db.transaction import Tx


def test_nothing_is_ever_deleted(work: Backlog) -> None:
    work.task()
    with pytest.raises(sqlite3.IntegrityError, match="archived, never deleted"):
        work.store.write_now(lambda tx: tx.execute("DELETE FROM tasks"))
    assert work.load("T-1").status == "todo"


def test_moving_the_last_open_task_away_finishes_the_story(work: Backlog) -> None:
    here, there = work.story(), work.story()
    work.stand(work.task(here), "done")
    task = work.task(here)
    assert work.status("stories", here) == "in_progress"
    work.do(service.update_task, task, {"story_id": there})
    assert work.status("stories", here) == "done"


def test_a_story_with_open_tasks_cannot_be_called_done(work: Backlog) -> None:
    story = work.story(work.epic())
    task = work.task(story)
    with pytest.raises(BacklogInvalid, match=f"{task}. Finish or archive"):
        work.do(service.update_story, story, {"status": "done"})
    with pytest.raises(BacklogInvalid, match=f"{story}. Finish or archive"):
        work.do(service.update_epic, "E-1", {"status": "done"})


@pytest.mark.parametrize(
    ("status", "parts", "then"),
    [
        ("todo", {}, "todo"),
        ("todo", {"todo": 1}, "todo"),
        ("todo", {"todo": 1, "in_progress": 1}, "in_progress"),
        ("todo", {"todo": 1, "blocked": 1}, "todo"),
        ("in_progress", {"done": 2}, "done"),
        ("in_progress", {"done": 1, "archived": 1}, "done"),
        ("in_progress", {"archived": 1}, "archived"),
        ("done", {"done": 1, "todo": 1}, "in_progress"),
        ("done", {"todo": 1}, "todo"),
        ("blocked", {"todo": 1, "done": 1}, "blocked"),
    ],
)
def test_what_follows_from_the_parts(status: str, parts: dict[str, int], then: str) -> None:
    assert status_from_parts(status, parts.items()) == then


def test_the_handoffs_of_a_story_decay_with_its_last_task_and_after_the_report(
    work: Backlog,
) -> None:
    epic = work.epic()
    story = work.story(epic)
    good, bad = work.task(story), work.task(story)
    work.do(handoffs.set_handoff, good, "PASS", "It works.", ["a.py"], "everything")
    work.do(handoffs.set_handoff, bad, "FAIL", "It does not.", ["b.py"], "all of it")
    seen: list[tuple[Boundaries, str | None]] = []

    def report(tx: Tx, reached: Boundaries) -> None:
        seen.append((reached, handoffs.load(tx.connection, good).full_details))

    work.stand(good, "done")
    details = work.read(lambda connection: handoffs.load(connection, good).full_details)
    assert details == "everything"
    work.do(service.set_status, bad, "done", before_decay=report)
    assert seen == [(Boundaries(True, True, story, epic), "everything")]
    kept = work.read(lambda connection: handoffs.load(connection, good))
    assert (kept.full_details, kept.summary) == (None, "It works.")
    assert kept.archived_at is not None
    failed = work.read(lambda connection: handoffs.load(connection, bad))
    assert (failed.full_details, failed.archived_at) == ("all of it", None)


def test_a_blocker_has_a_reason_and_goes_with_it(work: Backlog) -> None:
    task = work.task()
    with pytest.raises(BacklogInvalid, match="Say what blocks it"):
        work.do(service.block, task, "  ")
    work.stand(task, "in_progress")
    work.do(service.block, task, "no key")
    assert work.load(task).blocker == "no key"
    work.do(service.resolve_blocker, task)
    assert (work.load(task).status, work.load(task).blocker) == ("in_progress", "")
    with pytest.raises(BacklogInvalid, match="is not blocked"):
        work.do(service.resolve_blocker, task)


def test_a_cycle_is_refused_and_named(work: Backlog) -> None:
    first, second, third = work.task(), work.task(), work.task()
    work.depend(first, third)
    work.depend(third, second, "requires")
    stored = work.read(dependencies.select_all)
    with pytest.raises(DependencyCycle, match=f"{second} → {first} → {third} → {second}"):
        work.depend(second, first)
    with pytest.raises(DependencyCycle, match=f"{first} → {first}"):
        work.depend(first, first)
    assert work.read(dependencies.select_all) == stored
    work.depend(second, first, "relates_to")
    with pytest.raises(NotFound, match=f"{first} does not depend on {second}"):
        work.do(service.remove_dependency, first, second)
    chain = [work.task() for _ in range(20)]
    for before, after in itertools.pairwise(chain):
        work.depend(after, before)
    with pytest.raises(
        DependencyCycle, match=f"{chain[0]} → {chain[-1]} → .* … → {chain[1]} → {chain[0]}"
    ) as refused:
        work.depend(chain[0], chain[-1])
    assert refused.value.path == (chain[0], *reversed(chain))


def test_a_secret_in_a_task_is_masked(work: Backlog) -> None:
    token = "ghp_" + "a1B2" * 9
    task = work.task(title=f"Rotate {token}", description=f"old: {token}")
    work.do(service.add_activity, task, "note", f"saw {token}")
    work.do(service.record_failure, task, "spec", f"leaked {token}")
    text = work.read(
        lambda connection: "\n".join(
            line for line in connection.iterdump() if not line.startswith("CREATE")
        )
    )
    assert token not in text
    assert "[masked:github-token]" in work.load(task).title


def test_lists_are_filtered(work: Backlog) -> None:
    epic = work.epic(priority="P0")
    story = work.story(epic)
    inside, outside, gone = work.task(story), work.task(), work.task()
    work.do(service.archive, gone)
    work.stand(inside, "in_progress")

    def ids(**terms: object) -> list[str]:
        found = work.read(lambda connection: tasks.select(connection, **terms))
        counted = work.read(lambda connection: tasks.count(connection, **terms))
        assert counted == len(found)
        return [task.task_id for task in found]

    assert ids() == [inside, outside]
    assert ids(priority="P0") == [inside]
    assert ids(status="archived") == [gone]
    assert ids(story_status="in_progress", epic_status="in_progress") == [inside]
    assert ids(epic_id=epic) == ids(story_id=story) == [inside]
    assert ids(priority="P2") == [outside]


def test_an_id_is_read_as_people_type_it(work: Backlog) -> None:
    assert (work.epic(), work.story(), work.task(), work.task()) == ("E-1", "S-1", "T-1", "T-2")
    for named in ("t-1", "t1", "1", " T-01 "):
        assert work.load(named).task_id == "T-1"
    for named in ("S-1", "T-", "", "T-1x", "T-12345678", "٣"):
        with pytest.raises(NotFound, match="like T-42"):
            work.load(named)


def test_the_last_task_finishes_story_and_epic_and_more_work_opens_them(work: Backlog) -> None:
    epic = work.epic()
    one, two = work.story(epic), work.story(epic)
    first, second, third = work.task(one), work.task(one), work.task(two)
    assert work.stand(first, "done") == Boundaries(False, False, one, epic)
    assert work.stand(second, "done") == Boundaries(True, False, one, epic)
    assert (work.status("stories", one), work.status("epics", epic)) == ("done", "in_progress")
    assert work.stand(third, "done") == Boundaries(True, True, two, epic)
    assert work.status("epics", epic) == "done"
    boundaries = work.details("task.status_changed")[-1]["boundaries"]
    assert boundaries == {
        "story_completed": True,
        "epic_completed": True,
        "story_id": two,
        "epic_id": epic,
    }
    work.do(service.reopen, third, "it came back")
    assert (work.load(third).status, work.load(third).done_at) == ("todo", None)
    assert (work.status("stories", two), work.status("epics", epic)) == ("todo", "in_progress")
    assert work.batch() == [third]
    reached = work.do(service.archive, third)
    assert (work.status("stories", two), reached.epic_completed) == ("archived", True)
    work.task(one)
    assert work.status("stories", one) == work.status("epics", epic) == "in_progress"
    alone = work.epic()
    work.do(service.update_epic, alone, {"status": "done"})
    assert work.status("epics", alone) == "done", "an epic without stories is done on request"


def test_times_progress_and_attempts_follow_the_work(work: Backlog) -> None:
    task = work.task()
    work.do(service.set_needs_rework, task, True)
    work.stand(task, "in_progress")
    assert work.load(task).started_at is not None
    before = len(work.actions())
    work.stand(task, "in_progress")
    assert len(work.actions()) == before, "said twice, it happened once"
    work.do(service.record_failure, task, "spec", "not what was asked")
    work.do(service.record_failure, task, "quality", "too slow", attempt=4)
    assert work.do(service.record_failure, task, "quality", "still").attempt == 5
    work.do(service.add_activity, task, "decision", "JWT")
    summary = work.do(service.summarize_activity, task, delete_raw=True)
    assert "decision: JWT" in summary and work.load(task).context_summary == summary
    (left,) = work.read(lambda c: task_activity.select_for_task(c, task))
    assert left.activity_type == "summary"
    work.stand(task, "done")
    done = work.load(task)
    assert (done.progress_percent, done.needs_rework) == (100, False)
    assert done.done_at is not None


def test_what_cannot_stand_in_a_task_is_refused(work: Backlog) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"title": " \n "}, "title is empty"),
        ({"title": "x" * 301}, "may have 300"),
        ({"task_type": "epic"}, "it can be feature, bug"),
        ({"estimate_hours": -1}, "it can be 0 to"),
        ({"description": "x" * 60_001}, "may have 60,000"),
        ({"story_id": "S-9"}, "no story S-9"),
        ({"colour": "red"}, "no colour to set"),
    ]
    for fields, words in wrong:
        with pytest.raises(CockpitError, match=words):
            work.task(**{"title": "A task", **fields})
    assert work.queue() == {}
