"""Estimates of real sessions: made before they begin, revised after waves, learned from only when done."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cockpit.chains.report.measures import measure_chains
from cockpit.core.clock import CountingIds, FixedClock
from cockpit.core.project_paths import locate_project
from cockpit.decide.model_settings import ModelPrice, ModelSettings
from cockpit.loop.planner.estimate_scope import estimate_scope
from cockpit.loop.planner.estimate_session import EstimateInput, make_estimate
from cockpit.loop.planner.follow_session import learn_session
from cockpit.loop.planner.read_session_estimate import read_session_estimate
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.loop.views.estimate_text import basis_text, body_text, expected_text
from cockpit.loop.views.event_text import event_line
from cockpit.loop.views.session_report import session_text
from cockpit.store.backlog import tasks
from cockpit.store.backlog.queue_scope import Scope
from cockpit.store.db import migrate
from cockpit.store.db.database import Store
from cockpit.store.estimates import estimates
from cockpit.store.journal import journal
from cockpit.store.journal.details.estimates import (
    EstimateLearned,
    EstimateMade,
    EstimateRevised,
    Expected,
    Range,
)
from cockpit.store.sessions import sessions

FINISH = """
[[turn]]
when = {{ wave_from = {waves} }}
text = "That is it."
[[turn.call]]
name = "finish"
arguments = {{ status = "{status}", summary = "It subtracts." }}
"""
LOOK = """
[[turn]]
text = "Looking."
[[turn.call]]
name = "request_context"
arguments = { purpose = "see", question = "what?", scope = ["file:calc.py"] }
"""


def answers(waves: int = 1, status: str = "done") -> str:
    return LOOK + FINISH.format(waves=waves, status=status)


async def run(
    runtime: Runtime, model: str, words: str = "why does add subtract?", **options: Any
) -> sessions.Session:
    session_id = await runtime.start(
        words, model=model, policy="reads", interactive=False, **options
    )
    return await runtime.run(session_id)


def estimate(store: Store, session_id: str) -> Mapping[str, Any]:
    body = store.read_now(lambda c: read_session_estimate(c, session_id))
    assert body is not None
    return body


def events(store: Store, session_id: str = "") -> list[tuple[str, Any]]:
    rows = store.read_now(lambda c: journal.rows(c, session_id=session_id or None))
    return [(row.action, row.detail) for row in rows if row.action.startswith("estimate.")]


async def test_it_is_made_before_the_first_wave_and_says_what_it_rests_on(opened, script):
    async with opened() as runtime:
        session_id = await runtime.start("why?", model=script(answers()), interactive=False)
        [(action, made)] = events(runtime.store, session_id)
        assert (action, made.kind, made.unit) == ("estimate.made", "investigate", "session")
        assert (made.expected.basis, made.expected.history) == ("defaults", 0)
        text = runtime.store.read_now(lambda c: session_text(c, session_id))
        assert "≈ about" in text
        assert "from shipped defaults" in text


async def test_what_is_done_is_the_history_of_the_next(opened, script):
    async with opened() as runtime:
        for count in range(6):
            session = await run(runtime, script(answers(waves=4)))
            body = estimate(runtime.store, session.session_id)
            assert body["first"]["history"] == count
            assert body["actual"]["waves"] == 4
        assert body["first"]["basis"] == "history"
        waves = body["first"]["waves"]
        assert (waves["likely"], waves["high"]) == (4, 4)
        lines = "\n".join(body_text(body))
        assert "from 5 past tasks" in lines
        assert "took    4 waves" in lines
        accuracy = runtime.store.read_now(measure_chains).estimates
        assert (accuracy.count, accuracy.waves[-1]) == (6, 0.0)
        assert accuracy.within == 6


@pytest.mark.parametrize("end", ["blocked", "limit", "stopped", "failed"])
async def test_no_other_end_teaches(opened, script, end: str):
    async with opened() as runtime:
        name = script(answers(status="blocked") if end == "blocked" else LOOK)
        if end == "failed":
            name = script(FINISH.format(waves=9, status="done"))
            with pytest.raises(Exception, match="no turn for wave 1"):
                await run(runtime, name)
        elif end == "stopped":
            session_id = await runtime.start("why?", model=name, interactive=False)
            runtime.store.write_now(lambda tx: sessions.set_status(tx, session_id, "stopped"))
        else:
            await run(runtime, name, limits=Limits(max_waves=3))
        assert "estimate.learned" not in [action for action, _ in events(runtime.store)]
        session_id = await runtime.start("why?", model=name, interactive=False)
        assert estimate(runtime.store, session_id)["first"]["history"] == 0


async def test_a_session_that_is_resumed_after_its_end_stays_one_past_task(opened, script):
    async with opened() as runtime:
        session = await run(runtime, script(answers()))
        await runtime.say(session.session_id, "and multiply?")
        session = await runtime.run(session.session_id)
        body = estimate(runtime.store, session.session_id)
        assert body["actual"]["waves"] == 2
        learned = [detail for action, detail in events(runtime.store) if action.endswith("learned")]
        assert [detail.again for detail in learned][1] is True
        assert len(learned) == 2
        following = await runtime.start("why?", model=session.model, interactive=False)
        assert estimate(runtime.store, following)["first"]["history"] == 1
        accuracy = runtime.store.read_now(measure_chains).estimates
        assert accuracy.count == 1


async def test_a_fork_and_what_begins_elsewhere_teach_nothing(opened, script):
    async with opened() as runtime:
        session = await run(runtime, script(answers()))
        store = runtime.store

        def fork(tx: Any) -> None:
            copy = sessions.create(
                tx, task_type="investigate", title="fork", words="why?", target={},
                model=session.model, policy="ask", interactive=False, root=Path("/"), rev=None,
                profile_id=session.profile_id, limits={}, project="p", branch="",
            )  # fmt: skip
            learn_session(tx, copy, "done")

        store.write_now(fork)
        rows = store.read_now(
            lambda c: estimates.select_history(c, "session", "investigate", "script", 9)
        )
        assert [row.subject for row in rows] == [session.session_id]


async def test_it_is_revised_where_the_range_is_passed_and_never_below_what_was_used(
    opened, script
):
    async with opened() as runtime:
        session = await run(runtime, script(answers(waves=20)))
        revised = [
            detail
            for action, detail in events(runtime.store, session.session_id)
            if action == "estimate.revised"
        ]
        assert revised
        assert all(detail.expected.waves.low > detail.done for detail in revised)
        likely = [detail.expected.waves.likely for detail in revised]
        assert likely == sorted(likely)
        assert "only longer past tasks count" in revised[0].why or "expected" in revised[0].why
        assert len(revised) < 20, "a revision that changes little is not stored"


async def test_the_clock_may_go_back(project: Path, tmp_path: Path, script):
    clock = FixedClock()
    settings = RuntimeSettings(user_dir=tmp_path / "user")
    async with open_runtime(locate_project(project), settings, clock=clock) as runtime:
        brief = FINISH.replace("wave_from = {waves}", 'wave_from = 2, contains = ["quokka"]')
        model = script(answers(waves=9) + brief.format(status="done"))
        await run(runtime, model)
        clock.advance(-86_400 * 30)
        last = await run(runtime, model, "why does add subtract, quokka?")
        rows = runtime.store.read_now(
            lambda c: estimates.select_history(c, "session", "investigate", "script", 9)
        )
        assert [row.waves for row in rows] == [2, 9], "the journal's order, not the clock's"
        assert rows[0].work_ms >= 0
        assert estimate(runtime.store, last.session_id)["actual"]["work_ms"] >= 0


async def test_two_projects_learn_nothing_from_each_other(opened, script, tmp_path: Path):
    async with opened() as runtime:
        session = await run(runtime, script(answers()))
    other = tmp_path / "other"
    other.mkdir()
    settings = RuntimeSettings(user_dir=tmp_path / "user")
    async with open_runtime(locate_project(other), settings) as runtime:
        session_id = await runtime.start("why?", model=session.model, interactive=False)
        assert estimate(runtime.store, session_id)["first"]["history"] == 0


async def test_a_price_of_the_user_gives_a_cost_and_an_unknown_one_none(opened, script):
    prices = {"openai-compatible:mine": ModelPrice(input=2.0, output=10.0)}
    settings = ModelSettings(base_url="http://127.0.0.1:9/v1", prices=prices)
    async with opened(model=settings, environment={"COCKPIT_API_KEY": "k"}) as runtime:
        desk = await runtime.planner()
        priced = await desk.estimate_words("why?", "openai-compatible:mine")
        assert priced.estimate.cost_usd is not None
        usd = priced.estimate.cost_usd.likely / priced.estimate.tokens.likely
        assert usd == pytest.approx((0.97 * 2.0 + 0.03 * 10.0) / 1e6)
        unknown = await desk.estimate_words("why?", "openai-compatible:nobody-knows")
        assert unknown.estimate.cost_usd is None
        assert unknown.estimate.tokens.likely > 0


async def test_a_session_of_another_type_is_estimated_anew_and_is_no_accuracy(opened, script):
    async with opened() as runtime:
        name = script(answers(waves=2))
        session_id = await runtime.start("why?", model=name, policy="reads", interactive=False)
        await runtime.change(session_id, task_type="docs")
        await runtime.run(session_id)
        rows = events(runtime.store, session_id)
        assert "its task type is docs now" in [d.why for a, d in rows if a == "estimate.revised"]
        assert estimate(runtime.store, session_id)["kind"] == "docs"
        assert runtime.store.read_now(measure_chains).estimates.count == 0
        following = await runtime.start("/docs it", model=name, interactive=False)
        assert estimate(runtime.store, following)["first"]["history"] == 1


def test_done_sessions_of_an_older_store_are_history(tmp_path: Path):
    path, clock = tmp_path / "cockpit.db", FixedClock()
    with Store.open(path, clock, CountingIds()) as store:

        def old(tx: Any) -> None:
            for status in ("done", "blocked"):
                session = sessions.create(
                    tx, task_type="bug", title="t", words="w", target={}, model="anthropic:x",
                    policy="ask", interactive=False, root=tmp_path, rev=None, profile_id="default",
                    limits={}, project="p", branch="",
                )  # fmt: skip
                tx.execute(
                    "INSERT INTO wave_runs(wave_id, session_id, ordinal, phase, trace_id, pinned_now,"
                    " created_at) VALUES (?,?,1,'completed','t','','')",
                    (f"w-{status}", session.session_id),
                )
                sessions.set_status(tx, session.session_id, "completed", result={"status": status})

        store.write_now(old)
        store.write_now(lambda tx: tx.execute("DELETE FROM estimates"))
        fill = next(
            each.sql for each in migrate.load_migrations() if each.name.endswith("_estimates")
        )
        insert = fill[fill.index("INSERT INTO estimates") :]
        store.write_now(lambda tx: tx.execute(insert))
        rows = store.read_now(lambda c: estimates.select_history(c, "session", "bug", "model", 9))
        assert [(row.waves, row.size, row.made_json) for row in rows] == [(1, 0, "")]
        body = estimate(store, rows[0].subject)
        assert (body["first"], body["now"], body["actual"]["waves"]) == (None, None, 1)


def test_a_backlog_of_five_hundred_tasks_is_estimated_with_its_dependencies(tmp_path: Path):
    with Store.open(tmp_path / "cockpit.db", FixedClock(), CountingIds()) as store:
        _fill(store, 500)
        scope = store.read_now(
            lambda c: estimate_scope(c, Scope(), tmp_path, "anthropic:claude", None)
        )
        assert (len(scope.tasks), scope.blocked, scope.left_out) == (500, 0, 0)
        one, many = scope.elapsed_ms(1), scope.elapsed_ms(8)
        assert many.likely < one.likely == pytest.approx(scope.total.work_ms.likely)
        assert scope.total.cost_usd is None
        named = store.read_now(
            lambda c: estimate_scope(c, Scope(), tmp_path, "anthropic:claude", 1e-6, named=["T-7"])
        )
        assert [each.task.task_id for each in named.tasks] == ["T-7"]
        assert named.total.cost_usd is not None


def _fill(store: Store, count: int) -> None:
    from cockpit.backlog.service import create_task
    from cockpit.store.backlog import dependencies

    def step(tx: Any) -> None:
        for number in range(1, count + 1):
            create_task(tx, f"Task {number}", by="person")
            if number % 5 == 0:
                dependencies.add(tx, f"T-{number}", f"T-{number - 1}", "blocks", by="person")

    store.write_now(step)
    assert store.read_now(lambda c: tasks.count(c)) == count


def test_the_wording_is_whole_without_a_price_and_for_one():
    span = Range(low=1, likely=1, high=1)
    cheap = Range(low=0.001, likely=0.002, high=0.5)
    expected = Expected(
        waves=span,
        tokens=Range(low=900, likely=1_200, high=2_500_000),
        cost_usd=cheap,
        work_ms=span,
        basis="mixed",
        history=1,
    )
    assert expected_text(expected) == (
        "about 1 wave, 1k tokens (900–2.5M), $0.0020 ($0.0010–$0.50)"
    )
    assert basis_text(expected) == "from 1 past task and shipped defaults"
    unpriced = EstimateMade(
        subject="s", unit="session", kind="bug", model="m", size=1,
        expected=Expected(
            waves=span, tokens=span, cost_usd=None, work_ms=span, basis="defaults", history=0
        ),
    )  # fmt: skip
    assert basis_text(unpriced.expected).endswith("no price is known")


def test_history_is_read_through_its_index(tmp_path: Path):
    with Store.open(tmp_path / "cockpit.db", FixedClock(), CountingIds()) as store:
        plan = store.read_now(_explain)
        assert "USING INDEX idx_estimates_history" in plan


def _explain(connection: sqlite3.Connection) -> str:
    rows = connection.execute(
        "EXPLAIN QUERY PLAN SELECT * FROM estimates INDEXED BY idx_estimates_history WHERE unit='session'"
        " AND kind='bug' AND family='model' AND learned_seq IS NOT NULL ORDER BY learned_seq DESC LIMIT 9"
    )
    return json.dumps([str(row[-1]) for row in rows])


def test_the_estimate_of_a_subject_is_made_once(tmp_path: Path):
    with Store.open(tmp_path / "cockpit.db", FixedClock(), CountingIds()) as store:

        def twice(tx: Any) -> None:
            for _ in range(2):
                make_estimate(
                    tx, subject="T-1/1", unit="task", kind="bug", model="m", given=EstimateInput(9)
                )

        with pytest.raises(Exception, match="UNIQUE"):
            store.write_now(twice)
        assert store.read_now(lambda c: estimates.find(c, "T-1/1")) is None


def test_a_session_of_an_agent_counts_turns_in_each_line_of_its_estimate():
    span = Range(low=1.0, likely=2.0, high=6.0)
    expected = Expected(
        waves=span, tokens=span, cost_usd=None, work_ms=span, basis="defaults", history=0
    )
    for model, unit in (("runner:claude", "turn"), ("anthropic:x", "wave")):
        counted = {"subject": "s-1", "unit": "session", "kind": "claude", "model": model}
        revised = EstimateRevised(expected=expected, done=1, why="", **counted)
        learned = EstimateLearned(
            expected=expected, waves=3, tokens=1, cost_usd=None, work_ms=1, **counted
        )
        for detail in (revised, learned):
            line = event_line(detail)
            assert line is not None
            assert unit in line.text
