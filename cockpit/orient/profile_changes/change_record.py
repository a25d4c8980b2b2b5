"""A proposed profile change: what it asks for, as a record and as JSON.

:mod:`.parse_change` reads it, :mod:`.guard` checks it, :mod:`.apply_change` applies it. See
``docs/reference/profile-changes.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field, json
from msgspec.structs import replace

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import describe
from cockpit.store.context.packet_epoch import CachePrices
from cockpit.store.context.profile_model import (
    BANDS,
    FETCH_QUOTA_MAX,
    PRIORITY_MAX,
    WEIGHT_ONE,
    Band,
    Predicate,
    Ranking,
    Rule,
    predicate_body,
)

MAX_NUMBER = 10**9
MAX_RULES = 200
MAX_TEXT = 4_000
WEIGHTS = ("priority_weight", "novelty_weight", "risk_weight")
"""Fields that a stored rule has in thousandths."""
NAME_PATTERN = "[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,99}"

_Tokens = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
_Positive = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
_Text = Annotated[str, Meta(max_length=MAX_TEXT)]
_Priority = Annotated[float, Meta(ge=0, le=PRIORITY_MAX // WEIGHT_ONE)]
_Weight = Annotated[float, Meta(ge=0, le=1)]
_IN_SCHEMA = {"pattern": f"^{NAME_PATTERN}$"}
"""What parsing refuses, for readers of the schema."""


class ChangeRefused(CockpitError):
    """A payload that is not a change: ``malformed``, ``band_invalid`` or ``capability_relaxed``."""

    code = "malformed"


class BandChange(Struct, frozen=True):
    """New limits of one band, in tokens; what is left out stays as it is."""

    min_tokens: _Tokens | UnsetType = UNSET
    target_tokens: _Tokens | UnsetType = UNSET
    max_tokens: _Tokens | UnsetType = UNSET


class RuleChange(Struct, frozen=True):
    """A changed or new attention rule; weights are 0 to 4, risk and novelty 0 to 1."""

    rule_id: Annotated[
        str | UnsetType,
        describe(
            "The rule; needed unless source_type names it. A new one adds a rule.", **_IN_SCHEMA
        ),
    ] = UNSET
    source_type: Annotated[
        str | UnsetType, describe("The kind of source of a new rule.", **_IN_SCHEMA)
    ] = UNSET
    predicate: Predicate | UnsetType = UNSET
    priority_weight: _Priority | UnsetType = UNSET
    novelty_weight: _Weight | UnsetType = UNSET
    risk_weight: _Weight | UnsetType = UNSET
    recency_half_life: Annotated[int, Meta(ge=0, le=WEIGHT_ONE)] | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    fetch: Annotated[
        tuple[str, ...] | UnsetType,
        describe("Scope items of its source that sessions read without asking; a user must agree."),
    ] = UNSET
    quota: Annotated[int, Meta(ge=1, le=FETCH_QUOTA_MAX)] | UnsetType = UNSET
    """The most jobs a wave that ``fetch`` adds."""


class ChangePayload(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A profile change, as agents propose it."""

    base_profile_version: _Positive
    effective_waves: _Positive
    bands: Annotated[
        Mapping[str, BandChange],
        describe("New limits by band.", propertyNames={"enum": list(BANDS)}),
    ] = field(default_factory=dict)
    rules: Annotated[
        tuple[RuleChange, ...], describe("Changed and new rules.", maxItems=MAX_RULES)
    ] = ()
    total_token_budget: _Positive | UnsetType = UNSET
    reason: _Text = ""
    namespace: Annotated[
        _Text | UnsetType, describe("Counts for nothing; refused unless it is the token's.")
    ] = UNSET
    requested_by: Annotated[
        _Text | UnsetType,
        describe("Counts for nothing; refused unless it is the token's namespace."),
    ] = UNSET


class ProfileChange(ChangePayload, frozen=True, kw_only=True, omit_defaults=True):
    """What is asked for. An import alone lasts for good (``effective_waves`` 0), and sets the last three."""

    effective_waves: _Tokens
    ranking: Ranking | None = None
    removed_rules: tuple[str, ...] = ()
    cache: CachePrices | None = None

    @property
    def claimed(self) -> tuple[str, ...]:
        """Who the payload says that it is from."""
        return tuple(name for name in (self.namespace, self.requested_by) if name is not UNSET)

    def body(self) -> dict[str, Any]:
        """Return the change as a JSON value that ``parse_change`` reads back, claims left out."""
        shown = replace(self, namespace=UNSET, requested_by=UNSET, cache=None)
        body: dict[str, Any] = json.decode(json.encode(shown))
        return body if self.cache is None else {**body, "cache": self.cache.document()}

    @property
    def text(self) -> str:
        """:meth:`body` as canonical JSON."""
        return canonical_json(self.body())


def band_body(band: Band) -> dict[str, Any]:
    """A band as people and programs are shown it."""
    return {
        "band": band.name,
        "min_tokens": band.min_tokens,
        "target_tokens": band.target_tokens,
        "max_tokens": band.max_tokens,
    }


def rule_body(rule: Rule) -> dict[str, Any]:
    """A rule as people and programs are shown it: weights as numbers of 0 to 4."""
    return {
        "rule_id": rule.rule_id,
        "source_type": rule.source_type,
        "predicate": predicate_body(rule.predicate),
        **{name: getattr(rule, name) / WEIGHT_ONE for name in WEIGHTS},
        "recency_half_life": rule.recency_half_life,
        "enabled": rule.enabled,
        "fetch": list(rule.fetch),
        "quota": rule.quota,
    }
