"""A proposed profile change as the screen shows it: bands and rules before and after, the guard's checks.

The body of the proposal is specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.store.journal.details.proposals import BandRoom, ProfileRule, ProposalBody
from widgets.views import BandChangeView, GuardCheckView, ProfileChangeView, RuleChangeView


def shift(body: ProposalBody) -> ProfileChangeView:
    """Return the view of a profile proposal's body."""
    old = {rule.rule_id: _rule_text(rule) for rule in body.rules_before}
    new = {rule.rule_id: _rule_text(rule) for rule in body.rules_after}
    before = {band.band: _limits(band) for band in body.bands_before}
    after = {band.band: _limits(band) for band in body.bands_after}
    none = (0, 0, 0)
    return ProfileChangeView(
        base=f"{body.profile_id or 'profile'} v{body.base_version}",
        duration=_duration(body.effective_waves),
        reason=body.reason,
        budget=(body.total_before, body.total_after),
        bands=tuple(
            BandChangeView(name, before.get(name, none), after.get(name, none))
            for name in dict.fromkeys([*before, *after])
        ),
        rules=tuple(
            RuleChangeView(name, old.get(name, ""), new.get(name, ""))
            for name in dict.fromkeys([*old, *new])
        ),
        reads=tuple(_list_reads(body)),
        verdict=tuple(
            GuardCheckView(finding.code, finding.ok, finding.message) for finding in body.verdict
        ),
    )


def _list_reads(body: ProposalBody) -> Iterator[str]:
    """Yield what each rule would read without asking, and did not before."""
    before = {rule.rule_id: rule for rule in body.rules_before if rule.enabled}
    for rule in body.rules_after:
        old = before.get(rule.rule_id)
        so_far = old.fetch if old and rule.quota <= old.quota else ()
        more = [item for item in rule.fetch if item not in so_far]
        if rule.enabled and more:
            yield f"{', '.join(more)} ({rule.quota} jobs a wave at most)"


def _duration(waves: int) -> str:
    if waves == 0:
        return "permanently"
    return "for the next wave" if waves == 1 else f"for the next {waves:,} waves"


def _limits(band: BandRoom) -> tuple[int, int, int]:
    return band.min_tokens, band.target_tokens, band.max_tokens


def _rule_text(rule: ProfileRule) -> str:
    parts = [rule.source_type or "any source", f"priority {rule.priority_weight or 0:g}"]
    for label, weight in (
        ("risk", rule.risk_weight),
        ("novelty", rule.novelty_weight),
        ("half-life", rule.recency_half_life),
    ):
        if weight:
            parts.append(f"{label} {weight:g}")
    parts += [f"{key} {value}" for key, value in rule.predicate.items()]
    if rule.fetch:
        parts.append(f"fetches {', '.join(rule.fetch)}, quota {rule.quota}")
    if not rule.enabled:
        parts.append("off")
    return ", ".join(parts)
