"""Durable jobs: what they found does not depend on when they ended, nor on where a crash fell."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from store.store_world import begin

from cockpit.observe.minhash_sketch import sketch_text
from cockpit.store.context import facts, observation_jobs
from cockpit.store.context.facts import Fact, Level, ObservingWave, SessionFact
from cockpit.store.context.observation_jobs import JobResult, JobRow
from cockpit.store.db.database import Store
from cockpit.store.journal.details.detail import detail_body
from cockpit.store.sessions import waves

pytestmark = pytest.mark.slow

MOST = 50_000


class Run:
    """A session in a real store, and what its waves find."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.session_id = store.write_now(begin)
        self.look = self._next()

    def wave(self) -> ObservingWave:
        """End this wave and begin the next."""
        failure = {"retryable": False, "error_class": "test", "message": "its turn is over"}
        self.store.write_now(lambda tx: waves.fail(tx, self.look.wave_id, **failure))
        return self._next()

    def _next(self) -> ObservingWave:
        made = self.store.write_now(
            lambda tx: waves.create(tx, session_id=self.session_id, trace_id="t")
        )
        self.look = ObservingWave(self.session_id, made.wave_id, made.ordinal, made.pinned_now)
        return self.look

    def plan(self, count: int) -> list[JobRow]:
        rows = [JobRow(n, "q-1", "file", f"file:{n}", f"file:{n}") for n in range(1, count + 1)]
        return self.store.write_now(lambda tx: observation_jobs.plan(tx, self.look.wave_id, rows))

    def end(self, *ended: JobResult, most: int = MOST) -> None:
        self.store.write_now(
            lambda tx: observation_jobs.record_results(tx, self.look, ended, most=most)
        )

    def close(self, most: int = MOST) -> None:
        self.store.write_now(lambda tx: observation_jobs.finish_wave(tx, self.look, most=most))

    def find(self, *found: Sequence[Fact], most: int = MOST) -> None:
        """One wave: a job for each of ``found``, all done."""
        todo = self.plan(len(found))
        self.end(*(JobResult(row, "done", made) for row, made in zip(todo, found, strict=True)))
        self.close(most)

    def linked(self) -> list[SessionFact]:
        return self.store.read_now(
            lambda c: facts.select_linked(c, self.session_id, self.look.ordinal)
        )

    def live(self) -> list[str]:
        return [one.source_ref for one in self.linked() if not one.superseded]

    def summary(self) -> dict[str, Any]:
        return self.store.read_now(
            lambda c: detail_body(observation_jobs.summarize_wave(c, self.look.wave_id))
        )


@contextmanager
def running() -> Iterator[Run]:
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "a.db") as store:
        yield Run(store)


def made(name: str, text: str = "", *, key: str = "") -> Fact:
    words = text or f"the words of {name}"
    return Fact(
        "file", f"file:{name}", "situational", Level(words, 10), Level(name, 1),
        provenance={"path": name}, dedupe_key=key or f"file:{name}", sketch=sketch_text(words),
    )  # fmt: skip


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)])
def test_what_is_granted_again_is_lifted_and_past_the_cap_stays_as_it_was(order):
    a, b, c = made("a"), made("b"), made("c")
    with running() as run:
        run.find([a, b, c])
        before, first = run.linked(), run.look.ordinal
        run.look = replace(run.wave(), whole=frozenset({a.fact_id}))
        todo = run.plan(3)
        for at in order:
            # Two jobs find what stood there; the last is past the cap.
            run.end(JobResult(todo[at], "done", [[a, b], [b], [c]][at]))
        run.close(most=1)
        lifted = [one for one in run.linked() if one.ordinal > first]
        assert [(one.fact_id, one.utility) for one in lifted] == [(b.fact_id, 1_000_000)]
        live = {one.fact_id: one.ordinal for one in run.linked() if not one.superseded}
        assert live == {a.fact_id: first, b.fact_id: first + 1, c.fact_id: first}
        assert run.store.read_now(lambda k: facts.select_linked(k, run.session_id, first)) == before
        assert run.summary()["refused"] == {"fact_cap": 1}
        counts = run.store.read_now(
            lambda k: observation_jobs.summarize_items(k, run.look, "q-1", {})
        )
        assert [(one["facts"], one["new"]) for one in counts] == [(2, 1), (1, 0), (0, 0)]


def test_near_duplicates_share_a_cluster_and_the_past_does_not_change() -> None:
    lines = [f"line {n} of something long enough to compare" for n in range(40)]
    text = "\n".join(lines)
    near = "\n".join([*lines[:39], "and another end"])
    with running() as run:
        run.find([made("a", text)], [made("b", "quite other words stand in this short text")])
        (first, other) = run.linked()
        assert first.cluster and first.cluster != other.cluster
        run.wave()
        run.find([made("copy of a", near)])
        a, b, copy = run.linked()
        assert copy.cluster == a.cluster == first.cluster and b == other and a == first


def test_no_secret_comes_in_with_a_job_and_no_text_breaks_it() -> None:
    token = "ghp_" + "a1B2" * 9
    with running() as run:
        rows = [JobRow(1, "q-1", "search", f"search:{token}", f"search:{token}")]
        (job,) = run.store.write_now(lambda tx: observation_jobs.plan(tx, run.look.wave_id, rows))
        assert token not in job.item
        run.end(JobResult(job, "failed", [made("odd \ud800", "odd \ud800 text")], f"no {token}"))
        run.close()
        (row,) = run.store.read_now(lambda c: observation_jobs.select_for_wave(c, run.look.wave_id))
        assert token not in row.reason
        assert run.live() == ["file:odd \ufffd"]


NAMES = st.sampled_from(["a", "b", "c", "d"])
FOUND = st.lists(st.lists(st.tuples(NAMES, st.sampled_from("xy")), max_size=4), max_size=5)


@pytest.mark.search
@settings(max_examples=examples(3), deadline=None)
@given(
    st.lists(FOUND, min_size=1, max_size=3), st.integers(1, 8), st.randoms(use_true_random=False)
)
def test_neither_order_nor_batches_show(looks, most, dice):
    with running() as straight, running() as shaken:
        for number, found in enumerate(looks):
            if number:
                straight.wave()
                shaken.wave()
            made_by_job = [
                [made(f"{n} {part}", f"{n} {part} {at % 2}", key=n) for n, part in one]
                for at, one in enumerate(found)
            ]
            straight.find(*made_by_job, most=most)
            todo = shaken.plan(len(found))
            order = list(range(len(found)))
            dice.shuffle(order)
            while order:
                batch = [order.pop() for _ in range(dice.randint(1, len(order)))]
                shaken.end(
                    *(JobResult(todo[at], "done", made_by_job[at]) for at in batch), most=most
                )
            shaken.close(most)
            assert shaken.linked() == straight.linked()
