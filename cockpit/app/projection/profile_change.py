"""A profile change folded from its proposal's body: bands and rules before and after, the verdict.

Source: ``docs/journal.md``, "Bodies of proposals".
"""

from __future__ import annotations

from cockpit.app.projection import row_detail as read
from widgets.views import BandChangeView, GuardCheckView, ProfileChangeView, RuleChangeView

_PARTS = (
    ("priority_weight", "priority"),
    ("risk_weight", "risk"),
    ("novelty_weight", "novelty"),
    ("recency_half_life", "half-life"),
)


def shift(body: read.Detail) -> ProfileChangeView:
    """The view of a profile proposal's body; what it does not say is left empty."""
    waves = read.number(body, "effective_waves")
    profile = read.text(body, "profile_id") or "profile"
    old, new = (_rules(body, name) for name in ("rules_before", "rules_after"))
    rooms = {name: _rooms(body, name) for name in ("bands_before", "bands_after")}
    names = dict.fromkeys([*rooms["bands_before"], *rooms["bands_after"]])
    none = (0, 0, 0)
    return ProfileChangeView(
        base=f"{profile} v{read.number(body, 'base_version')}",
        holds=_holds(waves),
        reason=read.text(body, "reason"),
        budget=(read.number(body, "total_before"), read.number(body, "total_after")),
        bands=tuple(
            BandChangeView(
                name, rooms["bands_before"].get(name, none), rooms["bands_after"].get(name, none)
            )
            for name in names
        ),
        rules=tuple(
            RuleChangeView(name, old.get(name, ""), new.get(name, ""))
            for name in dict.fromkeys([*old, *new])
        ),
        verdict=tuple(
            GuardCheckView(
                read.text(entry, "code"), read.truth(entry, "ok"), read.text(entry, "message")
            )
            for entry in read.entries(body, "verdict")
        ),
    )


def _holds(waves: int) -> str:
    if waves == 0:
        return "for good"
    return "for the next wave" if waves == 1 else f"for the next {waves:,} waves"


def _rooms(body: read.Detail, name: str) -> dict[str, tuple[int, int, int]]:
    return {
        read.text(band, "band"): (
            read.number(band, "min_tokens"),
            read.number(band, "target_tokens"),
            read.number(band, "max_tokens"),
        )
        for band in read.entries(body, name)
    }


def _rules(body: read.Detail, name: str) -> dict[str, str]:
    return {read.text(rule, "rule_id"): _words(rule) for rule in read.entries(body, name)}


def _words(rule: read.Detail) -> str:
    parts = [read.text(rule, "source_type") or "any source"]
    for key, label in _PARTS:
        value = read.real(rule, key)
        if value or key == "priority_weight":
            parts.append(f"{label} {value or 0:g}")
    parts += [f"{key} {value}" for key, value in read.inner(rule, "predicate").items()]
    if not read.truth(rule, "enabled"):
        parts.append("off")
    return ", ".join(parts)
