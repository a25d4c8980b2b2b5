"""The guard: which profile changes are safe, each refusal with its own code. Pure.

An agent tunes attention, never what holds attention up: floors the administrator set, the sources
that say who it is, what was asked and what failed, and the bounds of what it may do. The *result* of
a change is judged, so that no detour through several fields gets around it. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from cockpit.orient.profile_changes.apply_change import apply_change
from cockpit.orient.profile_changes.change_limits import ChangeLimits, limit_violations
from cockpit.orient.profile_changes.change_record import ChangeRefused, ProfileChange
from cockpit.store.context.profile_model import (
    WEIGHT_ONE,
    Predicate,
    Profile,
    ProfileInvalid,
    Rule,
    check,
    load_shipped,
    scale,
)

CODES = (
    "malformed",
    "namespace_spoofed",
    "not_allowed",
    "stale_base",
    "adaptation_running",
    "horizon_too_long",
    "floor_below_minimum",
    "over_budget",
    "critical_source",
    "capability_relaxed",
    "band_invalid",
    "outside_envelope",
)
"""Every code that a change can be refused with, the gravest first."""

CRITICAL = (
    *("rule", "preamble", "project", "constraint"),
    *("task", "dod", "person", "notice"),
    *("exchange", "receipt"),
)
"""Source types that can never be suppressed: who the agent is to be, what it was asked, what the
messages of the user and the guards, and results of its actions (a failing test is an exchange)."""

CAPABILITY = ("tools", "capability")
"""Source types that tell an agent what it may and may not do."""

THRESHOLD = WEIGHT_ONE
"""The least strength (priority × (1 + risk)) of a critical source, in thousandths: that of a source
which no rule names. One that is below it already may not fall further."""

_UNRULED = Rule("", "", Predicate(), WEIGHT_ONE, 0, 0, 0)


class AdminPolicy(Struct, frozen=True):
    """What the administrator allows: floors by band and the whole budget in tokens, and the longest
    horizon in waves."""

    floors: Mapping[str, int]
    budget_max: int
    horizon_max: int = 50


class Refusal(Struct, frozen=True):
    """One reason why a change cannot be made; ``code`` is one of :data:`CODES`."""

    code: str
    message: str


def create_admin_policy(budget: int, *, horizon_max: int, floor_percent: int) -> AdminPolicy:
    """The policy for a token budget: the shipped profile's floors, scaled, and of those a part."""
    floors = {
        band.name: band.min_tokens * floor_percent // 100
        for band in scale(load_shipped(), budget).bands
    }
    return AdminPolicy(floors, budget, horizon_max)


def check_change(
    change: ProfileChange, base: Profile, admin: AdminPolicy, limits: ChangeLimits, namespace: str
) -> tuple[Refusal, ...]:
    """Every reason why ``namespace`` may not make ``change`` to ``base``; none means that it may."""
    refusals = [
        Refusal(
            "namespace_spoofed",
            f"It says that it is from {claimed[:100]!r}, and it is from {namespace!r}.",
        )
        for claimed in change.claimed
        if claimed != namespace
    ]
    if change.base_profile_version != base.version:
        refusals.append(
            Refusal(
                "stale_base",
                f"It is made from version {change.base_profile_version}, and version {base.version} of"
                f" {base.profile_id} is the current one. Look at that and propose again.",
            )
        )
        return tuple(refusals)  # what it asks for was meant for another profile
    if change.effective_waves > admin.horizon_max:
        refusals.append(
            Refusal(
                "horizon_too_long",
                f"{change.effective_waves:,} waves are more than the {admin.horizon_max} that a"
                " change may hold.",
            )
        )
    try:
        after = apply_change(change, base)
    except ChangeRefused as error:
        return (*refusals, Refusal(error.code, str(error)))
    if after.digest == base.digest:
        refusals.append(Refusal("malformed", "It changes nothing."))
    refusals += safety_violations(after, base, admin)
    refusals += [Refusal("outside_envelope", why) for why in limit_violations(base, after, limits)]
    return tuple(refusals)


def safety_violations(after: Profile, base: Profile, admin: AdminPolicy) -> list[Refusal]:
    """What ``after`` must not have, whoever asks: judged against ``base`` where that is worse."""
    checks: tuple[tuple[str, Callable[[Profile, Profile, AdminPolicy], Iterator[str]]], ...] = (
        ("band_invalid", _bands),
        ("floor_below_minimum", _floors),
        ("over_budget", _budget),
        ("critical_source", _critical),
        ("capability_relaxed", _capability),
    )
    refusals = [Refusal(code, why) for code, look in checks for why in look(after, base, admin)]
    if not refusals:
        try:
            check(after)
        except ProfileInvalid as error:
            refusals.append(Refusal("malformed", str(error)))
    return refusals


