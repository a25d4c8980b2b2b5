"""Feedback: how good a wave's decision was, as far as is known by now.

Rows are appended: a later outcome adds a new row for the same wave, and the newest one counts.
Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.errors import NotFound
from cockpit.core.secrets import mask_value
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.detail import read_part
from cockpit.store.journal.details.waves import FeedbackRecorded, MissedSignal, UserVerdict

VERDICTS = ("good", "bad")


class MissedFact(Struct, frozen=True):
    """A fact that the agent had to ask for although the session had it."""

    item: str
    """What the agent asked for."""
    fact_id: str
    source_type: str
    source_ref: str
    band: str
    held: str
    """How the packet had it: ``dropped``, or the lower level that it was shortened to."""
    tokens: int
    """Tokens of the whole fact."""


class OperatorVerdict(Struct, frozen=True):
    """The user's own verdict on a wave."""

    verdict: str
    """``good`` or ``bad``."""
    words: str
    by: str


class Assessment(Struct, frozen=True):
    """What is known of a wave's decision."""

    score: float | None
    """0 to 1; None while nothing is known."""
    measures: Mapping[str, float]
    """The parts of the score by name, each 0 to 1."""
    missed: tuple[MissedFact, ...] = ()
    regrets: tuple[str, ...] = ()
    """Why the decision turned out wrong; empty when it did not."""
    operator: OperatorVerdict | None = None


class Feedback(Struct, frozen=True):
    """One row of ``orientation_feedback``, with its wave."""

    feedback_id: str
    session_id: str
    wave_id: str
    ordinal: int
    packet_id: str
    profile_id: str
    profile_version: int | None
    assessment: Assessment
    created_at: str


_SELECT = (
    "SELECT feedback_id, session_id, f.wave_id, ordinal, packet_id, profile_id,"
    " orientation_profile_version, decision_quality_score, measures_json, missed_signal_flags,"
    " regret_flags, operator_feedback, f.created_at"
    " FROM orientation_feedback f JOIN wave_runs w USING(wave_id) JOIN sessions USING(session_id)"
)
_NEWEST = " f.rowid=(SELECT max(g.rowid) FROM orientation_feedback g WHERE g.wave_id=f.wave_id)"


def append(tx: Tx, wave_id: str, assessment: Assessment, *, actor: str = "engine") -> Feedback:
    """Store what is known of a wave now and journal ``feedback.recorded``.

    Raises :class:`NotFound` for a wave without a packet.
    """
    row = tx.execute(
        "SELECT session_id, ordinal, orientation_packet_id, profile_id, orientation_profile_version,"
        " w.trace_id, (SELECT count(*) FROM orientation_feedback f WHERE f.wave_id=w.wave_id)"
        " FROM wave_runs w JOIN sessions USING(session_id) WHERE wave_id=?",
        (wave_id,),
    ).fetchone()
    if row is None or row[2] is None:
        raise NotFound(
            f"Wave {wave_id} has no packet: it did not reach Orient, so there is nothing"
            " to assess yet."
        )
    session_id, ordinal, packet_id, profile_id, version, trace_id, before = row
    previous = find_latest(tx.connection, wave_id) if assessment.regrets else None
    operator = _operator_body(assessment.operator) if assessment.operator else None
    missed = [_missed_body(signal) for signal in assessment.missed]
    feedback_id, now = f"fb-{wave_id}-{before + 1}", tx.now()
    tx.execute(
        "INSERT INTO orientation_feedback(feedback_id, wave_id, packet_id, decision_quality_score,"
        " missed_signal_flags, operator_feedback, created_at, regret_flags, measures_json)"
        " VALUES (?,?,?,?,?,?,?,?,?)",
        (
            feedback_id,
            wave_id,
            packet_id,
            assessment.score,
            canonical_json(missed),
            None if operator is None else canonical_json(mask_value(operator)),
            now,
            canonical_json(list(assessment.regrets)),
            canonical_json(dict(assessment.measures)),
        ),
    )
    tx.journal(
        FeedbackRecorded(
            wave_id=wave_id,
            ordinal=ordinal,
            decision_quality_score=assessment.score,
            measures=dict(assessment.measures),
            missed_signals=tuple(read_part(MissedSignal, signal) for signal in missed),
            # True once for a decision, however often it is assessed: counters of regrets add this up.
            regret=bool(assessment.regrets) and not (previous and previous.assessment.regrets),
            regrets=tuple(assessment.regrets),
            operator=None if operator is None else read_part(UserVerdict, operator),
        ),
        actor=actor,
        session_id=session_id,
        wave_id=wave_id,
        trace_id=trace_id,
        packet_id=packet_id,
        profile_id=profile_id,
        profile_version=version,
    )
    return Feedback(
        feedback_id, session_id, wave_id, ordinal, packet_id, profile_id, version, assessment, now
    )


