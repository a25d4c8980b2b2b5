"""The feedback engine: judge each wave when it ends, and again when more is known.

A wave's own calls and actions are known at its end; whether its requests were granted, and what it
missed, one wave later; whether its decision was right, some waves later. Every change of the judgement
adds a row. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask
from cockpit.learn import decision_outcomes, decision_quality
from cockpit.learn.decision_outcomes import Outcomes
from cockpit.learn.missed_context import find_missed
from cockpit.learn.regret import find_regrets
from cockpit.store.context import wave_feedback
from cockpit.store.context.wave_feedback import (
    VERDICTS,
    Assessment,
    Feedback,
    MissedFact,
    OperatorVerdict,
)
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import waves
from cockpit.store.sessions.waves import Wave

WINDOW = 8
"""How many waves back a later outcome still counts."""
MOST_WORDS = 4_000


class FeedbackRefused(CockpitError):
    """The verdict is not valid."""

    code = "usage"


def judge_after_wave(tx: Tx, wave: Wave) -> list[Feedback]:
    """Judge ``wave``, which has just ended, and the earlier waves that its end says something about.

    Runs in the transaction that completes the wave. Returns the new rows, the oldest wave's first.
    """
    first = wave.ordinal - WINDOW
    recent = {
        each.wave_id: each
        for each in waves.select_for_session(tx.connection, wave.session_id, first, wave.ordinal)
        if each.packet_id
    }
    seen = decision_outcomes.read_outcomes(
        tx.connection, {name: each.ordinal for name, each in recent.items()}
    )
    # Of an older wave that did nothing, nothing that happens later says anything.
    acted = {deed.ordinal for deed in seen.deeds}
    affected = {
        wave_id: each
        for wave_id, each in recent.items()
        if each.ordinal >= wave.ordinal - 1 or each.ordinal in acted
    }
    feedback = wave_feedback.find_latest_by_wave(tx.connection, list(affected))
    added = []
    for wave_id, each in affected.items():
        before = feedback[wave_id].assessment if wave_id in feedback else None
        if each.ordinal == wave.ordinal:
            now = _ended(tx, each, seen, before)
        elif before is None:
            continue  # it failed, or ended before there was any feedback
        elif each.ordinal == wave.ordinal - 1:
            now = _settled(tx, each, seen, before)
        else:
            now = _judged(seen, each.ordinal, before, before.measures, before.missed)
        if now != before:
            added.append(wave_feedback.append(tx, wave_id, now))
    return added


def record_verdict(
    tx: Tx, wave_id: str, verdict: str, words: str = "", *, by: str = "person"
) -> Feedback:
    """Record the user's verdict on a wave; a newer one replaces it.

    Raises :class:`FeedbackRefused` and :class:`~cockpit.core.errors.NotFound`.
    """
    if verdict not in VERDICTS:
        raise FeedbackRefused(f"Feedback is {' or '.join(VERDICTS)}, not {verdict[:40]!r}.")
    if len(words) > MOST_WORDS:
        raise FeedbackRefused(f"The text is longer than {MOST_WORDS:,} characters.")
    waves.load(tx.connection, wave_id)
    feedback = wave_feedback.find_latest(tx.connection, wave_id)
    before = feedback.assessment if feedback else Assessment(None, {})
    operator = OperatorVerdict(verdict, mask(words), by)
    return wave_feedback.append(tx, wave_id, _with(before, operator), actor=by)


def _with(before: Assessment, operator: OperatorVerdict) -> Assessment:
    others = tuple(why for why in before.regrets if why != "operator")
    why = others if operator.verdict == "good" else (*others, "operator")
    return replace(
        before,
        score=decision_quality.score(before.measures, bool(others), operator),
        regrets=why,
        operator=operator,
    )


def _ended(tx: Tx, wave: Wave, seen: Outcomes, before: Assessment | None) -> Assessment:
    """Judge a wave at its own end."""
    calls = decision_quality.calls(tx.connection, seen, wave)
    measures = _given(
        approvals=decision_quality.approvals(seen, wave.ordinal),
        actions=decision_quality.actions(seen, wave.ordinal),
        signals=decision_quality.signals(0),
        calls=calls,
    )
    return _judged(seen, wave.ordinal, before or Assessment(None, {}), measures, ())


def _settled(tx: Tx, wave: Wave, seen: Outcomes, before: Assessment) -> Assessment:
    """Judge a wave after the next wave has read the granted context."""
    lost = find_missed(tx.connection, wave)
    measures = {
        **before.measures,
        **_given(
            approvals=decision_quality.approvals(seen, wave.ordinal),
            signals=decision_quality.signals(len(lost)),
        ),
    }
    return _judged(seen, wave.ordinal, before, measures, lost)


def _judged(
    seen: Outcomes,
    ordinal: int,
    before: Assessment,
    measures: Mapping[str, float],
    lost: tuple[MissedFact, ...],
) -> Assessment:
    tested = _given(tests=decision_quality.tests(seen, ordinal))
    all_measures = {**measures, **tested}
    why = find_regrets(seen, ordinal)
    now = Assessment(decision_quality.score(all_measures, bool(why), None), all_measures, lost, why)
    return now if before.operator is None else _with(now, before.operator)


def _given(**measures: float | None) -> dict[str, float]:
    return {name: value for name, value in measures.items() if value is not None}
