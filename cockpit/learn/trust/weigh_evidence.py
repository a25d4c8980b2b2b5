"""Whether the user's decisions about one shape amount to the offer of a rule.

Only the user's own approvals count, and only those since the last pushback. A flood of the same requests does
not make a rule: a request repeated in a session counts once, a wave counts once, and a session gives no more
than its share. Specified in ``docs/reference/trust.md``, learning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from cockpit.store.trust.shape import Shape
from cockpit.store.trust.trust_decisions import TrustDecision

_RISKS = ("low", "medium", "high")


class Thresholds(Struct, frozen=True):
    """What it takes until a rule is offered."""

    approvals: int
    """Approvals that count."""
    sessions: int
    """Sessions that they were given in."""

    @property
    def most_of_session(self) -> int:
        """Approvals that one session may give."""
        return -(-self.approvals // max(1, self.sessions))


class Evidence(Struct, frozen=True):
    """The approvals that count for one shape."""

    shape: Shape
    decisions: tuple[TrustDecision, ...]
    """Oldest first."""
    risk: str
    """The highest risk among them."""
    is_enough: bool
    """Whether a rule may be offered on them."""

    @property
    def sessions(self) -> int:
        return len({each.session_id for each in self.decisions})


def weigh(
    shape: Shape,
    decisions: Sequence[TrustDecision],
    thresholds: Thresholds,
    *,
    since: str,
    after: str = "",
) -> Evidence:
    """Weigh the decisions about ``shape``, oldest first.

    Those from before ``since`` do not count, nor those up to ``after``, when the rule was ended.
    """
    clean: list[TrustDecision] = []
    for each in decisions:
        if each.is_pushback:
            clean.clear()
        elif each.decided_by != "rule" and each.decided_at >= since and each.decided_at > after:
            clean.append(each)
    counted: list[TrustDecision] = []
    requests: set[tuple[str, str]] = set()
    waves: set[tuple[str, str]] = set()
    given: Counter[str] = Counter()
    for each in clean:
        request, wave = (each.session_id, each.literal), (each.session_id, each.wave_id)
        if request in requests or wave in waves:
            continue
        if given[each.session_id] >= thresholds.most_of_session:
            continue
        requests.add(request)
        waves.add(wave)
        given[each.session_id] += 1
        counted.append(each)
    risk = max((each.risk for each in counted), key=_RISKS.index, default="low")
    is_enough = (
        len(counted) >= thresholds.approvals
        and len(given) >= thresholds.sessions
        # What is of high risk is decided each time; a short card decides nothing.
        and (risk != "high" or shape.effect == "card")
    )
    return Evidence(shape, tuple(counted), risk, is_enough)
