"""Estimates of real sessions: made before they begin, corrected once, learned from only when done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from loop.scenario import ask, finish

from cockpit.backlog.service import create_task
from cockpit.chains.report.measures import measure_chains
from cockpit.loop.planner.estimate_scope import estimate_scope
from cockpit.loop.planner.read_session_estimate import read_session_estimate
from cockpit.loop.runtime import Runtime
from cockpit.loop.runtime_settings import Limits
from cockpit.loop.views.estimate_text import body_text
from cockpit.loop.views.session_report import session_text
from cockpit.store.backlog import dependencies
from cockpit.store.backlog.queue_scope import Scope
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow

LOOK = ask("file:calc.py", text="Looking.")


def answers(waves: int = 1, status: str = "done") -> str:
    return LOOK + finish(f"wave_from = {waves}", status)


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


async def test_it_is_made_before_the_first_wave_and_says_what_it_rests_on(runtime, script):
    session_id = await runtime.start("why?", model=script(answers()), interactive=False)
    [(action, made)] = events(runtime.store, session_id)
    assert (action, made.kind, made.unit) == ("estimate.made", "investigate", "session")
    assert (made.expected.basis, made.expected.history) == ("defaults", 0)
    text = runtime.store.read_now(lambda c: session_text(c, session_id))
    assert "≈ about" in text
    assert "from shipped defaults" in text


async def test_what_is_done_is_the_history_of_the_next(runtime, script):
    for count in range(6):
        session = await run(runtime, script(answers(waves=4)))
        body = estimate(runtime.store, session.session_id)
        assert body["first"]["history"] == (count if count >= 3 else 0)
        assert body["actual"]["waves"] == 4
    assert body["first"]["basis"] == "history"
    waves = body["first"]["waves"]
    assert (waves["likely"], waves["high"]) == (4, 4)
    lines = "\n".join(body_text(body))
    assert "from 5 past tasks" in lines
    assert "took    4 waves" in lines
    accuracy = runtime.store.read_now(measure_chains).rows[-1]
    assert (len(accuracy.series), accuracy.series[-1]) == (6, 0.0)
    assert "100% of 6 within" in accuracy.detail


@pytest.mark.parametrize("end", ["blocked", "failed"])
async def test_no_other_end_teaches(runtime, script, end):
    name = script(answers(status="blocked") if end == "blocked" else LOOK)
    if end == "failed":
        name = script(finish("wave_from = 9"))
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


async def test_it_is_corrected_once_when_the_range_is_passed(runtime, tmp_path):
    short, longer = tmp_path / "short.toml", tmp_path / "longer.toml"
    short.write_text(answers(waves=2))
    longer.write_text(answers(waves=4))
    for _ in range(3):
        await run(runtime, f"script:{short}")
    session = await run(runtime, f"script:{longer}")
    revised = [
        detail
        for action, detail in events(runtime.store, session.session_id)
        if action == "estimate.made" and detail.why
    ]
    [corrected] = revised
    assert corrected.done == 2
    assert corrected.expected.waves.low > corrected.done
    assert "at most 2 expected" in corrected.why
    body = estimate(runtime.store, session.session_id)
    assert body["first"]["waves"]["high"] == 2
    assert body["now"]["waves"]["high"] == 4


def test_a_backlog_is_estimated_with_its_dependencies(tmp_path):
    def fill(tx: Tx) -> None:
        for number in range(1, 31):
            create_task(tx, f"Task {number}", by="person")
            if number % 5 == 0:
                dependencies.add(tx, f"T-{number}", f"T-{number - 1}", "blocks", by="person")

    with Store.open(tmp_path / "cockpit.db") as store:
        store.write_now(fill)
        scope = store.read_now(lambda c: estimate_scope(c, Scope(), "anthropic:claude", None))
        assert (len(scope.tasks), scope.blocked, scope.left_out) == (30, 0, 0)
        one, many = scope.elapsed_ms(1), scope.elapsed_ms(8)
        assert many.likely < one.likely == pytest.approx(scope.total.work_ms.likely)
        assert scope.total.cost_usd is None
        named = store.read_now(
            lambda c: estimate_scope(c, Scope(), "anthropic:claude", 1e-6, named=["T-7"])
        )
        assert [each.task.task_id for each in named.tasks] == ["T-7"]
        assert named.total.cost_usd is not None
