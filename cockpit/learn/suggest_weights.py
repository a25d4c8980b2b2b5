"""Suggestions: more weight for sources whose facts were dropped and then asked for, less for sources that
used the tokens meanwhile.

They are ordinary proposals: the proposer needs the scope, and the guard checks them.
See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Protocol

from msgspec import Struct

from cockpit.learn.band_pressure import count_crowding
from cockpit.store.context import wave_feedback
from cockpit.store.context.profile_model import PRIORITY_MAX, WEIGHT_ONE, Predicate, Profile, Rule

LOOK = 20
"""How many of a version's newest waves are looked at."""
OFTEN = 2
"""In how many of them a source must have been missed, or have held the room: once is chance."""
MOST = 3
"""At most so many sources go up at a time, and as many down."""
STEP_PERCENT = 25
WAVES = 10
"""For how many waves a suggestion is to hold; then what was measured decides."""


class Bounds(Protocol):
    """The limits of the proposing principal."""

    @property
    def priority_min(self) -> int:
        """The lowest priority weight, in thousandths."""
        ...

    @property
    def priority_max(self) -> int:
        """The highest priority weight, in thousandths."""
        ...

    @property
    def horizon_max(self) -> int:
        """The most waves that a change may hold."""
        ...


class _Step(Struct, frozen=True):
    """One source's step: the change of its rule, and in how many waves it was seen."""

    source: str
    waves: int
    rule: dict[str, Any]


def suggest_changes(
    connection: sqlite3.Connection, profile: Profile, limits: Bounds, spared: Collection[str]
) -> list[dict[str, Any]]:
    """Return changes that would have kept missed facts, as payloads for a proposal; empty for none.

    The first makes every step at once; the others make one each: up, the most missed first, then down.
    ``spared`` sources (the critical ones) never go down. Only waves of this version count.
    """
    feedback = wave_feedback.select_for_version(
        connection, profile.profile_id, profile.version, LOOK
    )
    missed = Counter(
        source
        for each in feedback
        for source in {signal.source_type for signal in each.assessment.missed}
    )
    up = _steps(profile, missed, limits, up=True)
    down = _steps(profile, count_crowding(connection, feedback, spared), limits, up=False)
    if not up and not down:
        return []
    waves = min(WAVES, limits.horizon_max)
    each = [_payload(profile, [each], [], len(feedback), waves) for each in up]
    each += [_payload(profile, [], [each], len(feedback), waves) for each in down]
    return each if len(each) == 1 else [_payload(profile, up, down, len(feedback), waves), *each]


def _steps(profile: Profile, counted: Counter[str], limits: Bounds, *, up: bool) -> list[_Step]:
    often = sorted((-count, source) for source, count in counted.items() if count >= OFTEN)[:MOST]
    steps = [(source, -count, _moved(profile, source, limits, up=up)) for count, source in often]
    return [_Step(source, count, rule) for source, count, rule in steps if rule is not None]


def _moved(profile: Profile, source: str, limits: Bounds, *, up: bool) -> dict[str, Any] | None:
    """Return the rule of a source, one step up or down; None at the limit."""
    rules = [rule for rule in profile.rules if rule.source_type == source]
    if not rules:
        rule = Rule(source, source, Predicate(), WEIGHT_ONE, 0, 0, 0)
    else:
        general = [rule for rule in rules if rule.enabled and rule.predicate == Predicate()]
        if not general:
            return None  # restricted on purpose
        rule = min(general, key=lambda rule: (-rule.priority_weight, rule.rule_id))
    now = rule.priority_weight
    step = now * STEP_PERCENT // 100
    if up:
        after = min(now + step, max(limits.priority_max, now), PRIORITY_MAX)
    else:
        after = max(now - step, min(limits.priority_min, now))
    if after == now:
        return None
    body: dict[str, Any] = {"rule_id": rule.rule_id, "priority_weight": after / WEIGHT_ONE}
    return body if rules else {**body, "source_type": source}


def _payload(
    profile: Profile, up: Sequence[_Step], down: Sequence[_Step], looked: int, waves: int
) -> dict[str, Any]:
    why = [
        f"{label}: {', '.join(f'{step.source} in {step.waves}' for step in steps)} of the last {looked} waves."  # noqa: E501
        for label, steps in (
            ("Asked for although it had been dropped", up),
            ("Used the tokens of missed context, and served no decision", down),
        )
        if steps
    ]
    return {
        "base_profile_version": profile.version,
        "effective_waves": waves,
        "reason": " ".join(why),
        "rules": [step.rule for step in (*up, *down)],
    }
