"""The score of a wave: from approvals, actions, tests, calls and signals, and nothing else."""

from __future__ import annotations

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from learn_world import World

from cockpit.learn import decision_quality
from cockpit.learn.decision_quality import VersionMeasure
from cockpit.store.context.wave_feedback import OperatorVerdict

GOOD, BAD = OperatorVerdict("good", "", "person"), OperatorVerdict("bad", "", "person")


SOME = settings(max_examples=examples(20))


def measures_of(rows, wave):
    return next(row.assessment.measures for row in rows if row.wave_id == wave.wave_id)


def test_a_quiet_wave_has_only_the_signals_it_did_not_miss(world):
    wave = world.begin()
    world.decide(wave)
    (row,) = world.end(wave)
    assert (row.assessment.measures, row.assessment.score) == ({"signals": 1.0}, 1.0)


def test_only_a_persons_decisions_count_and_a_revision_counts_half(world):
    wave = world.begin()
    world.propose(wave, "plain")
    world.propose(wave, "by-policy", by="policy:all")
    world.propose(wave, "late", "expired", by="deadline")
    world.propose(wave, "narrowed", body={"items": [{"item": "a"}, {"item": "b"}]}, narrowed=["a"])
    world.propose(wave, "no", "rejected", kind="action")
    assert measures_of(world.end(wave), wave)["approvals"] == 0.5


def test_a_discussion_counts_against_its_wave_and_its_answer_half(world):
    first = world.begin()
    asked = world.propose(first, "first", "discussed")
    assert measures_of(world.end(first), first)["approvals"] == 0.0
    second = world.begin()
    world.propose(second, "second", revises=asked)
    rows = world.end(second)
    assert [row.wave_id for row in rows] == [second.wave_id]
    assert measures_of(rows, second)["approvals"] == 0.5


def test_calls_that_were_malformed_redundant_or_turned_back_count_against_it(world):
    wave = world.begin()
    request = ("request_context", "")
    world.decide(
        wave, request, request, ("run", "argv is missing"), ("write_file", ""), ("finish", "")
    )
    world.ask(wave, "file:a.py", place=1)
    world.act(wave, "write_file", {"path": "b"}, place=4, ends="refused")
    assert measures_of(world.end(wave), wave)["calls"] == 0.4


def test_the_first_tests_after_a_change_say_whether_it_was_right(world):
    first = world.begin()
    world.write(first, "a.py", "0", "1")
    assert "tests" not in measures_of(world.end(first), first)
    second = world.begin()
    world.test(second, 0)
    assert measures_of(world.end(second), first)["tests"] == 1.0
    third = world.begin()
    world.test(third, 1)
    assert [row.wave_id for row in world.end(third)] == [third.wave_id]


MEASURES = st.dictionaries(
    st.sampled_from(sorted(decision_quality.WEIGHTS)),
    st.floats(0, 1),
    max_size=len(decision_quality.WEIGHTS),
)


@SOME
@given(MEASURES, st.booleans(), st.sampled_from([None, GOOD, BAD]))
def test_a_score_is_from_0_to_1_or_not_there(measures, regretted, operator):
    found = decision_quality.score(measures, regretted, operator)
    if found is None:
        assert not measures and operator is None
    else:
        assert 0 <= found <= 1


@SOME
@given(MEASURES, st.booleans())
def test_a_persons_verdict_outweighs_everything_that_was_measured(measures, regretted):
    assert decision_quality.score(measures, regretted, GOOD) >= 0.75
    assert decision_quality.score(measures, regretted, BAD) <= 0.25


def test_measured_is_the_mean_of_the_newest_rows_of_a_versions_waves(store):
    world = World(store)
    profile = world.session.profile_id
    first = world.begin()
    world.propose(first, "no", "rejected")
    world.end(first)  # approvals 0 of weight 3, signals 1 of weight 2
    second = world.begin()
    world.end(second)
    for name, version, measure in (
        (profile, 1, VersionMeasure(0.7, 2)), (profile, 2, None), ("other", 1, None),
    ):  # fmt: skip
        assert (
            store.read_now(lambda c, n=name, v=version: decision_quality.measure_version(c, n, v))
            == measure
        )
