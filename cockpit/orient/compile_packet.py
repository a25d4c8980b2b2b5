"""Build a packet of what was selected, and compile one by itself.

Pure: it reads no clock, no store, no environment, and the same facts under the same profile give the same
bytes in any process, in whatever order they come. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cockpit.core.errors import CockpitError
from cockpit.orient.fact_columns import FactColumns, columns_from_facts
from cockpit.orient.select_facts import DROPPED, FULL, NO_REASON, Selection, select_facts
from cockpit.store.context.facts import LEVELS, SessionFact
from cockpit.store.context.packet_epoch import Change
from cockpit.store.context.packets import (
    NOT_RENDERED,
    POINTED,
    REASONS,
    Entry,
    Overheads,
    Packet,
    PacketBand,
    Rendering,
)
from cockpit.store.context.profile_model import Profile, check

ALGORITHM = "epochs/1"
"""The algorithm's name, part of every digest. A change that alters results needs a new name."""


class UnknownAlgorithm(CockpitError):
    """A packet was compiled by an algorithm that this program does not have."""

    code = "unknown_algorithm"


def require_known(algorithm: str) -> None:
    """Raise :class:`UnknownAlgorithm` for any other algorithm than :data:`ALGORITHM`."""
    if algorithm != ALGORITHM:
        raise UnknownAlgorithm(
            f"The packet was compiled by {algorithm!r}; this cockpit has {ALGORITHM}. Verify it with the"
            " version that wrote it."
        )


def compile_packet(
    candidates: Sequence[SessionFact] | FactColumns,
    profile: Profile,
    ordinal: int,
    *,
    rendering: Rendering = NOT_RENDERED,
) -> Packet:
    """Compile the packet of wave ``ordinal`` (1-based) by itself, in no epoch.

    Raises :class:`~cockpit.orient.select_facts.PinnedOverBudget` and
    :class:`~cockpit.store.context.profile_model.ProfileInvalid`.
    """
    selection = select_for_packet(candidates, profile, ordinal, overheads=rendering.overheads)
    return build_packet(selection, profile, ordinal, rendering)


def select_for_packet(
    candidates: Sequence[SessionFact] | FactColumns,
    profile: Profile,
    ordinal: int,
    *,
    overheads: Overheads = NOT_RENDERED.overheads,
) -> Selection:
    """Select facts for :func:`compile_packet`; raises as it does."""
    check(profile)
    columns = candidates if isinstance(candidates, FactColumns) else columns_from_facts(candidates)
    return select_facts(columns, profile, ordinal, overheads)


def build_packet(
    chosen: Selection,
    profile: Profile,
    ordinal: int,
    rendering: Rendering,
    changes: Sequence[Change] = (),
) -> Packet:
    """Build the packet of a selection; facts of ``changes`` point to what stands above them."""
    pointed = {change.fact_id: change for change in changes if change.points}
    columns = chosen.columns
    entries: list[list[Entry]] = [[] for _ in profile.bands]
    used = [*chosen.used]
    kept = np.flatnonzero(chosen.level != DROPPED)
    # In order of time, so that a later wave appends.
    for i, band, level, tokens, pinned, seen in zip(
        kept.tolist(),
        columns.band[kept].tolist(),
        chosen.level[kept].tolist(),
        chosen.tokens[kept].tolist(),
        columns.pinned[kept].tolist(),
        columns.ordinal[kept].tolist(),
        strict=True,
    ):
        name, base = LEVELS[level], ""
        change = pointed.get(columns.fact_ids[i])
        if change is not None and level == FULL:
            used[band] -= change.tokens
            name, tokens, base = POINTED, tokens - change.tokens, change.base
        entries[band].append(Entry(columns.fact_ids[i], name, tokens, pinned, seen, base=base))
    return make_packet(profile, ordinal, rendering, columns, entries, used, chosen.dropped_for)


def make_packet(
    profile: Profile,
    ordinal: int,
    rendering: Rendering,
    columns: FactColumns,
    entries: Sequence[Sequence[Entry]],
    used: Sequence[int],
    dropped_for: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Packet:
    """Make the packet of these entries and tokens by band; ``dropped_for`` has one item a fact."""
    dropped = dropped_for != NO_REASON
    lost = np.bincount(columns.band[dropped], minlength=len(profile.bands)).tolist()
    reasons = np.bincount(dropped_for[dropped], minlength=len(REASONS)).tolist()
    return Packet(
        ALGORITHM,
        ordinal,
        profile.profile_id,
        profile.version,
        profile.digest,
        profile.ranking,
        profile.total_token_budget,
        sum(used),
        tuple(
            PacketBand(
                band.name,
                band.min_tokens,
                band.target_tokens,
                band.max_tokens,
                used[code],
                lost[code],
                tuple(entries[code]),
            )
            for code, band in enumerate(profile.bands)
        ),
        tuple((reason, count) for reason, count in zip(REASONS, reasons, strict=True) if count),
        rendering,
    )
