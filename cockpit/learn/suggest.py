"""Suggestions: a little more weight for sources whose facts were dropped and then asked for.

They are proposals like any other: whoever hands one in needs the scope, and the guard judges it.
Source: RFC-003 §7.1.5 ("informs future adaptation"), §18 phase B3.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Any, Protocol

from cockpit.store import feedback
from cockpit.store.attention import PRIORITY_MAX, WEIGHT_ONE, Predicate, Profile, Rule

LOOK = 20
"""How many of a version's newest waves are looked at."""
OFTEN = 2
"""In how many of them a source must have been missed: once is chance."""
MOST = 3
"""At most so many sources change at a time."""
STEP_PERCENT = 25
WAVES = 10
"""For how many waves a suggestion is to hold; then what was measured decides."""


class Bounds(Protocol):
    """How far the namespace that will propose may go: its envelope."""

    @property
    def priority_max(self) -> int:
        """The highest priority weight, in thousandths."""
        ...

    @property
    def horizon_max(self) -> int:
        """The most waves that a change may hold."""
        ...


def suggestions(
    connection: sqlite3.Connection, profile: Profile, envelope: Bounds
) -> list[dict[str, Any]]:
    """Changes that would have kept what was missed, as payloads for a proposal; empty for none.

    The first raises every source that was missed often, the others one source each, the most missed
    first. Only waves of this very version speak: what another one dropped says nothing of it.
    """
    found = feedback.of_version(connection, profile.profile_id, profile.version, LOOK)
    missed = Counter(
        source for one in found for source in {signal.source_type for signal in one.judged.missed}
    )
    often = sorted((-count, source) for source, count in missed.items() if count >= OFTEN)[:MOST]
    raised = [
        (source, -count, rule)
        for count, source in often
        if (rule := _raised(profile, source, envelope.priority_max)) is not None
    ]
    if not raised:
        return []
    waves = min(WAVES, envelope.horizon_max)
    each = [_payload(profile, [one], len(found), waves) for one in raised]
    return each if len(each) == 1 else [_payload(profile, raised, len(found), waves), *each]


def _raised(profile: Profile, source: str, most: int) -> dict[str, Any] | None:
    """The rule that lets a source through, one step up; None where it may go no further."""
    rules = [rule for rule in profile.rules if rule.source_type == source]
    if not rules:
        rule = Rule(source, source, Predicate(), WEIGHT_ONE, 0, 0, 0)
    else:
        general = [rule for rule in rules if rule.enabled and rule.predicate == Predicate()]
        if not general:
            return None  # somebody restricted it on purpose
        rule = min(general, key=lambda rule: (-rule.priority_weight, rule.rule_id))
    now = rule.priority_weight
    after = min(now + now * STEP_PERCENT // 100, max(most, now), PRIORITY_MAX)
    if after <= now:
        return None
    body: dict[str, Any] = {"rule_id": rule.rule_id, "priority_weight": after / WEIGHT_ONE}
    return body if rules else {**body, "source_type": source}


def _payload(
    profile: Profile, raised: list[tuple[str, int, dict[str, Any]]], looked: int, waves: int
) -> dict[str, Any]:
    told = ", ".join(f"{source} in {count}" for source, count, _ in raised)
    return {
        "base_profile_version": profile.version,
        "effective_waves": waves,
        "reason": f"Asked for although it had been dropped: {told} of the last {looked} waves.",
        "rules": [rule for _, _, rule in raised],
    }
