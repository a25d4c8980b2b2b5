"""The orientation compiler: facts and a profile in, one packet out.

Pure: it reads no clock, no store, no environment, and the same facts under the same profile give the
same bytes in any process, in whatever order they come. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from cockpit.core.errors import CockpitError
from cockpit.orient.fact_columns import FactColumns, Ints, columns_from_facts, load_columns
from cockpit.orient.select_facts import NO_REASON, Algorithm, Selection, select_facts
from cockpit.store.context.facts import LEVELS, SessionFact
from cockpit.store.context.packets import REASONS, Entry, Overheads, Packet, PacketBand, Rendering
from cockpit.store.context.profile_model import Profile, check

ALGORITHM = "bands/5"
"""The algorithm's name, part of every digest. A change that alters results needs a new name."""

ALGORITHMS = MappingProxyType(
    {
        way.name: way
        for way in (
            Algorithm("bands/1", weighs=False),
            Algorithm("bands/2", weighs=True),
            Algorithm("bands/3", weighs=True, renders=True),
            Algorithm("bands/4", weighs=True, renders=True, condenses=True),
            Algorithm(ALGORITHM, weighs=True, renders=True, condenses=True),
        )
    }
)
"""Every algorithm that ever compiled packets, so that each packet can be compiled again."""

NOT_RENDERED = Rendering(Overheads())
"""For packets that no prompt is made of."""


class UnknownAlgorithm(CockpitError):
    """A packet was compiled by an algorithm that this program does not have."""

    code = "unknown_algorithm"


def compile_packet(
    candidates: Sequence[SessionFact] | FactColumns,
    profile: Profile,
    ordinal: int,
    *,
    algorithm: str = ALGORITHM,
    rendering: Rendering | None = NOT_RENDERED,
) -> Packet:
    """Compile the packet of wave ``ordinal`` (1-based), beside the overheads of ``rendering``.

    Raises :class:`~cockpit.orient.select_facts.PinnedOverBudget`,
    :class:`~cockpit.store.context.profile_model.ProfileInvalid`, :class:`UnknownAlgorithm`.
    """
    rendering = rendering or NOT_RENDERED
    selection = select_for_packet(
        candidates, profile, ordinal, algorithm=algorithm, overheads=rendering.overheads
    )
    return build_packet(selection, profile, ordinal, rendering)


def select_for_packet(
    candidates: Sequence[SessionFact] | FactColumns,
    profile: Profile,
    ordinal: int,
    *,
    algorithm: str = ALGORITHM,
    overheads: Overheads = NOT_RENDERED.overheads,
) -> Selection:
    """Select facts for :func:`compile_packet`; raises as it does."""
    way = find_algorithm(algorithm)
    check(profile)
    columns = (
        candidates
        if isinstance(candidates, FactColumns)
        else columns_from_facts(candidates, rendered=way.renders)
    )
    return select_facts(columns, profile, ordinal, way, overheads)


def find_algorithm(algorithm: str) -> Algorithm:
    """Return the algorithm of that name. Raises :class:`UnknownAlgorithm`."""
    way = ALGORITHMS.get(algorithm)
    if way is None:
        raise UnknownAlgorithm(
            f"The packet was compiled by {algorithm!r}; this cockpit has {', '.join(ALGORITHMS)}."
            f" Verify it with the version that wrote it."
        )
    return way


def load_for(
    connection: sqlite3.Connection, session_id: str, ordinal: int, algorithm: str = ALGORITHM
) -> FactColumns:
    """Load the facts of a wave with the tokens that ``algorithm`` counts."""
    way = find_algorithm(algorithm)
    return load_columns(connection, session_id, ordinal, rendered=way.renders)


def build_packet(
    chosen: Selection,
    profile: Profile,
    ordinal: int,
    rendering: Rendering = NOT_RENDERED,
    *,
    has_entries: bool = True,
) -> Packet:
    """Build the packet of a selection; without ``has_entries`` for a caller that puts in its own."""
    columns = chosen.columns
    dropped = chosen.dropped_for != NO_REASON
    lost = np.bincount(columns.band[dropped], minlength=len(profile.bands)).tolist()
    reasons = np.bincount(chosen.dropped_for[dropped], minlength=len(REASONS)).tolist()
    return Packet(
        chosen.algorithm,
        ordinal,
        profile.profile_id,
        profile.version,
        profile.digest,
        profile.ranking,
        profile.total_token_budget,
        sum(chosen.used),
        tuple(
            PacketBand(
                band.name,
                band.min_tokens,
                band.target_tokens,
                band.max_tokens,
                chosen.used[code],
                lost[code],
                _entries(chosen, np.flatnonzero((columns.band == code) & ~dropped))
                if has_entries
                else (),
            )
            for code, band in enumerate(profile.bands)
        ),
        tuple((reason, count) for reason, count in zip(REASONS, reasons, strict=True) if count),
        chosen.quality_ppm,
        rendering if find_algorithm(chosen.algorithm).renders else None,
    )


def _entries(chosen: Selection, at: Ints) -> tuple[Entry, ...]:
    """The entries of the facts at ``at``, in order of time, so that a later wave appends."""
    columns = chosen.columns
    return tuple(
        map(
            Entry,
            [columns.fact_ids[i] for i in at.tolist()],
            [LEVELS[level] for level in chosen.level[at].tolist()],
            chosen.tokens[at].tolist(),
            columns.pinned[at].tolist(),
            columns.ordinal[at].tolist(),
        )
    )
