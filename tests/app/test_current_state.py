"""The state read from the tables is the state folded from the whole journal, and costs no scan."""

from __future__ import annotations

import app_scenes
import chain_scenes
import pytest
from app_scenes import Scene, folded
from msgspec.structs import replace

from cockpit.app.projection.chain_trees import WHOLE, Trees
from cockpit.app.projection.current_chains import read_chain
from cockpit.app.projection.current_state import read_state
from cockpit.app.projection.kanban import Looking
from cockpit.store.chains import chains
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from widgets.work.task_card_views import CardView, TaskLineView

pytestmark = pytest.mark.slow


def by_key(view: CardView | TaskLineView) -> str:
    return view.key


def compare(store: Store, session_id: str = "") -> None:
    """Every view of the screen is the same, from the tables and from the journal."""
    whole = folded(store)
    current = store.read_now(lambda c: read_state(c, session_id))
    for chain_id in current.chains.chains:
        current.chains.take(store.read_now(lambda c, name=chain_id: read_chain(c, name)))
    assert current.seq == whole.seq
    now = store.clock.now()
    for levels in ({}, dict.fromkeys(whole.chains.chains, WHOLE)):
        views = [
            state.views(now, session_id, trees=Trees(dict(levels))) for state in (current, whole)
        ]
        assert views[0].header == views[1].header
        assert views[0].turns == views[1].turns
        assert views[0].meter == views[1].meter
        assert views[0].queue == views[1].queue
        assert views[0].board.chains == views[1].board.chains
        # The clock stands still here: the tables cannot tell which task was done first.
        tasks = [sorted(view.board.tasks, key=by_key) for view in views]
        assert tasks[0] == tasks[1]
        assert replace(views[0].board, tasks=()) == replace(views[1].board, tasks=())
    boards = [Looking().kanban(state.work) for state in (current, whole)]
    for mine, theirs in zip(boards[0].columns, boards[1].columns, strict=True):
        assert sorted(mine.cards, key=by_key) == sorted(theirs.cards, key=by_key)


def test_sessions_in_every_state(still, project):
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
    last = begin("i").wave("observing", "orienting", "deciding").stream("I ", "see")
    compare(still.store)
    compare(still.store, last.session_id)


def test_chains_that_run_and_one_that_ended(still, project):
    chain = chain_scenes.running(still.store, project)
    compare(still.store, chain.last)
    chain.dies()
    still.store.clock.advance(1)
    chain.session().batch(1, "T-2").takes_up("T-2", "fixing")
    compare(still.store)
    still.store.write_now(lambda tx: chains.drain(tx, chain.chain_id, now=True))
    compare(still.store)
    chain.rests("drained").ends("stopped")
    compare(still.store)


def test_what_comes_later_is_folded_onto_it(still, project):
    chain = chain_scenes.running(still.store, project)
    other = Scene(still.store, project).begin("later").wave("observing").ask("p-other")
    current = still.store.read_now(lambda c: read_state(c, other.session_id))
    other.decide("p-other", "approved").fetched("p-other")
    chain.over("T-5", "done").done("T-5", "Counted.")
    Scene(still.store, project).begin("new").wave("observing")
    rows = still.store.read_now(lambda c: journal.rows(c, after=current.seq))
    assert current.missing(rows) == set()
    current.fold(rows)
    current.roster.totals = None
    whole, now = folded(still.store), still.store.clock.now()
    views = [state.views(now, other.session_id) for state in (current, whole)]
    assert views[0].turns == views[1].turns
    assert views[0].board.chains == views[1].board.chains
    assert views[0].board.rows == views[1].board.rows
    assert views[0].header == views[1].header
