"""What is read again after rows is what a screen that opens now reads, and costs no scan."""

from __future__ import annotations

import app_scenes
import chain_scenes
import pytest
from app_scenes import Scene, current, follow_rows
from msgspec.structs import replace

from cockpit.app.state.chain_trees import WHOLE, Trees
from cockpit.app.state.chains import read_chain
from cockpit.app.state.kanban import Looking
from cockpit.app.state.screen_state import State
from cockpit.store.chains import chains
from cockpit.store.db.database import Store
from widgets.work.task_card_views import CardView, TaskLineView

pytestmark = pytest.mark.slow


def by_key(view: CardView | TaskLineView) -> str:
    return view.key


def compare(store: Store, followed: State, session_id: str = "") -> None:
    """Every view of a screen that has been open is that of one that opens now."""
    states, now = (follow_rows(store, followed), current(store, session_id)), store.clock.now()
    for state in states:
        for chain_id in state.chains.chains:
            for chain in store.read_now(lambda c, name=chain_id: read_chain(c, name, now)):
                state.put_chain(chain)
    assert states[0].seq == states[1].seq
    for levels in ({}, dict.fromkeys(states[1].chains.chains, WHOLE)):
        views = [state.views(now, session_id, trees=Trees(dict(levels))) for state in states]
        assert views[0].header == views[1].header
        assert views[0].turns == views[1].turns
        assert views[0].meter == views[1].meter
        assert views[0].queue == views[1].queue
        assert views[0].board.chains == views[1].board.chains
        # The clock stands still here: the tables cannot tell which task was done first.
        tasks = [sorted(view.board.tasks, key=by_key) for view in views]
        assert tasks[0] == tasks[1]
        assert replace(views[0].board, tasks=()) == replace(views[1].board, tasks=())
    boards = [Looking().kanban(state.work) for state in states]
    for mine, theirs in zip(boards[0].columns, boards[1].columns, strict=True):
        assert sorted(mine.cards, key=by_key) == sorted(theirs.cards, key=by_key)


def test_sessions_in_every_state(still, project):
    open_since_then = current(still.store)
    begin = Scene(still.store, project).begin
    app_scenes.to_decide(Scene(still.store, project))
    begin("a").enter("completed", status="done", summary="It works.")
    begin("b").enter("completed", status="blocked", summary="No access.")
    begin("c").enter("completed", status="limit", summary="12 waves")
    begin("d").wave("observing").fail("The model cannot be reached.")
    begin("e").enter("stopped", reason="by you")
    begin("f").wave("observing", "orienting").ask("p-f")
    begin("g").wave("observing").spend(900, 0.5)
    begin("j").enter("completed", status="needs_answer", summary="Which one?")
    begin("k").wave("observing").enter("waiting", **{"for": "expired", "why": "no decision"})
    begin("h").enter("waiting", **{"for": "person"})
    last = begin("i").wave("observing")
    followed = current(still.store, last.session_id)
    last.advance("orienting", "deciding").stream("I ", "see")
    compare(still.store, open_since_then)
    compare(still.store, followed, last.session_id)


def test_chains_that_run_and_one_that_ended(still, project):
    followed = current(still.store)
    chain = chain_scenes.running(still.store, project)
    compare(still.store, followed)
    chain.dies()
    still.store.clock.advance(1)
    chain.session().batch(1, "T-2").takes_up("T-2", "fixing")
    compare(still.store, followed)
    chain.over("T-5", "done").done("T-5", "Counted.")
    compare(still.store, followed)
    still.store.write_now(lambda tx: chains.drain(tx, chain.chain_id, now=True))
    compare(still.store, followed)
    chain.rests("drained").ends("stopped")
    compare(still.store, followed)
