"""Apply a change to a profile, and decide what remains of it when it expires. Pure.

See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, convert
from msgspec.structs import replace

from cockpit.orient.profile_changes.change_record import (
    WEIGHTS,
    BandChange,
    ChangeRefused,
    ProfileChange,
    RuleChange,
    rule_body,
)
from cockpit.store.context.profile_model import WEIGHT_ONE, Predicate, Profile, Rule

AtExpiry = Literal["revert", "promote_if_better"]


def apply_change(change: ProfileChange, base: Profile) -> Profile:
    """``base`` with the change made: a candidate for the next version, not yet judged.

    Raises :class:`ChangeRefused` for a rule that is none.
    """
    return replace(
        base,
        version=base.version + 1,
        duration_waves=change.effective_waves,
        status="active",
        total_token_budget=change.total_token_budget or base.total_token_budget,
        ranking=change.ranking or base.ranking,
        bands=tuple(replace(band, **_given(change.bands.get(band.name))) for band in base.bands),
        rules=_rules(change, base),
        cache=change.cache or base.cache,
    )


def _given(change: BandChange | RuleChange | None) -> dict[str, Any]:
    """Return the fields that a change sets."""
    fields = () if change is None else change.__struct_fields__
    return {name: each for name in fields if (each := getattr(change, name)) is not UNSET}


def _rules(change: ProfileChange, base: Profile) -> tuple[Rule, ...]:
    rules = {rule.rule_id: rule for rule in base.rules}
    for name in change.removed_rules:
        if rules.pop(name, None) is None:
            raise ChangeRefused(
                f"There is no rule {name!r} to remove. See `cockpit profile current`."
            )
    for rule_change in change.rules:
        rule_id = str(rule_change.rule_id)
        rules[rule_id] = _rule(rules.get(rule_id), rule_id, rule_change)
    return tuple(sorted(rules.values(), key=lambda rule: rule.rule_id))


def _rule(old: Rule | None, rule_id: str, change: RuleChange) -> Rule:
    source = change.source_type
    if old is None:
        if source is UNSET:
            raise ChangeRefused(f"There is no rule {rule_id!r}; to add it, name its source_type.")
        old = Rule(rule_id, source, Predicate(), WEIGHT_ONE, 0, 0, 0)
    elif source not in (UNSET, old.source_type):
        raise ChangeRefused(
            f"Rule {rule_id!r} is about {old.source_type!r}; add a rule for another source."
        )
    fields = _given(change)
    fields |= {name: round(fields[name] * WEIGHT_ONE) for name in WEIGHTS if name in fields}
    return replace(old, **fields)


def change_between(base: Profile, target: Profile, *, waves: int, reason: str) -> ProfileChange:
    """The change that makes ``base`` into ``wanted``: what an import asks for."""
    old = {rule.rule_id: rule for rule in base.rules}
    new = {rule.rule_id: rule for rule in target.rules}
    other = [name for name in old if name in new and old[name].source_type != new[name].source_type]
    if other:
        raise ChangeRefused(
            f"Rule {other[0]!r} is about another source here; give it another name."
        )
    budget = target.total_token_budget
    return ProfileChange(
        base_profile_version=base.version,
        effective_waves=waves,
        bands={
            band.name: BandChange(band.min_tokens, band.target_tokens, band.max_tokens)
            for band, before in zip(target.bands, base.bands, strict=True)
            if band != before
        },
        rules=tuple(
            convert(rule_body(rule), RuleChange)
            for rule in target.rules
            if rule != old.get(rule.rule_id)
        ),
        total_token_budget=UNSET if budget == base.total_token_budget else budget,
        reason=reason,
        ranking=None if target.ranking == base.ranking else target.ranking,
        removed_rules=tuple(sorted(old.keys() - new.keys())),
        cache=None if target.cache == base.cache else target.cache,
    )


def changes_weights_only(base: Profile, after: Profile) -> bool:
    """Whether nothing but the weights of rules that were there differs."""
    if (base.bands, base.total_token_budget, base.ranking, base.cache) != (
        after.bands,
        after.total_token_budget,
        after.ranking,
        after.cache,
    ):
        return False
    return {_identity(rule) for rule in base.rules} == {_identity(rule) for rule in after.rules}


def _identity(rule: Rule) -> tuple[object, ...]:
    return (
        rule.rule_id,
        rule.source_type,
        rule.predicate,
        rule.enabled,
        *((rule.fetch, rule.quota) if rule.fetch else ()),
    )


def widened_fetches(base: Profile, after: Profile) -> list[tuple[Rule, tuple[str, ...]]]:
    """The rules of ``after`` that read more without asking than in ``base``, each with its items.

    New rules, rules that are switched on, more items, and a larger quota; the last with all its items.
    """
    old = {rule.rule_id: rule for rule in base.rules if rule.enabled}
    widened = []
    for rule in after.rules:
        before = old.get(rule.rule_id)
        if not rule.enabled or not rule.fetch:
            continue
        so_far = () if before is None or rule.quota > before.quota else before.fetch
        more = tuple(item for item in rule.fetch if item not in so_far)
        if more:
            widened.append((rule, more))
    return widened


def should_promote(policy: AtExpiry, quality: float | None, base_quality: float | None) -> bool:
    """Whether the version stays when its change expires: policy says so, both were measured, and it was
    better. A tie goes back."""
    if policy == "revert" or quality is None or base_quality is None:
        return False
    return quality > base_quality


def copy_as_next_version(content: Profile, newest: int, *, updated_by: str) -> Profile:
    """The next version with the content of another: versions never go back."""
    return replace(
        content, version=newest + 1, duration_waves=0, status="active", updated_by=updated_by
    )
