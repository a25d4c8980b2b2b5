"""Why each fact is in a packet, shortened, or missing: what a person sees behind the meter.

Nothing of this is stored: it is compiled again from the same facts, and so says of a past wave what
was decided then. Source: design of Orient ("counted and inspectable").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cockpit.orient.columns import Columns
from cockpit.orient.compile import ALGORITHM, selection
from cockpit.orient.select import KEPT, NO_REASON
from cockpit.store.attention import BANDS, Profile
from cockpit.store.facts import LEVELS, Linked
from cockpit.store.packets import REASONS

Verdict = Literal["kept", "shortened", "dropped"]


@dataclass(frozen=True, slots=True)
class Explained:
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


def explain(
    candidates: Sequence[Linked] | Columns,
    profile: Profile,
    ordinal: int,
    *,
    algorithm: str = ALGORITHM,
) -> tuple[Explained, ...]:
    """A verdict for every fact, in order of time. Raises as ``compile_packet`` does."""
    chosen = selection(candidates, profile, ordinal, algorithm=algorithm)
    columns = chosen.columns
    told: list[Explained] = []
    for i, (level, kept_for, dropped_for) in enumerate(
        zip(
            chosen.level.tolist(),
            chosen.kept_for.tolist(),
            chosen.dropped_for.tolist(),
            strict=True,
        )
    ):
        dropped = dropped_for != NO_REASON
        verdict: Verdict = "dropped" if dropped else "shortened" if level else "kept"
        told.append(
            Explained(
                columns.fact_ids[i],
                BANDS[columns.band[i]],
                columns.types[columns.source_type[i]],
                columns.refs[i],
                int(columns.ordinal[i]),
                int(chosen.score[i]),
                int(columns.full[i] if dropped else chosen.tokens[i]),
                verdict,
                "" if dropped else LEVELS[level],
                REASONS[dropped_for] if dropped else KEPT[kept_for],
            )
        )
    return tuple(told)
