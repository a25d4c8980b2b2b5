"""Handoffs: what is kept, when it goes, and what never does."""

from __future__ import annotations

from typing import Any

import pytest
from store.wip.wip_world import World

from cockpit.backlog import service
from cockpit.backlog.story_completion import Boundaries
from cockpit.core.errors import NotFound
from cockpit.store.backlog import handoffs
from cockpit.store.backlog.handoffs import MOST_DETAILS, MOST_SUMMARY, Handoff, HandoffInvalid
from cockpit.store.journal import verify_chain


def hand_over(world: World, task_id: str, status: str = "PASS", **more: Any) -> Handoff:
    given: dict[str, Any] = {
        "summary": f"{task_id} works.",
        "files_changed": ["src/a.py"],
        "full_details": f"the whole output of {task_id}",
        **more,
    }
    return world.store.write_now(
        lambda tx: handoffs.set_handoff(tx, task_id, status, by="agent/s-1", **given)
    )


def done(world: World, task_id: str, **more: Any) -> Boundaries:
    return world.store.write_now(
        lambda tx: service.set_status(tx, task_id, "done", by="person", **more)
    )


def known(world: World, task_id: str) -> Handoff:
    handoff = world.store.read_now(lambda connection: handoffs.find(connection, task_id))
    assert handoff is not None
    return handoff


def test_a_coordinator_is_given_status_and_summary_and_the_rest_on_request(world):
    made = hand_over(world, "t-1", summary="T-1 works.", full_details="the whole output of T-1")
    assert made.brief() == {"status": "PASS", "summary": "T-1 works."}
    assert "full_details" not in made.body()
    assert made.body(details=True)["full_details"] == "the whole output of T-1"
    (row,) = world.rows("handoff.set")
    assert row.actor == "agent/s-1"
    assert row.raw_detail() == {
        "task_id": "T-1", "status": "PASS", "summary": "T-1 works.", "files": ["src/a.py"],
        "details": True,
    }  # fmt: skip
    hand_over(world, "T-1", "FAIL", summary="Now it does not.", full_details=None)
    newer = known(world, "T-1")
    assert (newer.status, newer.summary, newer.full_details) == ("FAIL", "Now it does not.", None)


def test_a_handoff_that_is_wrong_or_of_no_task_is_refused_in_words(world):
    for change, words in (
        ({"status": "OK"}, "PASS, FAIL or BLOCKED"),
        ({"summary": "  "}, "needs a summary"),
        ({"summary": "x" * (MOST_SUMMARY + 1)}, "full_details"),
        ({"full_details": "x" * (MOST_DETAILS + 1)}, "1,000,000"),
        ({"files_changed": "a.py"}, "list of at most"),
        ({"files_changed": ["a"] * 5_001}, "list of at most"),
    ):
        with pytest.raises(HandoffInvalid, match=words):
            hand_over(world, "T-1", **change)
    for name in ("T-1", "T-9", "S-1"):
        with pytest.raises(NotFound, match="cockpit tasks handoff T-1" if name == "T-1" else name):
            world.store.read_now(lambda connection, name=name: handoffs.load(connection, name))
    with pytest.raises(NotFound):
        hand_over(world, "T-9")


def test_finishing_the_last_task_compacts_its_story_in_that_call_after_the_report(world):
    for task_id in ("T-1", "T-2"):
        hand_over(world, task_id)
    world.update("T-1", decisions=[{"decision": "JWT", "reason": "stateless"}])
    world.update("T-2", phase="testing")
    done(world, "T-1")
    first = known(world, "T-1")
    assert (first.full_details, first.compacted_at) == ("the whole output of T-1", None)
    seen: list[Any] = []

    def report(tx, reached):
        whole = [handoffs.load(tx.connection, task_id) for task_id in ("T-1", "T-2")]
        assert tx.execute("SELECT status FROM tasks WHERE task_id='T-2'").fetchone() == ("done",)
        seen.append((reached, [handoff.full_details for handoff in whole]))

    # Another story keeps the epic open.
    world.store.write_now(
        lambda tx: service.create_story(tx, "Screens", epic_id="E-1", by="person")
    )
    reached = done(world, "T-2", before_decay=report)
    assert (reached.story_completed, reached.epic_completed) == (True, False)
    assert seen == [(reached, ["the whole output of T-1", "the whole output of T-2"])]
    for task_id in ("T-1", "T-2"):
        found = known(world, task_id)
        assert (found.full_details, found.summary) == (None, f"{task_id} works.")
        assert found.compacted_at is not None
    (row,) = world.rows("handoff.compacted")
    assert row.raw_detail() == {
        "story_id": "S-1",
        "task_ids": ["T-1", "T-2"],
        "decisions": {"T-1": [{"decision": "JWT", "reason": "stateless"}]},
    }