def passed_checks() -> list[dict[str, object]]:
    """The guard's verdict on a change that it lets through, for the user who decides."""
    return [
        {"code": "floor_below_minimum", "ok": True, "message": "no floor is below its minimum"},
        {"code": "over_budget", "ok": True, "message": "within the token budget"},
        {"code": "critical_source", "ok": True, "message": "no critical source is weakened"},
        {"code": "capability_relaxed", "ok": True, "message": "capabilities stay as they are"},
        {"code": "horizon_too_long", "ok": True, "message": "it expires within the limit"},
        {"code": "outside_envelope", "ok": True, "message": "within the limits set for agents"},
    ]


def _bands(after: Profile, base: Profile, admin: AdminPolicy) -> Iterator[str]:
    for band in after.bands:
        if not 0 <= band.min_tokens <= band.target_tokens <= band.max_tokens:
            yield (
                f"Band {band.name} needs floor ≤ target ≤ ceiling, but would have"
                f" {band.min_tokens:,}, {band.target_tokens:,}, {band.max_tokens:,}."
            )


def _floors(after: Profile, base: Profile, admin: AdminPolicy) -> Iterator[str]:
    for band, before in zip(after.bands, base.bands, strict=True):
        least = admin.floors.get(band.name, 0)
        if band.min_tokens < min(least, before.min_tokens):
            yield (
                f"The floor of {band.name} would be {band.min_tokens:,} tokens; the"
                f" administrator's minimum is {least:,}."
            )


def _budget(after: Profile, base: Profile, admin: AdminPolicy) -> Iterator[str]:
    total = after.total_token_budget
    if total > max(admin.budget_max, base.total_token_budget):
        yield f"A budget of {total:,} tokens is more than the {admin.budget_max:,} allowed."
    floors = sum(band.min_tokens for band in after.bands)
    if floors > total:
        yield f"The floors add up to {floors:,} tokens, more than the budget of {total:,}."
    for band, before in zip(after.bands, base.bands, strict=True):
        if band.max_tokens > max(total, before.max_tokens):
            yield (
                f"The ceiling of {band.name} would be {band.max_tokens:,}, more than the whole"
                f" budget of {total:,}."
            )


def _critical(after: Profile, base: Profile, admin: AdminPolicy) -> Iterator[str]:
    for source in CRITICAL:
        yield from _weakened(after, base, source)


def _capability(after: Profile, base: Profile, admin: AdminPolicy) -> Iterator[str]:
    for source in CAPABILITY:
        yield from _weakened(after, base, source)


def _weakened(after: Profile, base: Profile, source: str) -> Iterator[str]:
    """How ``after`` would let less of a source through than ``base`` does, below the threshold."""
    before = _general(base, source)
    if before is None:
        return
    now = _general(after, source)
    if now is None:
        yield f"{source} must not be suppressed: a rule without restriction has to let it through."
        return
    same = {rule.rule_id: rule for rule in base.rules}
    # A stronger rule for some of its facts is met before the general one: it must not be weaker in
    # any other way, or those facts would age out or fall behind.
    changed = [
        rule
        for rule in after.rules
        if rule.source_type == source and rule.enabled and rule != same.get(rule.rule_id)
    ]
    for rule in changed if now in changed else (now, *changed):
        yield from _compared(rule, before, source)


def _compared(rule: Rule, before: Rule, source: str) -> Iterator[str]:
    least = min(THRESHOLD, _strength(before))
    if _strength(rule) < least:
        yield (
            f"{source} must not be suppressed: its strength would be"
            f" {_strength(rule) / WEIGHT_ONE:g}, below {least / WEIGHT_ONE:g}."
        )
    if rule.recency_half_life and not 0 < before.recency_half_life <= rule.recency_half_life:
        yield f"{source} must not age faster than it does: a half-life of {rule.recency_half_life}."
    if rule.novelty_weight > before.novelty_weight:
        yield f"{source} must not fall further for being repeated than it does."


def _general(profile: Profile, source: str) -> Rule | None:
    """The rule that every fact of a source can count on; None where some are let through by none."""
    rules = [rule for rule in profile.rules if rule.source_type == source]
    if not rules:
        return _UNRULED
    general = [rule for rule in rules if rule.enabled and rule.predicate == Predicate()]
    return min(general, key=lambda rule: (-rule.priority_weight, rule.rule_id), default=None)


def _strength(rule: Rule) -> int:
    return rule.priority_weight * (WEIGHT_ONE + rule.risk_weight) // WEIGHT_ONE
