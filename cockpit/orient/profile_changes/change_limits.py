"""How far each namespace may shift a profile: the limits that its proposals must stay in.

The user is bound by the administrator's settings alone. Everyone else moves weights and
bands within limits, and never switches anything off. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from cockpit.store.context.profile_model import PRIORITY_MAX, WEIGHT_ONE, Profile, Rule

MAIN = "main"
"""The principal of the user."""


class ChangeLimits(Struct, frozen=True):
    """Weights in thousandths, ``band_percent`` of a band's own numbers, duration in waves.

    ``open`` lifts everything but the administrator's bounds.
    """

    open: bool = False
    priority_min: int = WEIGHT_ONE // 4
    priority_max: int = 3 * WEIGHT_ONE
    band_percent: int = 50
    horizon_max: int = 20


UNLIMITED = ChangeLimits(open=True, priority_min=0, priority_max=PRIORITY_MAX)
AGENT_LIMITS = ChangeLimits()
"""For every namespace but ``main``."""


def limits_for(namespace: str) -> ChangeLimits:
    """The limits of a namespace."""
    return UNLIMITED if namespace == MAIN else AGENT_LIMITS


def limit_violations(base: Profile, after: Profile, limits: ChangeLimits) -> Iterator[str]:
    """What of ``after`` lies outside, in words for whoever proposed it."""
    if limits.open:
        return
    if after.duration_waves > limits.horizon_max or after.duration_waves == 0:
        yield f"the change may last 1 to {limits.horizon_max} waves"
    if after.total_token_budget != base.total_token_budget:
        yield "the total budget is not yours to change"
    if after.ranking != base.ranking:
        yield "the ranking is not yours to change"
    yield from _bands(base, after, limits.band_percent)
    base_rules = {rule.rule_id: rule for rule in base.rules}
    remaining_ids = {rule.rule_id for rule in after.rules}
    for name in sorted(base_rules.keys() - remaining_ids):
        yield f"rule {name} may not be removed"
    for rule in after.rules:
        if rule != base_rules.get(rule.rule_id):
            yield from _rule(base_rules.get(rule.rule_id), rule, limits)


def _bands(base: Profile, after: Profile, percent: int) -> Iterator[str]:
    for old, new in zip(base.bands, after.bands, strict=True):
        for limit, before, now in (
            ("floor", old.min_tokens, new.min_tokens),
            ("target", old.target_tokens, new.target_tokens),
            ("ceiling", old.max_tokens, new.max_tokens),
        ):
            if abs(now - before) * 100 > before * percent:
                yield (
                    f"the {limit} of {old.name} may move by {percent}% of {before:,}, not to {now:,}"
                )


def _rule(old: Rule | None, new: Rule, limits: ChangeLimits) -> Iterator[str]:
    before = old.priority_weight if old else WEIGHT_ONE
    least, most = min(limits.priority_min, before), max(limits.priority_max, before)
    if not least <= new.priority_weight <= most:
        yield (
            f"the priority of {new.rule_id} may be {least / WEIGHT_ONE:g} to {most / WEIGHT_ONE:g},"
            f" not {new.priority_weight / WEIGHT_ONE:g}"
        )
    if not new.enabled and (old is None or old.enabled):
        yield f"rule {new.rule_id} may not be switched off"
    if old is not None and new.predicate != old.predicate:
        yield f"which facts rule {new.rule_id} is about may not change"
    if old is not None and not set(old.fetch) <= set(new.fetch):
        yield f"items that rule {new.rule_id} fetches may not be taken away"
    if old is not None and old.fetch and new.quota < old.quota:
        yield f"the quota of rule {new.rule_id} may not be lowered"