def test_a_report_that_fails_takes_the_finishing_with_it_and_nothing_decays(world):
    for task_id in ("T-1", "T-2"):
        hand_over(world, task_id)
    done(world, "T-1")

    def report(tx, reached):
        raise OSError("no room for the report")

    with pytest.raises(OSError, match="no room"):
        done(world, "T-2", before_decay=report)
    assert world.task("T-2").status != "done"
    found = known(world, "T-2")
    assert found.full_details == "the whole output of T-2"
    assert world.rows("handoff.compacted") == []


def test_a_failed_handoff_is_intact_after_its_epic_is_archived(world):
    status = "FAIL"
    hand_over(world, "T-1", status, full_details="why it failed")
    hand_over(world, "T-2")
    done(world, "T-1")
    reached = done(world, "T-2")
    assert (reached.story_completed, reached.epic_completed) == (True, True)
    kept = known(world, "T-1")
    assert (kept.status, kept.full_details) == (status, "why it failed")
    assert (kept.compacted_at, kept.archived_at) == (None, None)
    rows = world.store.read_now(
        lambda connection: connection.execute("SELECT task_id FROM task_handoffs").fetchall()
    )
    assert rows == [("T-1",)]


def test_an_archived_handoff_stands_in_the_journal_and_is_still_told(world):
    for task_id in ("T-1", "T-2"):
        hand_over(world, task_id)
        done(world, task_id)
    first, second = world.rows("handoff.archived")
    assert (first.raw_detail()["task_id"], second.raw_detail()["task_id"]) == ("T-1", "T-2")
    assert first.raw_detail()["summary"] == "T-1 works."
    assert first.raw_detail()["files"] == ["src/a.py"]
    assert (first.raw_detail()["story_id"], first.raw_detail()["epic_id"]) == ("S-1", "E-1")
    assert first.seq > world.rows("handoff.compacted")[0].seq
    found = known(world, "T-1")
    assert (found.status, found.summary) == ("PASS", "T-1 works.")
    assert found.files_changed == ("src/a.py",)
    assert (found.archived_at, found.full_details) == (first.at, None)
    assert world.store.read_now(verify_chain.verify).ok


def test_the_handoff_of_a_blocked_task_never_decays(world):
    hand_over(world, "T-1")
    world.store.write_now(lambda tx: service.block(tx, "T-1", "no key", by="person"))
    done(world, "T-2")
    for step in (
        lambda tx: handoffs.compact_story(tx, "S-1"),
        lambda tx: handoffs.archive_epic(tx, "E-1"),
    ):
        assert world.store.write_now(step) == []
    found = known(world, "T-1")
    assert found.full_details == "the whole output of T-1"


def test_handed_over_again_after_its_story_was_complete_it_is_whole_until_the_next_boundary(world):
    hand_over(world, "T-1")
    world.store.write_now(lambda tx: handoffs.compact_story(tx, "S-1"))
    hand_over(world, "T-1", full_details="once more")
    found = known(world, "T-1")
    assert (found.full_details, found.compacted_at) == ("once more", None)
    assert [one.task_id for one in world.store.read_now(handoffs.select_recent)] == ["T-1"]
    assert world.store.read_now(handoffs.select_recent) == [found]
