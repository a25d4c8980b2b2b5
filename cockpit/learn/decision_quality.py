"""Decision quality: one number of 0 to 1 for a wave, from its outcomes.

The mean of its measures, each 0 to 1 and left out where there is nothing to measure. A promotion by
policy compares it. See ``docs/reference/measures.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from msgspec import Struct

from cockpit.learn.decision_outcomes import Outcomes
from cockpit.learn.regret import tests_after
from cockpit.store.context import wave_feedback
from cockpit.store.context.wave_feedback import OperatorVerdict
from cockpit.store.sessions.waves import Wave

WEIGHTS: Mapping[str, int] = {
    "approvals": 3,
    "tests": 3,
    "actions": 2,
    "signals": 2,
    "calls": 1,
}
"""How much each measure weighs in the score."""

_OPERATOR = 0.75
"""The part of the score that the user's own verdict makes up."""
_DIGITS = 4


def approvals(outcomes: Outcomes, ordinal: int) -> float | None:
    """Return the share of the user's decisions that approved without revision."""
    return _mean([ruling.share for ruling in outcomes.rulings if ruling.ordinal == ordinal])


def actions(outcomes: Outcomes, ordinal: int) -> float | None:
    """Return the share of actions that succeeded. A red test run is an answer, not a failure."""
    return _mean(
        [
            float(deed.confirmed)
            for deed in outcomes.deeds
            if deed.ordinal == ordinal and deed.ran and deed.green is None
        ]
    )


def tests(outcomes: Outcomes, ordinal: int) -> float | None:
    """Return 1 where the tests after the wave's change were green, 0 where they were red."""
    green = tests_after(outcomes, ordinal)
    return None if green is None else float(green)


def signals(missed: int) -> float:
    """Return 1 where no signal was missed, and less for each missed one: 1/2, 1/3, …"""
    return round(1 / (1 + missed), _DIGITS)


def calls(connection: sqlite3.Connection, outcomes: Outcomes, wave: Wave) -> float | None:
    """Return the share of a wave's calls that were well formed and not refused by a guard."""
    count, malformed, unasked = connection.execute(
        "SELECT count(*), total(json_extract(value,'$.error')<>''),"
        " total(json_extract(value,'$.error')='' AND json_extract(value,'$.name')='request_context'"
        " AND NOT EXISTS (SELECT 1 FROM context_requests q WHERE q.wave_id=plans.wave_id"
        " AND q.call_id=json_extract(value,'$.call_id')))"
        " FROM plans, json_each(calls_json) WHERE plans.wave_id=?",
        (wave.wave_id,),
    ).fetchone()
    if not count:
        return None
    refused = sum(deed.refused for deed in outcomes.deeds if deed.ordinal == wave.ordinal)
    sound = float(count - malformed - unasked - refused)
    return round(sound / int(count), _DIGITS)


def score(
    measures: Mapping[str, float], regretted: bool, operator: OperatorVerdict | None
) -> float | None:
    """Return a wave's score, 0 to 1; None without a measure or a verdict.

    A regretted decision counts half. The user's verdict outweighs all measures.
    """
    weight = sum(WEIGHTS[name] for name in measures)
    mean_score = None
    if weight:
        mean = sum(WEIGHTS[name] * value for name, value in measures.items()) / weight
        mean_score = mean / 2 if regretted else mean
    if operator is not None:
        verdict = float(operator.verdict == "good")
        rest = verdict if mean_score is None else mean_score
        mean_score = _OPERATOR * verdict + (1 - _OPERATOR) * rest
    return None if mean_score is None else round(mean_score, _DIGITS)


class VersionMeasure(Struct, frozen=True):
    """The mean score, 0 to 1, of the judged waves under a profile's version, and their number."""

    mean: float
    waves: int


def measure_version(
    connection: sqlite3.Connection, profile_id: str, version: int
) -> VersionMeasure | None:
    """Return the mean score under a profile's version; None where no wave was scored."""
    scores = [
        feedback.assessment.score
        for feedback in wave_feedback.select_for_version(connection, profile_id, version)
        if feedback.assessment.score is not None
    ]
    mean = _mean(scores)
    return None if mean is None else VersionMeasure(mean, len(scores))


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), _DIGITS) if values else None
