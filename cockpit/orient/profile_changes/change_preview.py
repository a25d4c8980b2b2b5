"""A profile change as the user sees it before deciding: before, after, and the guard's verdict.

See ``docs/reference/journal.md`` (bodies of proposals).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from cockpit.core.text import pluralize
from cockpit.orient.profile_changes.apply_change import changes_weights_only, widened_fetches
from cockpit.orient.profile_changes.change_record import ProfileChange, band_body, rule_body
from cockpit.orient.profile_changes.guard import passed_checks
from cockpit.store.context.profile_model import WEIGHT_ONE, Band, Profile, Rule, predicate_body


def change_title(change: ProfileChange) -> str:
    """A few words for lists."""
    names = [*(str(rule.rule_id) for rule in change.rules), *change.bands]
    if change.total_token_budget is not UNSET:
        names.append("the budget")
    subjects = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"change the profile {duration_text(change.effective_waves)}: {subjects}"


def duration_text(waves: int) -> str:
    """How long a change holds, in words."""
    if waves == 0:
        return "permanently"
    return "for the next wave" if waves == 1 else f"for the next {waves} waves"


def proposal_body(change: ProfileChange, base: Profile, after: Profile) -> dict[str, Any]:
    """The body of a profile proposal. Bands are listed whole, rules where they change."""
    old = {rule.rule_id: rule for rule in base.rules}
    new = {rule.rule_id: rule for rule in after.rules}
    changed = [name for name in sorted(old | new) if old.get(name) != new.get(name)]
    return {
        "type": "profile",
        "reason": change.reason,
        "profile_id": base.profile_id,
        "base_version": base.version,
        "effective_waves": change.effective_waves,
        "total_before": base.total_token_budget,
        "total_after": after.total_token_budget,
        "bands_before": [band_body(band) for band in base.bands],
        "bands_after": [band_body(band) for band in after.bands],
        "rules_before": [rule_body(old[name]) for name in changed if name in old],
        "rules_after": [rule_body(new[name]) for name in changed if name in new],
        "fields": [list(pair) for pair in _differences(change, base, after)],
        "verdict": passed_checks(),
        "widening": not changes_weights_only(base, after),
        "payload": change.body(),
    }


def _differences(change: ProfileChange, base: Profile, after: Profile) -> Iterator[tuple[str, str]]:
    yield "holds", duration_text(change.effective_waves)
    if base.total_token_budget != after.total_token_budget:
        yield "budget", f"{base.total_token_budget:,} → {after.total_token_budget:,} tokens"
    for before, now in zip(base.bands, after.bands, strict=True):
        if before != now:
            yield now.name, f"{_room(before)} → {_room(now)}"
    old = {rule.rule_id: rule for rule in base.rules}
    new = {rule.rule_id: rule for rule in after.rules}
    for name in sorted(old | new):
        if old.get(name) != new.get(name):
            yield name, f"{_rule(old.get(name))} → {_rule(new.get(name))}"
    for rule, items in widened_fetches(base, after):
        yield f"{rule.rule_id} reads without asking", f"{', '.join(items)} ({fetch_bound(rule)})"


def fetch_bound(rule: Rule) -> str:
    """The most that a rule's ``fetch`` adds to a wave, in words."""
    return f"at most {pluralize(rule.quota, 'job')} a wave"


def _room(band: Band) -> str:
    return f"{band.min_tokens:,} / {band.target_tokens:,} / {band.max_tokens:,}"


def _rule(rule: Rule | None) -> str:
    if rule is None:
        return "none"
    parts = [f"priority {rule.priority_weight / WEIGHT_ONE:g}"]
    if rule.risk_weight:
        parts.append(f"risk {rule.risk_weight / WEIGHT_ONE:g}")
    if rule.novelty_weight:
        parts.append(f"novelty {rule.novelty_weight / WEIGHT_ONE:g}")
    if rule.recency_half_life:
        parts.append(f"half-life {rule.recency_half_life}")
    parts += [f"{name} {value}" for name, value in predicate_body(rule.predicate).items()]
    if rule.fetch:
        parts.append(f"fetches {', '.join(rule.fetch)} ({fetch_bound(rule)})")
    return ", ".join(parts) if rule.enabled else "off"
