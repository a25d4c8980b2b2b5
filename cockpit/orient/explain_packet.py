"""Why each fact is in a packet, shortened, or dropped.

The verdicts are not stored: they are compiled again from the same facts, so that they explain the
decision of a past wave. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cockpit.orient.compile_packet import ALGORITHM, NOT_RENDERED, select_for_packet
from cockpit.orient.fact_columns import FactColumns
from cockpit.orient.select_facts import KEPT, NO_REASON
from cockpit.store.context.facts import LEVELS, SessionFact
from cockpit.store.context.packets import REASONS, Overheads
from cockpit.store.context.profile_model import BANDS, Profile

Verdict = Literal["kept", "shortened", "dropped"]


@dataclass(frozen=True, slots=True)
class FactVerdict:
    """The verdict on one fact.

    ``utility`` is its score under the profile (0 to 8,000,000; 1,000,000 is a full utility with
    weights of 1), ``tokens`` what it takes in the packet, or would take in full if it was dropped.
    ``level`` is empty for a dropped fact. ``reason`` is one of ``pinned, floor, target, utility``
    (why there was room for it) or of the packet's drop reasons.
    """

    fact_id: str
    band: str
    source_type: str
    source_ref: str
    ordinal: int
    utility: int
    tokens: int
    verdict: Verdict
    level: str
    reason: str


def explain_packet(
    candidates: Sequence[SessionFact] | FactColumns,
    profile: Profile,
    ordinal: int,
    *,
    algorithm: str = ALGORITHM,
    overheads: Overheads = NOT_RENDERED.overheads,
    band: str = "",
) -> tuple[FactVerdict, ...]:
    """Explain the verdict on every fact, or on those of ``band``, in order of time.

    Raises as ``compile_packet`` does, and ``ValueError`` for an unknown band.
    """
    chosen = select_for_packet(
        candidates, profile, ordinal, algorithm=algorithm, overheads=overheads
    )
    columns = chosen.columns
    in_band = columns.band == BANDS.index(band) if band else np.ones(len(columns), np.bool_)
    at = np.flatnonzero(in_band)
    verdicts: list[FactVerdict] = []
    for i, fact_band, kind, wave, score, full, taken, level, kept_for, dropped_for in zip(
        at.tolist(),
        columns.band[at].tolist(),
        columns.source_type[at].tolist(),
        columns.ordinal[at].tolist(),
        chosen.score[at].tolist(),
        columns.full[at].tolist(),
        chosen.tokens[at].tolist(),
        chosen.level[at].tolist(),
        chosen.kept_for[at].tolist(),
        chosen.dropped_for[at].tolist(),
        strict=True,
    ):
        dropped = dropped_for != NO_REASON
        verdict: Verdict = "dropped" if dropped else "shortened" if level else "kept"
        verdicts.append(
            FactVerdict(
                columns.fact_ids[i],
                BANDS[fact_band],
                columns.types[kind],
                columns.refs[i],
                wave,
                score,
                full if dropped else taken,
                verdict,
                "" if dropped else LEVELS[level],
                REASONS[dropped_for] if dropped else KEPT[kept_for],
            )
        )
    return tuple(verdicts)
