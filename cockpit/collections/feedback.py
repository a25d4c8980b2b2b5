"""Scores of waves: how good each decision was, as measured and as the user judged it.

Specified in ``docs/reference/feedback.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from cockpit.collections.choose_session import choose_session
from cockpit.collections.collection import LIMIT, Collection, Field, Part, View, open_records
from cockpit.core.errors import NotFound
from cockpit.store.context import wave_feedback
from cockpit.store.context.wave_feedback import Feedback, feedback_body
from cockpit.store.sessions import waves


class JudgedWave(Struct, frozen=True):
    """The newest score of a wave; where the wave is shown alone, all its scores, the oldest first."""

    newest: Feedback
    history: Sequence[Feedback] = ()


def _read(view: View, session: str | None, limit: int) -> Sequence[JudgedWave]:
    if view.connection is None:
        return ()
    named = None if session is None else choose_session(view.connection, session)
    return [JudgedWave(row) for row in wave_feedback.select_recent(view.connection, named, limit)]


def _find(view: View, name: str) -> JudgedWave:
    connection = open_records(view)
    rows = wave_feedback.select_history(connection, choose_wave(connection, name))
    if not rows:
        raise NotFound(f"Wave {name} has no score yet. A wave gets its score when it ends.")
    return JudgedWave(rows[-1], rows)


def choose_wave(connection: sqlite3.Connection, named: str) -> str:
    """Return the id of the wave that ``named`` names: an id, ``SESSION:N`` or ``last``.

    Raises :class:`NotFound`, and ``WrongUse`` where several sessions begin with SESSION.
    """
    session, colon, number = named.rpartition(":")
    if named == "last":
        newest = waves.find_latest(connection, choose_session(connection, "last"))
        if newest is None:
            raise NotFound("The last session has no wave yet. Name a wave or another session.")
        return newest.wave_id
    if not colon:
        return waves.load(connection, named).wave_id
    session_id = choose_session(connection, session)
    for wave in waves.select_for_session(connection, session_id):
        if str(wave.ordinal) == number:
            return wave.wave_id
    raise NotFound(f"Session {session_id} has no wave {number}. `cockpit packet` lists its waves.")


def word_score(value: float | None) -> str:
    """Return a score as text."""
    return "–" if value is None else f"{value:.2f}"


def _document(shown: JudgedWave) -> dict[str, Any]:
    return {
        **feedback_body(shown.newest),
        "history": [feedback_body(row) for row in shown.history],
    }


def _detail(shown: JudgedWave) -> Iterator[Part]:
    row = shown.newest
    assessment, operator = row.assessment, row.assessment.operator
    words = f": {operator.words}" if operator is not None and operator.words else ""
    yield Part(text=row.wave_id)
    facts = [
        ("decision quality", word_score(assessment.score)),
        ("profile", f"{row.profile_id} version {row.profile_version}"),
        ("packet", row.packet_id or ""),
        *((name, word_score(value)) for name, value in assessment.measures.items()),
        ("regretted", ", ".join(assessment.regrets)),
        ("judged", "" if operator is None else f"{operator.verdict} by {operator.by}{words}"),
    ]
    yield Part(fields=facts)
    missed = [
        (f"{signal.band} {signal.tokens:,} {signal.held}", f"{signal.source_ref} for {signal.item}")
        for signal in assessment.missed
    ]
    yield Part("missed signals", missed)


COLLECTION = Collection[JudgedWave](
    name="feedback",
    command="feedback",
    title="Feedback",
    summary="Judge the decisions of waves.",
    help="""Judge the decisions of waves and show their scores, newest first.

    WAVE is an id, SESSION:N for the Nth wave of a session, or last. One is shown with the parts of its score.
    """,
    examples=(
        "cockpit feedback --session last",
        "cockpit feedback last",
        "cockpit feedback give last good",
    ),
    row="WAVE",
    sample="last",
    columns={
        "WAVE": lambda row: row.newest.wave_id,
        "QUALITY": lambda row: word_score(row.newest.assessment.score),
        "MISSED": lambda row: str(len(row.newest.assessment.missed)),
        "REGRET": lambda row: ", ".join(row.newest.assessment.regrets) or "–",
        "USER": lambda row: (
            row.newest.assessment.operator.verdict if row.newest.assessment.operator else "–"
        ),
        "PROFILE": lambda row: f"{row.newest.profile_id} v{row.newest.profile_version}",
    },
    read=_read,
    find=_find,
    none="No scores yet. A wave gets its score when it ends.",
    detail=lambda row: tuple(_detail(row)),
    body=lambda row: feedback_body(row.newest),
    document=_document,
    filters=(
        Field("session", "List only waves of this session, an id or last.", metavar="ID"),
        LIMIT,
    ),
    synonyms="scores quality regret",
)
