"""Re-granted facts: a packet had dropped or shortened them, and the agent asked again.

Reading again finds the same fact, which would be dropped again. So it is linked again: as fresh as
what this wave read first, at the highest utility, and held in full in this wave's packet as far as
there is room. From the next wave on it competes like any other. What past waves knew does not
change. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from cockpit.store.context.facts import (
    COST_COLUMNS,
    UTILITY_MAX,
    ObservingWave,
    PlacedFact,
    chunks,
    link,
)
from cockpit.store.context.packets import Overheads
from cockpit.store.context.profile_model import BANDS, Profile
from cockpit.store.db.transaction import Tx

RECALLED = ("receipt", "handoff", "wip", "note", "docs")
"""Sources that bring back what the store or the documents have; asked for, they are shown."""


def relink(tx: Tx, wave: ObservingWave, places: Mapping[str, PlacedFact]) -> None:
    """Link facts again, by id, that the session has from an earlier wave; ``seen_at`` marks them."""
    pins: list[tuple[int | None, int | None, str, int, int]] = []
    for marks, chunk in chunks(list(places)):
        live = "session_id=? AND superseded_at IS NULL AND fact_id IN"
        for identity, since, until in tx.execute(
            f"SELECT fact_id, pinned_from, pinned_until FROM session_facts WHERE {live} ({marks})",  # noqa: S608 - only placeholders
            (wave.session_id, *chunk),
        ):
            pins.append((since, until, wave.session_id, wave.ordinal, places[identity][0]))
        tx.execute(
            f"UPDATE session_facts SET superseded_at=? WHERE {live} ({marks})",  # noqa: S608 - only placeholders
            (wave.ordinal, wave.session_id, *chunk),
        )
    link(
        tx,
        wave,
        {
            identity: (position, job, replace(fact, utility=UTILITY_MAX))
            for identity, (position, job, fact) in places.items()
        },
    )
    tx.connection.executemany(
        f"UPDATE session_facts SET pinned_from=?, pinned_until=?, seen_at={wave.ordinal}"  # noqa: S608 - a whole number
        " WHERE session_id=? AND ordinal=? AND position=?",
        pins,
    )


def restore_links(tx: Tx, wave: ObservingWave, first: int) -> None:
    """Undo :func:`relink` for facts from place ``first`` on, before their links are deleted.

    Each is again as an earlier wave left it, and marked as seen.
    """
    rows = tx.execute(
        "SELECT fact_id FROM session_facts WHERE session_id=? AND ordinal=? AND position>=?"
        " AND seen_at=ordinal",
        (wave.session_id, wave.ordinal, first),
    ).fetchall()
    for (identity,) in rows:
        place = (wave.session_id, wave.ordinal, identity)
        tx.execute(
            "DELETE FROM session_facts WHERE session_id=? AND ordinal=? AND fact_id=?", place
        )
        tx.execute(
            "UPDATE session_facts SET superseded_at=NULL, seen_at=:ordinal WHERE session_id=:session"
            " AND fact_id=:fact AND superseded_at=:ordinal",
            {"session": wave.session_id, "ordinal": wave.ordinal, "fact": identity},
        )


def pin_for_wave(tx: Tx, wave: ObservingWave, profile: Profile, overheads: Overheads) -> int:
    """Pin re-granted facts, and what was asked back from the store, for this one wave; returns how many.

    In the order of their places, each is pinned that fits into its band's ceiling and beside the
    floors of the other bands. Call it when everything that the wave pins is stored.
    """
    marks = ",".join("?" * len(RECALLED))
    cost, outline, _ = COST_COLUMNS
    lifted = tx.execute(
        f"SELECT position, band, {cost} FROM session_facts WHERE session_id=? AND ordinal=?"  # noqa: S608 - our own columns
        f" AND (seen_at=ordinal OR source_type IN ({marks})) AND superseded_at IS NULL"
        " AND pinned_from IS NULL ORDER BY position",
        (wave.session_id, wave.ordinal, *RECALLED),
    ).fetchall()
    if not lifted:
        return 0
    held = dict(
        tx.execute(
            f"SELECT band, sum(CASE WHEN pin_level=1 AND {outline}>0 THEN {outline} ELSE {cost} END)"  # noqa: S608 - our own columns
            " FROM session_facts WHERE session_id=:session"
            " AND superseded_at IS NULL AND pinned_from<=:ordinal"
            " AND (pinned_until IS NULL OR pinned_until>:ordinal) GROUP BY band",
            {"session": wave.session_id, "ordinal": wave.ordinal},
        ).fetchall()
    )
    for name in BANDS:
        held[name] = held.get(name, 0) + overheads.in_band(name)
    bands = {band.name: band for band in profile.bands}
    reserved = sum(max(band.min_tokens, held[band.name]) for band in profile.bands)
    pins: list[tuple[int, int, str, int, int]] = []
    for position, name, tokens in lifted:
        band, now = bands[name], held[name]
        more = max(band.min_tokens, now + tokens) - max(band.min_tokens, now)
        if now + tokens <= band.max_tokens and reserved + more <= profile.total_token_budget:
            held[name] = now + tokens
            reserved += more
            pins.append((wave.ordinal, wave.ordinal + 1, wave.session_id, wave.ordinal, position))
    tx.connection.executemany(
        "UPDATE session_facts SET pinned_from=?, pinned_until=?"
        " WHERE session_id=? AND ordinal=? AND position=?",
        pins,
    )
    return len(pins)
