"""Chains' fold: total over any rows, indifferent to batches, right about real ones, and fast."""

from __future__ import annotations

import itertools

import chain_scenes
import pytest
from chain_scenes import ChainScene
from dice import Dice
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_project_work import any_detail, row

from cockpit.app.projection import chain_trees, kanban
from cockpit.app.projection.chain_trees import CLOSED, LIVE, WHOLE, Trees
from cockpit.app.projection.chains import Chains
from cockpit.app.projection.fold import State
from cockpit.store.chains import chains, workers
from cockpit.store.chains.chains import Progress
from cockpit.store.journal import journal
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row
from widgets.work.chain_tree_views import ChainSessionView, ChainTaskView, ChainView

pytestmark = pytest.mark.slow

ACTIONS = tuple(
    str(action) for action in Action
    if str(action).startswith(("chain.", "batch.", "task.", "session.", "agent.", "model.comp"))
)  # fmt: skip
NAMES = (
    "chain_id", "ordinal", "task_id", "session_id", "step", "attempt", "outcome", "summary", "status",
    "reason", "scope", "progress", "tokens", "token_limit", "cost_usd", "dropped_share", "batch",
    "size", "task_ids", "role", "agent_session", "agent", "tool", "event", "answer", "at", "path",
)  # fmt: skip
KNOWN: tuple[object, ...] = (
    "ch-1", "ch-2", "T-1", "T-2", "s-1", "s-2", 1, 2, "done", "blocked", "fix", "running", "clean",
    {"kind": "epic", "id": "E-1"}, {"total": 3, "done": 1, "ready": 10**40}, ["T-1"],
)  # fmt: skip


def any_value(dice: Dice) -> object:
    return dice.choice(KNOWN) if dice.number(0, 1) else dice.json()


def made_row(seq: int, dice: Dice) -> Row:
    action, session = dice.choice(ACTIONS), dice.one_of("", "s-1", "s-2")
    if dice.number(0, 1):
        return row(seq, action, any_detail(dice), session)
    detail = {dice.choice(NAMES): any_value(dice) for _ in range(dice.number(0, 12))}
    return row(seq, action, detail, session)


def histories() -> st.SearchStrategy[list[Row]]:
    return st.lists(st.binary(min_size=4, max_size=4), max_size=40).map(
        lambda seeds: [made_row(seq, Dice(seed)) for seq, seed in enumerate(seeds, 1)]
    )


def everything(state: State) -> object:
    trees = Trees(dict.fromkeys(state.chains.chains, WHOLE))
    rows = trees.rows(state.chains, state.work, followed="s-1", waiting={"s-2": "may I?"})
    turns = [state.agents.turns(each.key) for each in state.agents.rows()]
    return rows, turns, Trees().rows(state.chains, state.work), state.chains.words_of("s-1")


@given(histories(), st.lists(st.integers(0, 40), max_size=3))
@settings(max_examples=examples(150), deadline=None)
def test_no_row_stops_the_fold_and_batches_change_nothing(rows, cuts):
    whole, parts = State().fold(rows), State()
    edges = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        parts.fold(rows[start:end])
        everything(parts)
    parts.fold(rows)
    assert repr(everything(parts)) == repr(everything(whole))


def folded(store) -> State:
    state, after = State(), 0
    while batch := store.read_now(lambda c, after=after: journal.rows(c, after=after)):
        state.fold(batch)
        after = batch[-1].seq
    return state


def lines(state: State, level: int | None = None) -> list[str]:
    """The trees as signs and words."""
    trees = Trees({} if level is None else dict.fromkeys(state.chains.chains, level))
    waiting = {each.session_id: each.title for each in state.queue.pending.values()}
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
    state = folded(still.store)
    assert lines(state) == [
        "▶ ch-2 ✔s1 ✔s2 ▶s3 1/7",
        "  ▶ s3 batch 1 · 2 tasks",
        "    ▶ T-2 fixing",
        "    ? T-5 waits for you",
        "    ■ T-7 blocked",
        "    ✔ T-3 handoff",
        "! ch-1 ✔s1 1/2 1 in progress",
    ]
    assert lines(state, WHOLE)[:6] == [
        "▶ ch-2 ✔s1 ✔s2 ▶s3 1/7",
        "  ✔ s1 1 task · handed over: it reached its token limit",
        "    ✔ T-3 handoff",
        "  ✔ s2 1 task · handed over: it reached its token limit",
        "    ■ T-7 blocked",
        "  ▶ s3 batch 1 · 2 tasks",
    ]
    assert [each[0] for each in lines(state, CLOSED)] == ["▶", "!"]


