"""Read a proposed profile change strictly: anything doubtful is refused.

A field that is left out stays as it is. Numbers are whole tokens and waves; weights are 0 to 4 (risk and
novelty 0 to 1). See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, field

from cockpit.core.read_record import InvalidRecord, describe, parse_object, read_record
from cockpit.orient.profile_changes.change_record import (
    BAND_FIELDS,
    BandChange,
    ChangeRefused,
    ProfileChange,
    RuleChange,
)
from cockpit.store.context.packet_epoch import CachePrices
from cockpit.store.context.profile_model import (
    BANDS,
    FETCH_ITEMS_MAX,
    FETCH_QUOTA_MAX,
    PRIORITY_MAX,
    WEIGHT_ONE,
    Predicate,
    Ranking,
)

T = TypeVar("T")

MAX_CHARACTERS = 200_000
MAX_NUMBER = 10**9
MAX_RULES = 200
MAX_TEXT = 4_000

_OUT_OF_REACH = frozenset(
    (
        *("scope", "scopes", "tool", "tools", "capability", "capabilities", "permissions"),
        *("policy", "approval", "sandbox", "network", "paths", "limits", "grants", "allow"),
        *("max_jobs", "max_facts", "floors", "admin"),
    )
)
"""Fields that no profile has: a change that names one asks for more than a profile decides."""
_NAME_PATTERN = "[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,99}"
_NAME = re.compile(_NAME_PATTERN, re.ASCII)

_Tokens = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
_Positive = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
_Text = Annotated[str, Meta(max_length=MAX_TEXT)]
_Priority = Annotated[float, Meta(ge=0, le=PRIORITY_MAX // WEIGHT_ONE)]
_Weight = Annotated[float, Meta(ge=0, le=1)]
_IN_SCHEMA = {"pattern": f"^{_NAME_PATTERN}$"}
"""What :func:`_check_name` refuses, for readers of the schema."""


class BandPayload(Struct, frozen=True):
    """New limits of one band, in tokens."""

    min_tokens: _Tokens | UnsetType = UNSET
    target_tokens: _Tokens | UnsetType = UNSET
    max_tokens: _Tokens | UnsetType = UNSET


class RulePayload(Struct, frozen=True):
    """A changed or new attention rule, as JSON names its fields."""

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


class ChangePayload(Struct, frozen=True, kw_only=True):
    """A profile change, as agents propose it."""

    base_profile_version: _Positive
    effective_waves: _Positive
    bands: Annotated[
        Mapping[str, BandPayload],
        describe("New limits by band.", propertyNames={"enum": list(BANDS)}),
    ] = field(default_factory=dict)
    rules: Annotated[
        tuple[RulePayload, ...], describe("Changed and new rules.", maxItems=MAX_RULES)
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


class ImportPayload(ChangePayload, frozen=True, kw_only=True):
    """A profile change that comes from an imported profile: it may last and may remove rules."""

    effective_waves: _Tokens
    ranking: Ranking | None = None
    removed_rules: tuple[str, ...] = ()
    cache: CachePrices | None = None


def parse_change(text: str | bytes, *, imported: bool = False) -> ProfileChange:
    """Read the JSON text of a change; ``imported`` allows the fields of :class:`ImportPayload`.

    Raises :class:`ChangeRefused` with a message that names the field.
    """
    body = read_object(text)
    payload = _read_payload(ImportPayload if imported else ChangePayload, body)
    ranking: Ranking | None = None
    removed: tuple[str, ...] = ()
    cache: CachePrices | None = None
    if isinstance(payload, ImportPayload):
        ranking = payload.ranking
        removed = tuple(_check_name("removed_rules", name) for name in payload.removed_rules)
        cache = payload.cache
        if cache is not None and (problem := cache.problem()):
            raise ChangeRefused(f"{problem}.")
    return ProfileChange(
        payload.base_profile_version,
        payload.effective_waves,
        _band_changes(payload.bands),
        _rule_changes(payload.rules),
        _or_none(payload.total_token_budget),
        payload.reason,
        tuple(claim for claim in (payload.namespace, payload.requested_by) if claim is not UNSET),
        ranking,
        removed,
        cache,
    )


def read_object(text: str | bytes) -> dict[str, Any]:
    """Parse the text of one JSON object. Raises :class:`ChangeRefused`."""
    try:
        return parse_object(text, name="the change", max_characters=MAX_CHARACTERS)
    except InvalidRecord as error:
        raise ChangeRefused(str(error)) from error


def _read_payload(record: type[ChangePayload], body: Mapping[str, Any]) -> ChangePayload:
    try:
        return read_record(record, body, name="the change")
    except InvalidRecord as error:
        out_of_reach = [name for name in error.unknown if name.casefold() in _OUT_OF_REACH]
        if out_of_reach:
            raise ChangeRefused(
                f"{out_of_reach[0]} is not part of a profile: an agent's rights are set elsewhere.",
                code="capability_relaxed",
            ) from error
        raise ChangeRefused(str(error)) from error


def _band_changes(bands: Mapping[str, BandPayload]) -> tuple[BandChange, ...]:
    for name in bands:
        _check_band("bands", name)
    return tuple(
        BandChange(name, *(_or_none(getattr(bands[name], limit)) for limit in BAND_FIELDS))
        for name in BANDS
        if name in bands
    )


def _rule_changes(rules: tuple[RulePayload, ...]) -> tuple[RuleChange, ...]:
    if len(rules) > MAX_RULES:
        raise ChangeRefused(f"rules lists {len(rules):,} rules; at most {MAX_RULES} are allowed.")
    changes: dict[str, RuleChange] = {}
    for position, rule in enumerate(rules):
        place = f"rules[{position}]"
        change = _rule_change(place, rule)
        if change.rule_id in changes:
            raise ChangeRefused(f"{place}: rule {change.rule_id!r} is given twice.")
        changes[change.rule_id] = change
    return tuple(changes.values())


def _rule_change(place: str, rule: RulePayload) -> RuleChange:
    source_type = _or_none(rule.source_type)
    rule_id = source_type if rule.rule_id is UNSET else rule.rule_id
    if rule_id is None:
        raise ChangeRefused(f"{place} needs a rule_id, or the source_type that it is about.")
    _check_name(f"{place}.rule_id", rule_id)
    if source_type is not None:
        _check_name(f"{place}.source_type", source_type)
    if rule.predicate is not UNSET:
        _check_predicate(f"{place}.predicate", rule.predicate)
    return RuleChange(
        rule_id,
        source_type,
        _or_none(rule.predicate),
        _thousandths(rule.priority_weight),
        _thousandths(rule.novelty_weight),
        _thousandths(rule.risk_weight),
        _or_none(rule.recency_half_life),
        _or_none(rule.enabled),
        None if rule.fetch is UNSET else _check_fetch(f"{place}.fetch", rule.fetch),
        _or_none(rule.quota),
    )


def _check_fetch(place: str, items: tuple[str, ...]) -> tuple[str, ...]:
    if len(items) > FETCH_ITEMS_MAX:
        raise ChangeRefused(f"{place} lists {len(items)} items; at most {FETCH_ITEMS_MAX}.")
    if any(len(item) > MAX_TEXT for item in items):
        raise ChangeRefused(f"{place} has an item of more than {MAX_TEXT:,} characters.")
    return tuple(dict.fromkeys(items))


def _check_predicate(place: str, predicate: Predicate) -> None:
    numbers = (predicate.min_utility, predicate.max_age_waves or 0)
    if not all(0 <= number <= MAX_NUMBER for number in numbers):
        raise ChangeRefused(f"{place}: numbers are 0 to {MAX_NUMBER:,}.")
    if predicate.band:
        _check_band(place, predicate.band)
    if len(predicate.ref_prefix) > MAX_TEXT:
        raise ChangeRefused(f"{place}.ref_prefix is longer than {MAX_TEXT:,} characters.")


def _check_band(place: str, name: str) -> None:
    if name not in BANDS:
        raise ChangeRefused(
            f"{place}: there is no band {name[:80]!r}. The bands are: {', '.join(BANDS)}.",
            code="band_invalid",
        )


def _check_name(place: str, name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ChangeRefused(f"{place} must be a name: letters, digits and _.:/- up to 100.")
    return name


def _thousandths(weight: float | UnsetType) -> int | None:
    return None if weight is UNSET else round(weight * WEIGHT_ONE)


def _or_none(value: T | UnsetType) -> T | None:
    return None if value is UNSET else value
