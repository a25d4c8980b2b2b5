"""A proposed profile change: what it asks for, as a record and as JSON.

:mod:`.parse_change` reads it, :mod:`.guard` checks it, :mod:`.apply_change` applies it. See
``docs/reference/profile-changes.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import CockpitError
from cockpit.store.context.packet_epoch import CachePrices
from cockpit.store.context.profile_model import WEIGHT_ONE, Predicate, Ranking, predicate_body

BAND_FIELDS = ("min_tokens", "target_tokens", "max_tokens")


class ChangeRefused(CockpitError):
    """A payload that is not a change: ``malformed``, ``band_invalid`` or ``capability_relaxed``."""

    code = "malformed"


class BandChange(Struct, frozen=True):
    """New room for a band, in tokens; None stays as it is."""

    name: str
    min_tokens: int | None = None
    target_tokens: int | None = None
    max_tokens: int | None = None


class RuleChange(Struct, frozen=True):
    """A rule that changes, or a new one. Weights are thousandths; None stays as it is."""

    rule_id: str
    source_type: str | None = None
    predicate: Predicate | None = None
    priority_weight: int | None = None
    novelty_weight: int | None = None
    risk_weight: int | None = None
    recency_half_life: int | None = None
    enabled: bool | None = None
    fetch: tuple[str, ...] | None = None
    quota: int | None = None


class ProfileChange(Struct, frozen=True):
    """What is asked for. ``effective_waves`` 0 is for good, which only an import asks for, as it
    alone sets ``ranking``, ``removed_rules`` and ``cache``. ``claimed`` is who the payload says it is
    from."""

    base_version: int
    effective_waves: int
    bands: tuple[BandChange, ...] = ()
    rules: tuple[RuleChange, ...] = ()
    total_token_budget: int | None = None
    reason: str = ""
    claimed: tuple[str, ...] = ()
    ranking: Ranking | None = None
    removed_rules: tuple[str, ...] = ()
    cache: CachePrices | None = None

    def body(self) -> dict[str, Any]:
        """The change as a JSON value that ``parse_change`` reads back, claims left out."""
        body: dict[str, Any] = {
            "base_profile_version": self.base_version,
            "effective_waves": self.effective_waves,
            "reason": self.reason,
        }
        if self.bands:
            body["bands"] = {
                band.name: _given({name: getattr(band, name) for name in BAND_FIELDS})
                for band in self.bands
            }
        if self.rules:
            body["rules"] = [_rule_body(rule) for rule in self.rules]
        if self.total_token_budget is not None:
            body["total_token_budget"] = self.total_token_budget
        if self.ranking is not None:
            body["ranking"] = self.ranking
        if self.removed_rules:
            body["removed_rules"] = list(self.removed_rules)
        if self.cache is not None:
            body["cache"] = self.cache.document()
        return body

    @property
    def text(self) -> str:
        """:meth:`body` as canonical JSON."""
        return canonical_json(self.body())


def _rule_body(rule: RuleChange) -> dict[str, Any]:
    return {
        "rule_id": rule.rule_id,
        **_given(
            {
                "source_type": rule.source_type,
                "predicate": None if rule.predicate is None else predicate_body(rule.predicate),
                **{
                    name: None if weight is None else weight / WEIGHT_ONE
                    for name, weight in (
                        ("priority_weight", rule.priority_weight),
                        ("novelty_weight", rule.novelty_weight),
                        ("risk_weight", rule.risk_weight),
                    )
                },
                "recency_half_life": rule.recency_half_life,
                "enabled": rule.enabled,
                "fetch": None if rule.fetch is None else list(rule.fetch),
                "quota": rule.quota,
            }
        ),
    }


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