def test_what_the_trees_say_is_what_the_tables_say(still, project):
    chain_scenes.running(still.store, project)
    state = folded(still.store)
    for stored in still.store.read_now(chains.select):
        mine = state.chains.chains[stored.chain_id]
        assert (mine.status, mine.scope_kind, mine.scope_id, mine.branch) == (
            stored.status, stored.scope_kind, stored.scope_id, stored.branch,
        )  # fmt: skip
        known = still.store.read_now(lambda c, s=stored: workers.select_for_chain(c, s.chain_id))
        assert [(each.ordinal, each.status, each.reason) for each in known] == [
            (each.ordinal, each.status, each.reason) for each in mine.chain_sessions.values()
        ]
        progress: Progress = still.store.read_now(lambda c, s=stored: chains.count_progress(c, s))
        head = next(r for r in Trees().rows(state.chains, state.work) if r.key == stored.chain_id)
        assert isinstance(head, ChainView)
        assert (head.done, head.total) == (progress.done, progress.total)


def test_tokens_and_cost_are_those_of_the_roles(still, project):
    chain_scenes.running(still.store, project)
    state = folded(still.store)
    run = state.chains.chains["ch-2"].runs["T-2"]
    assert (run.tokens, round(run.cost_usd or 0, 6)) == (33_000, 0.11)
    working = state.chains.chains["ch-2"].working
    assert working is not None
    assert (working.tokens, round(working.cost_usd or 0, 6)) == (51_000, 0.17)


def test_sessions_of_roles_stand_in_their_tree_alone(still, project):
    chain_scenes.running(still.store, project)
    state = folded(still.store)
    now = still.store.clock.now()
    board = state.views(now).board
    assert board.rows == ()
    assert board.summary == ""
    assert not {"T-2", "T-5", "T-7"} & {each.key for each in board.tasks}


def test_a_task_taken_up_stands_under_the_session_that_took_it(still, project):
    chain = chain_scenes.running(still.store, project)
    chain.dies().session()
    assert lines(folded(still.store))[:4] == [
        "▶ ch-2 ✔s1 ✔s2 ✗s3 ▶s4 1/7",
        "  ▶ s4 next batch",
        "    ◌ T-2 fixing",
        "    ? T-5 waits for you",
    ]
    chain.batch(1, "T-2").takes_up("T-2", "fixing")
    drawn = lines(folded(still.store), WHOLE)
    assert drawn[drawn.index("  ▶ s4 batch 1 · 1 task") + 1] == "    ▶ T-2 fixing"
    assert "  ✗ s3 1 task · died: its process is gone" in drawn


@pytest.mark.parametrize(
    ("status", "words"), [("stopped", "stopped"), ("failed", "no room"), ("limited", "no room")]
)
def test_how_a_chain_ended_is_told(still, project, status, words):
    chain = ChainScene(still.store, project)
    chain_scenes.work_scenes.story(still.store)
    chain.begin().session().rests().ends(status, "no room")
    (head,) = lines(folded(still.store))
    assert head.endswith(words)


def test_a_chain_that_follows_an_agent_s_session_runs_like_any_other():
    scope = {"chain_id": "ch-1", "scope": {"kind": "all", "id": ""}, "branch": "cockpit/ch-1"}
    told = {
        "chain_id": "ch-1",
        "after": 1,
        "agent": "claude",
        "agent_session": "a",
        "reason": "other",
    }
    begun = State().fold([row(2, "chain.created", scope)])
    after = State().fold([row(2, "chain.created", scope), row(3, "chain.session_id", told)])
    assert lines(after) == lines(begun)
    chain = after.chains.chains["ch-1"]
    assert (chain.status, chain.reason, chain.live) == ("running", "", True)


