"""A profile as a JSON document: what is shown, exported, compared and imported.

See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.orient.profile_changes.apply_change import apply_change, change_between
from cockpit.orient.profile_changes.change_record import (
    ChangeRefused,
    ProfileChange,
    band_body,
    rule_body,
)
from cockpit.orient.profile_changes.parse_change import parse_change, read_object
from cockpit.store.context.profile_model import BANDS, Profile

_ABOUT = (
    *("profile_id", "version", "status", "horizon_waves", "updated_by", "updated_at"),
    *("digest", "adaptation"),
)
"""What a document says of where it came from: read by people, not taken over."""


def profile_document(profile: Profile) -> dict[str, Any]:
    """The whole profile. Weights are numbers of 0 to 4, room is in tokens."""
    return {
        "profile_id": profile.profile_id,
        "version": profile.version,
        "status": profile.status,
        "ranking": profile.ranking,
        "total_token_budget": profile.total_token_budget,
        "horizon_waves": profile.duration_waves,
        "updated_by": profile.updated_by,
        "updated_at": profile.updated_at,
        "digest": profile.digest,
        "cache": profile.cache.document(),
        "bands": [band_body(band) for band in profile.bands],
        "rules": [rule_body(rule) for rule in sorted(profile.rules, key=lambda rule: rule.rule_id)],
    }


def import_profile(text: str | bytes, base: Profile, *, waves: int, reason: str) -> ProfileChange:
    """The change that makes ``base`` into what the document says; ``waves`` 0 is for good.

    Read as strictly as a proposal. Raises :class:`ChangeRefused`.
    """
    body = read_object(text)
    missing = [name for name in ("bands", "rules", "total_token_budget") if name not in body]
    if missing:
        raise ChangeRefused(f"{missing[0]} is missing: that is not an exported profile.")
    fields = {name: value for name, value in body.items() if name not in _ABOUT}
    bands, rules = fields["bands"], fields["rules"]
    if not isinstance(bands, list) or not isinstance(rules, list):
        raise ChangeRefused("bands and rules must be lists, as an export has them.")
    names = {rule.get("rule_id") for rule in rules if isinstance(rule, Mapping)}
    payload = {
        **fields,
        "bands": dict(_named(band) for band in bands),
        "base_profile_version": base.version,
        "effective_waves": waves,
        "removed_rules": [rule.rule_id for rule in base.rules if rule.rule_id not in names],
    }
    if len(payload["bands"]) != len(BANDS) or len(bands) != len(BANDS):
        raise ChangeRefused(f"bands must hold {', '.join(BANDS)}, once each.", code="band_invalid")
    target = apply_change(parse_change(canonical_json(payload), imported=True), base)
    return change_between(base, target, waves=waves, reason=reason)


def profile_differences(before: Profile, after: Profile) -> dict[str, Any]:
    """What differs between two versions: budget, ranking, bands and rules, each before and after."""
    old = {rule.rule_id: rule_body(rule) for rule in before.rules}
    new = {rule.rule_id: rule_body(rule) for rule in after.rules}
    return {
        "profile_id": after.profile_id,
        "before": before.version,
        "after": after.version,
        "total_token_budget": [before.total_token_budget, after.total_token_budget],
        "ranking": [before.ranking, after.ranking],
        "cache": [before.cache.document(), after.cache.document()],
        "bands": [
            {"band": was.name, "before": band_body(was), "after": band_body(now)}
            for was, now in zip(before.bands, after.bands, strict=True)
            if was != now
        ],
        "rules": [
            {"rule_id": name, "before": old.get(name), "after": new.get(name)}
            for name in sorted(old | new)
            if old.get(name) != new.get(name)
        ],
    }


def _named(band: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(band, dict) or not isinstance(band.get("band"), str):
        raise ChangeRefused("Every band must be an object with its name under 'band'.")
    return band["band"], {name: value for name, value in band.items() if name != "band"}
