"""What observation jobs found: stored in batches as they end, in an order that they do not decide.

A fact's place follows from its job's place in the plan, never from when the job ended, so that a
packet is the same whatever was slow and wherever a crash fell. A fact that two jobs find stands where
the first of them has it; one that the session has already is marked as seen again. What newer content
replaces is settled once, when all jobs of the wave have ended. Source: RFC-003 §10.1, §17.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.store import clusters
from cockpit.store.database import Tx
from cockpit.store.facts import Fact, chunks, cleaned, content_row, storable

JOB_PLACES = 1 << 16
"""Places of a wave that one job has; those before the first job's are for what is not fetched."""


@dataclass(frozen=True, slots=True)
class Look:
    """The wave that looks: its session, its ordinal and its pinned time."""

    session_id: str
    wave_id: str
    ordinal: int
    pinned_now: str


@dataclass(frozen=True, slots=True)
class Found:
    """One fact and where it belongs: ``position`` is ``job's place × JOB_PLACES + number``."""

    position: int
    job: str
    fact: Fact


def take_in(tx: Tx, look: Look, found: Sequence[Found], *, most: int) -> dict[int, int]:
    """Store and link a batch; of the wave's facts the first ``most`` by place stay.

    Returns how many facts past ``most`` were left out, by their job's place.
    """
    named: dict[str, Found] = {}
    for one in sorted(found, key=lambda one: one.position):
        named.setdefault(one.fact.fact_id, one)
    known = _known(tx, look, named)
    content = [
        content_row(identity, one.fact, look.wave_id, look.pinned_now)
        for identity, one in named.items()
        if identity not in known
    ]
    if not storable(content):
        clean = [Found(one.position, one.job, cleaned(one.fact)) for one in found]
        return take_in(tx, look, clean, most=most)
    tx.connection.executemany(
        "INSERT INTO observed_facts VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT(fact_id) DO NOTHING",
        content,
    )
    _see_again(tx, look, named, known)
    tx.connection.executemany(
        "INSERT INTO session_facts(session_id, ordinal, position, fact_id, wave_id, job, source_type,"
        " source_ref, band, utility, tokens_full, tokens_outline, tokens_reference, dedupe_key,"
        " pinned_from, sketch) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [
            (
                look.session_id,
                look.ordinal,
                one.position,
                identity,
                look.wave_id,
                one.job,
                one.fact.source_type,
                one.fact.source_ref,
                one.fact.band,
                one.fact.utility,
                one.fact.full.tokens,
                one.fact.outline.tokens if one.fact.outline else 0,
                one.fact.reference.tokens,
                one.fact.dedupe_key,
                look.ordinal if one.fact.pinned else None,
                one.fact.sketch,
            )
            for identity, one in named.items()
            if identity not in known
        ],
    )
    return _within(tx, look, most)


def settle(tx: Tx, look: Look) -> None:
    """All jobs have ended: newer content supersedes older, near-duplicates are told.

    Under a key that this wave looked at, what an earlier wave left and this one did not find again is
    superseded from this wave on: changed and vanished parts go, unchanged ones stay.
    """
    tx.execute(
        "UPDATE session_facts SET superseded_at=:ordinal WHERE session_id=:session"
        " AND superseded_at IS NULL AND dedupe_key<>'' AND ordinal<:ordinal AND seen_at<:ordinal"
        " AND dedupe_key IN (SELECT dedupe_key FROM session_facts WHERE session_id=:session"
        " AND ordinal=:ordinal AND position>=:first UNION SELECT dedupe_key FROM session_facts"
        " WHERE session_id=:session AND seen_at=:ordinal)",
        {"session": look.session_id, "ordinal": look.ordinal, "first": JOB_PLACES},
    )
    clusters.assign(tx, look.session_id, look.ordinal)


def _known(tx: Tx, look: Look, named: dict[str, Found]) -> dict[str, tuple[int, int]]:
    """(ordinal, position) of those that the session has live."""
    live: dict[str, tuple[int, int]] = {}
    for marks, chunk in chunks(list(named)):
        found = tx.execute(
            "SELECT fact_id, ordinal, position FROM session_facts WHERE session_id=?"  # noqa: S608 - only question marks
            f" AND superseded_at IS NULL AND fact_id IN ({marks})",
            (look.session_id, *chunk),
        )
        live.update({identity: (ordinal, position) for identity, ordinal, position in found})
    return live


def _see_again(
    tx: Tx, look: Look, named: dict[str, Found], known: dict[str, tuple[int, int]]
) -> None:
    again: list[tuple[int, str, int, int]] = []
    moved: list[tuple[int, str, str, int, int]] = []
    for identity, (ordinal, position) in known.items():
        one = named[identity]
        if ordinal < look.ordinal:
            again.append((look.ordinal, look.session_id, ordinal, position))
        elif JOB_PLACES <= one.position < position:
            moved.append((one.position, one.job, look.session_id, ordinal, position))
    tx.connection.executemany(
        "UPDATE session_facts SET seen_at=? WHERE session_id=? AND ordinal=? AND position=?", again
    )
    tx.connection.executemany(
        "UPDATE session_facts SET position=?, job=? WHERE session_id=? AND ordinal=? AND position=?",
        moved,
    )


def _within(tx: Tx, look: Look, most: int) -> dict[int, int]:
    """Unlink what is past the first ``most`` facts of the wave's jobs."""
    place = (look.session_id, look.ordinal)
    over = tx.execute(
        "SELECT fact_id, position FROM session_facts WHERE session_id=? AND ordinal=?"
        " AND position>=? ORDER BY position LIMIT -1 OFFSET ?",
        (*place, JOB_PLACES, most),
    ).fetchall()
    if not over:
        return {}
    tx.execute(
        "DELETE FROM session_facts WHERE session_id=? AND ordinal=? AND position>=?",
        (*place, over[0][1]),
    )
    tx.connection.executemany(
        "DELETE FROM observed_facts WHERE fact_id=? AND wave_id=?"
        " AND NOT EXISTS (SELECT 1 FROM session_facts AS s WHERE s.fact_id=observed_facts.fact_id)",
        [(identity, look.wave_id) for identity, _ in over],
    )
    left: dict[int, int] = {}
    for _, position in over:
        left[position // JOB_PLACES] = left.get(position // JOB_PLACES, 0) + 1
    return left