def test_what_a_drained_chain_left_does_not_look_as_if_it_ran(still, project):
    chain = chain_scenes.running(still.store, project)
    assert "▶ T-2 fixing" in at_work(still)
    still.store.write_now(lambda tx: chains.drain(tx, chain.chain_id))
    chain.rests("drained").ends("stopped")
    assert "▶" not in "".join(at_work(still) + lines(folded(still.store)))
    assert f"◌ T-2 fixing {kanban.LEFT}" in at_work(still)
    chain.begin().session().batch(1, "T-2").takes_up("T-2", "fixing")
    assert "▶ T-2 fixing" in at_work(still)


def at_work(still):
    return [
        f"{each.sign} {each.key} {each.phase} {each.text if each.text == kanban.LEFT else ''}".strip()
        for each in kanban.lines(folded(still.store).work)
    ]


def test_draining_and_stopping_are_told_apart(still, project):
    chain = chain_scenes.running(still.store, project)
    chain.store.write_now(lambda tx: chains.drain(tx, chain.chain_id))
    assert lines(folded(still.store))[0].endswith("1/7 draining")
    chain.store.write_now(lambda tx: chains.drain(tx, chain.chain_id, now=True))
    assert lines(folded(still.store))[0].endswith("1/7 stopping")


def test_a_proposal_says_which_session_of_which_chain_asks(still, project):
    running = chain_scenes.running(still.store, project)
    state, now = folded(still.store), still.store.clock.now()
    [row] = state.views(now).queue.waiting
    assert row.who == "ch-2 s3 · T-5 · implementer"
    front = state.views(now, running.last).queue.front
    assert front is not None
    assert (front.chain, front.task, front.role) == ("ch-2 s3", "T-5", "implementer")


def test_a_task_that_is_done_by_itself_makes_no_chain():
    state = State().fold([row(1, "task.run.step", {"chain_id": "", "task_id": "T-1"})])
    assert state.chains.chains == {}


def test_trees_open_and_fold_by_steps():
    found = Chains()
    found.apply(row(1, "chain.created", {"chain_id": "ch-1"}))
    chain, trees = found.chains["ch-1"], Trees()
    assert trees.level(chain) == LIVE
    assert trees.turn(chain, 1)
    assert trees.level(chain) == WHOLE
    assert not trees.turn(chain, 1)
    assert trees.turn(chain, -1)
    assert trees.turn(chain, -1)
    assert trees.level(chain) == CLOSED
    assert not trees.turn(chain, -1)
    found.apply(row(2, "chain.completed", {"chain_id": "ch-1"}))
    assert trees.turn(chain, 1)
    assert trees.level(chain) == WHOLE


def test_agents_from_outside_show_what_they_did_last():
    state = State().fold(
        [
            row(1, "agent.session_started", {"agent_session": "a", "agent": "claude"}),
            row(2, "agent.hook", {"agent_session": "a", "event": "PostToolUse", "tool": "Edit",
                                  "task_id": "T-4"}),
            row(3, "agent.session_started", {"agent_session": "b", "agent": "codex"}),
            row(4, "agent.session_ended", {"agent_session": "b", "reason": "exit"}),
        ]
    )  # fmt: skip
    rows = list(state.agents.rows())
    assert [(each.key, each.sign, each.title, each.state) for each in rows] == [
        ("agent/a", "▶", "T-4 claude", "Edit"),
        ("agent/b", "✔", "codex", "ended"),
    ]
    title, (turn,) = state.agents.turns("agent/a") or ("", ())
    assert (title, [each.text for each in turn.lines]) == ("T-4 claude", ["began", "Edit"])


def test_a_chain_that_left_tasks_undone_says_why():
    progress = chain_trees.Progress(total=9, done=2, blocked=3, ready=1, under_way=1)
    assert chain_trees.left_undone(progress) == (
        "3 blocked, 1 in progress, 1 ready, 2 waiting for other tasks"
    )
    assert chain_trees.left_undone(chain_trees.Progress(total=2, done=1, blocked=1)) == "1 blocked"
