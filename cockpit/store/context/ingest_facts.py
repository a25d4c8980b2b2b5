"""Facts of observation jobs, stored in batches as jobs end.

A fact's place follows from its job's place in the plan, never from when the job ended, so a packet
does not depend on which source was slow or when a crash happened. A fact that two jobs read keeps
the place of the first; one that the session has already is marked as seen again. Newer content
supersedes older once, when all jobs of the wave have ended. Specified in
``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from cockpit.store.context import near_duplicates
from cockpit.store.context.facts import (
    Fact,
    ObservingWave,
    PlacedFact,
    chunks,
    link,
    replace_surrogates_in,
)
from cockpit.store.context.regranted_facts import relink, restore_links
from cockpit.store.db.transaction import Tx

JOB_PLACES = 1 << 16
"""Places that one job has in a wave; those before the first job's are for facts without a job."""


class JobFacts(Struct, frozen=True):
    """The facts that one job read."""

    place: int
    """The job's place in the plan, from 1."""
    job: str
    """What the job reads for."""
    facts: Sequence[Fact]


def ingest(tx: Tx, wave: ObservingWave, batch: Sequence[JobFacts]) -> None:
    """Store and link a batch of facts.

    A fact that two jobs read gets the place of the earlier job.
    """
    places: dict[str, PlacedFact] = {}
    for result in sorted(batch, key=attrgetter("place")):
        first, job = result.place * JOB_PLACES, result.job
        for position, fact in enumerate(result.facts[:JOB_PLACES], first):
            places.setdefault(fact.fact_id, (position, job, fact))
    try:
        new = link(tx, wave, places)
    except UnicodeEncodeError:
        ingest(
            tx,
            wave,
            [
                replace(result, facts=list(map(replace_surrogates_in, result.facts)))
                for result in batch
            ],
        )
        return
    if new < len(places):
        _mark_seen(tx, wave, places)


def limit_facts(tx: Tx, wave: ObservingWave, most: int) -> dict[int, int]:
    """Keep the first ``most`` facts of the wave's jobs, by place.

    Returns how many were left out, by the place of their job.
    """
    place = (wave.session_id, wave.ordinal)
    over = tx.execute(
        "SELECT fact_id, position FROM session_facts WHERE session_id=? AND ordinal=?"
        " AND position>=? ORDER BY position LIMIT -1 OFFSET ?",
        (*place, JOB_PLACES, most),
    ).fetchall()
    if not over:
        return {}
    restore_links(tx, wave, over[0][1])
    tx.execute(
        "DELETE FROM session_facts WHERE session_id=? AND ordinal=? AND position>=?",
        (*place, over[0][1]),
    )
    tx.connection.executemany(
        "DELETE FROM observed_facts WHERE fact_id=? AND wave_id=?"
        " AND NOT EXISTS (SELECT 1 FROM session_facts AS s WHERE s.fact_id=observed_facts.fact_id)",
        [(identity, wave.wave_id) for identity, _ in over],
    )
    return dict(Counter(position // JOB_PLACES for _, position in over))


def finish_wave(tx: Tx, wave: ObservingWave) -> None:
    """Supersede older content and assign clusters, after all jobs have ended.

    Under a key that this wave read, facts of earlier waves that it did not read again are
    superseded from this wave on: changed and deleted parts go, unchanged ones stay.
    """
    tx.execute(
        "UPDATE session_facts SET superseded_at=:ordinal WHERE session_id=:session"
        " AND superseded_at IS NULL AND dedupe_key<>'' AND ordinal<:ordinal AND seen_at<:ordinal"
        " AND dedupe_key IN (SELECT dedupe_key FROM session_facts WHERE session_id=:session"
        " AND ordinal=:ordinal AND position>=:first UNION SELECT dedupe_key FROM session_facts"
        " WHERE session_id=:session AND seen_at=:ordinal)",
        {"session": wave.session_id, "ordinal": wave.ordinal, "first": JOB_PLACES},
    )
    near_duplicates.assign_clusters(tx, wave.session_id, wave.ordinal)


def _mark_seen(tx: Tx, wave: ObservingWave, places: dict[str, PlacedFact]) -> None:
    """Mark facts of earlier waves as seen and link re-granted ones again.

    Facts that a later job of this wave stored move to the earlier place.
    """
    again: list[tuple[int, str, int, int]] = []
    moved: list[tuple[int, str, str, int, int]] = []
    regranted: dict[str, PlacedFact] = {}
    for marks, chunk in chunks(list(places)):
        for identity, ordinal, position in tx.execute(
            "SELECT fact_id, ordinal, position FROM session_facts WHERE session_id=?"  # noqa: S608 - only placeholders
            f" AND superseded_at IS NULL AND fact_id IN ({marks})",
            (wave.session_id, *chunk),
        ):
            first, job, _ = places[identity]
            if ordinal == wave.ordinal:
                if first < position:
                    moved.append((first, job, wave.session_id, ordinal, position))
            elif wave.whole is None or identity in wave.whole or job in wave.unasked_jobs:
                again.append((wave.ordinal, wave.session_id, ordinal, position))
            else:
                regranted[identity] = places[identity]
    tx.connection.executemany(
        "UPDATE session_facts SET seen_at=? WHERE session_id=? AND ordinal=? AND position=?", again
    )
    tx.connection.executemany(
        "UPDATE session_facts SET position=?, job=? WHERE session_id=? AND ordinal=? AND position=?",
        moved,
    )
    if regranted:
        relink(tx, wave, regranted)
