"""Chains as they are drawn: right about real ones."""

from __future__ import annotations

import chain_scenes
import pytest
from app_scenes import current

from cockpit.app.state import kanban
from cockpit.app.state.chain_trees import CLOSED, WHOLE, Trees
from cockpit.app.state.screen_state import State
from cockpit.store.chains import chains
from widgets.work.chain_tree_views import ChainSessionView, ChainTaskView, ChainView

pytestmark = pytest.mark.slow


def lines(state: State, level: int | None = None) -> list[str]:
    """The trees as signs and words."""
    trees = Trees({} if level is None else dict.fromkeys(state.chains.chains, level))
    waiting = {each.stored.session_id: each.stored.title for each in state.pending.values()}
    drawn = []
    for each in trees.rows(state.chains, state.work, waiting=waiting):
        match each:
            case ChainView():
                marks = " ".join(f"{mark.sign}{mark.label}" for mark in each.marks)
                drawn.append(
                    f"{each.sign} {each.name} {marks} {each.done}/{each.total} {each.state}"
                )
            case ChainSessionView():
                drawn.append(f"  {each.sign} {each.name} {each.state}")
            case ChainTaskView():
                drawn.append(f"    {each.line.sign} {each.line.key} {each.line.phase}")
    return [each.rstrip() for each in drawn]


def test_a_running_chain_and_one_that_is_complete(still, project):
    chain_scenes.running(still.store, project)
    state = current(still.store)
    assert lines(state, WHOLE)[:6] == [
        "▶ ch-2 ✔s1 ✔s2 ▶s3 1/7",
        "  ✔ s1 1 task · handed over: it reached its token limit",
        "    ✔ T-3 handoff",
        "  ✔ s2 1 task · handed over: it reached its token limit",
        "    ■ T-7 blocked",
        "  ▶ s3 batch 1 · 2 tasks",
    ]
    assert [each[0] for each in lines(state, CLOSED)] == ["▶", "!"]


def test_a_task_taken_up_stands_under_the_session_that_took_it(still, project):
    chain = chain_scenes.running(still.store, project)
    chain.dies().session()
    assert lines(current(still.store))[:4] == [
        "▶ ch-2 ✔s1 ✔s2 ✗s3 ▶s4 1/7",
        "  ▶ s4 next batch",
        "    ◌ T-2 fixing",
        "    ? T-5 waits for you",
    ]
    chain.batch(1, "T-2").takes_up("T-2", "fixing")
    drawn = lines(current(still.store), WHOLE)
    assert drawn[drawn.index("  ▶ s4 batch 1 · 1 task") + 1] == "    ▶ T-2 fixing"
    assert "  ✗ s3 1 task · died: its process is gone" in drawn


def test_what_a_drained_chain_left_does_not_look_as_if_it_ran(still, project):
    chain = chain_scenes.running(still.store, project)
    assert "▶ T-2 fixing" in at_work(still)
    still.store.write_now(lambda tx: chains.drain(tx, chain.chain_id))
    chain.rests("drained").ends("stopped")
    assert "▶" not in "".join(at_work(still) + lines(current(still.store)))
    assert f"◌ T-2 fixing {kanban.LEFT}" in at_work(still)
    chain.begin().session().batch(1, "T-2").takes_up("T-2", "fixing")
    assert "▶ T-2 fixing" in at_work(still)


def at_work(still):
    return [
        f"{each.sign} {each.key} {each.phase} {each.text if each.text == kanban.LEFT else ''}".strip()
        for each in kanban.lines(current(still.store).work)
    ]


def test_a_proposal_says_which_session_of_which_chain_asks(still, project):
    running = chain_scenes.running(still.store, project)
    state, now = current(still.store), still.store.clock.now()
    [row] = state.views(now).queue.waiting
    assert row.who == "ch-2 s3 · T-5 · implementer"
    front = state.views(now, running.last).queue.front
    assert front is not None
    assert (front.chain, front.task, front.role) == ("ch-2 s3", "T-5", "implementer")