def find_latest(connection: sqlite3.Connection, wave_id: str) -> Feedback | None:
    """Read the newest row of a wave, which is the one that counts, or None."""
    by_wave = find_latest_by_wave(connection, [wave_id])
    return by_wave.get(wave_id)


def find_latest_by_wave(
    connection: sqlite3.Connection, wave_ids: Sequence[str]
) -> dict[str, Feedback]:
    """Read the newest row of each of these waves, by wave."""
    marks = ",".join("?" * len(wave_ids))
    rows = connection.execute(
        f"{_SELECT} WHERE f.wave_id IN ({marks}) AND{_NEWEST}",
        tuple(wave_ids),
    )
    return {row[2]: _read(row) for row in rows}


def select_history(connection: sqlite3.Connection, wave_id: str) -> list[Feedback]:
    """Read every row of a wave, oldest first."""
    rows = connection.execute(f"{_SELECT} WHERE f.wave_id=? ORDER BY f.rowid", (wave_id,))
    return [_read(row) for row in rows]


def select_for_version(
    connection: sqlite3.Connection, profile_id: str, version: int, limit: int = 1000
) -> list[Feedback]:
    """Read the newest row of each wave under a profile's version, newest wave first."""
    rows = connection.execute(
        f"{_SELECT} WHERE profile_id=? AND orientation_profile_version=? AND{_NEWEST}"
        " ORDER BY w.created_at DESC, w.rowid DESC LIMIT ?",
        (profile_id, version, limit),
    )
    return [_read(row) for row in rows]


def select_recent(
    connection: sqlite3.Connection, session_id: str | None = None, limit: int = 50
) -> list[Feedback]:
    """Read the newest row of each wave (of a session), newest wave first."""
    where, values = ("", ()) if session_id is None else (" session_id=? AND", (session_id,))
    rows = connection.execute(
        f"{_SELECT} WHERE{where}{_NEWEST} ORDER BY w.created_at DESC, w.rowid DESC LIMIT ?",
        (*values, limit),
    )
    return [_read(row) for row in rows]


def feedback_body(feedback: Feedback) -> dict[str, Any]:
    """Return the row as a JSON value, as commands and interfaces print it."""
    assessment = feedback.assessment
    return {
        "feedback_id": feedback.feedback_id,
        "session_id": feedback.session_id,
        "wave_id": feedback.wave_id,
        "ordinal": feedback.ordinal,
        "packet_id": feedback.packet_id,
        "profile_id": feedback.profile_id,
        "profile_version": feedback.profile_version,
        "decision_quality_score": assessment.score,
        "measures": dict(assessment.measures),
        "missed_signals": [_missed_body(signal) for signal in assessment.missed],
        "regret": bool(assessment.regrets),
        "regrets": list(assessment.regrets),
        "operator": assessment.operator and _operator_body(assessment.operator),
        "created_at": feedback.created_at,
    }


def _missed_body(signal: MissedFact) -> dict[str, Any]:
    return {
        "item": signal.item,
        "fact_id": signal.fact_id,
        "source_type": signal.source_type,
        "source_ref": signal.source_ref,
        "band": signal.band,
        "held": signal.held,
        "tokens": signal.tokens,
    }


def _operator_body(operator: OperatorVerdict) -> dict[str, Any]:
    return {"verdict": operator.verdict, "words": operator.words, "by": operator.by}


def _read(row: tuple[Any, ...]) -> Feedback:
    feedback_id, session_id, wave_id, ordinal, packet_id, profile_id, version = row[:7]
    score, measures, missed, regrets, operator, created_at = row[7:]
    assessment = Assessment(
        score,
        parse_json(measures),
        tuple(MissedFact(**signal) for signal in parse_json(missed or "[]")),
        tuple(parse_json(regrets)),
        OperatorVerdict(**parse_json(operator)) if operator else None,
    )
    return Feedback(
        feedback_id,
        session_id,
        wave_id,
        ordinal,
        packet_id,
        profile_id,
        version,
        assessment,
        created_at,
    )
