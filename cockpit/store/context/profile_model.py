"""Profiles: how the token budget is split between bands, and how much each source weighs.

The records, their validation, and the profile that ships with the program;
:mod:`cockpit.store.context.profiles` stores their versions. Weights are fixed-point thousandths
(1000 is 1.0), so that comparisons use no floats. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import resources
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.canonical_json import digest
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import convert, describe
from cockpit.store.context.packet_epoch import DEFAULT_PRICES, CachePrices

BANDS = ("identity", "objectives", "capabilities", "situational", "exploration", "reserve")
"""The six bands, in the order in which screens and packets list them."""

Ranking = Literal["utility", "density"]
WEIGHT_ONE = 1000
PRIORITY_MAX = 4 * WEIGHT_ONE
BUDGET_MAX = 10_000_000
FETCH_QUOTA = 32
"""The most jobs that a rule with ``fetch`` adds to a wave, unless it says otherwise."""
FETCH_QUOTA_MAX = 1_000
FETCH_ITEMS_MAX = 16
"""The most scope items of one rule."""
SHIPPED = "cockpit"
"""``updated_by`` of a version that shipped with the program; a newer program may replace it."""


class ProfileInvalid(CockpitError):
    """The profile cannot be used; the message names the numbers that do not fit."""

    code = "profile_invalid"


class Band(Struct, frozen=True):
    """Limits of one kind of context, in tokens: reserved floor, target, ceiling."""

    name: str
    min_tokens: int
    target_tokens: int
    max_tokens: int


class Predicate(Struct, frozen=True, omit_defaults=True):
    """Which facts of its source type a rule applies to; defaults do not restrict."""

    band: Annotated[str, describe("", enum=["", *BANDS])] = ""
    ref_prefix: Annotated[str, describe("", maxLength=4_000)] = ""
    min_utility: Annotated[int, describe("", minimum=0, maximum=10**9)] = 0
    """0 to 1,000,000."""
    max_age_waves: Annotated[int | None, describe("", minimum=0, maximum=10**9)] = None
    """Counts from the wave that first saw the fact."""


_UNRESTRICTED = Predicate()


class Rule(Struct, frozen=True):
    """One attention rule. Weights are thousandths."""

    rule_id: str
    source_type: str
    predicate: Predicate
    priority_weight: int
    """0 to 4000; multiplies a fact's utility."""
    novelty_weight: int
    """0 to 1000; how far an older near-duplicate falls."""
    risk_weight: int
    """0 to 1000; adds what missing the fact would cost."""
    recency_half_life: int
    """Waves after which a fact counts half; 0: it does not age."""
    enabled: bool = True
    fetch: tuple[str, ...] = ()
    """Scope items of its source type that sessions read without asking."""
    quota: int = FETCH_QUOTA
    """The most jobs a wave that ``fetch`` adds."""


class Profile(Struct, frozen=True):
    """One version of a profile."""

    profile_id: str
    version: int
    total_token_budget: int
    duration_waves: int
    """How many waves it lasts; 0: permanently."""
    status: Literal["active", "candidate", "retired"]
    ranking: Ranking
    bands: tuple[Band, ...]
    rules: tuple[Rule, ...]
    updated_by: str = SHIPPED
    updated_at: str = ""
    cache: CachePrices = DEFAULT_PRICES
    """When an epoch of packets ends."""

    def digest_body(self) -> dict[str, Any]:
        """Return what determines a packet as a JSON value: no author, time or status."""
        cache = self.cache.body()
        return {
            **({"cache": cache} if cache else {}),
            "total_token_budget": self.total_token_budget,
            "ranking": self.ranking,
            "bands": [
                [band.name, band.min_tokens, band.target_tokens, band.max_tokens]
                for band in self.bands
            ],
            "rules": [
                [
                    rule.rule_id,
                    rule.source_type,
                    predicate_body(rule.predicate),
                    rule.priority_weight,
                    rule.novelty_weight,
                    rule.risk_weight,
                    rule.recency_half_life,
                    rule.enabled,
                    *fetch_body(rule),
                ]
                for rule in sorted(self.rules, key=lambda rule: rule.rule_id)
            ],
        }

    @property
    def digest(self) -> str:
        """sha256 of :meth:`digest_body`: profiles with equal digests compile alike."""
        return digest(self.digest_body())


def check(profile: Profile) -> Profile:
    """Return the profile if it is valid, else raise :class:`ProfileInvalid`.

    All six bands once and in order, floor ≤ target ≤ ceiling, floors together within the budget,
    weights within their ranges, rule ids unique.
    """
    name = f"Profile {profile.profile_id!r} version {profile.version}"
    total = profile.total_token_budget
    _check_budget(profile, total)
    if profile.ranking not in ("utility", "density"):
        raise ProfileInvalid(
            f"{name}: ranking {profile.ranking!r} is neither 'utility' nor 'density'."
        )
    if tuple(band.name for band in profile.bands) != BANDS:
        raise ProfileInvalid(f"{name}: the bands must be {', '.join(BANDS)}, once each, in order.")
    for band in profile.bands:
        if not 0 <= band.min_tokens <= band.target_tokens <= band.max_tokens:
            raise ProfileInvalid(
                f"{name}: band {band.name} needs 0 ≤ floor ≤ target ≤ ceiling, but has"
                f" {band.min_tokens:,}, {band.target_tokens:,}, {band.max_tokens:,}."
            )
    floors = sum(band.min_tokens for band in profile.bands)
    if floors > total:
        raise ProfileInvalid(
            f"{name}: the floors add up to {floors:,} tokens, more than the budget of {total:,}"
            f" ({', '.join(f'{band.name} {band.min_tokens:,}' for band in profile.bands)})."
            f" Raise the budget or lower the floors."
        )
    if problem := profile.cache.problem():
        raise ProfileInvalid(f"{name}: {problem}.")
    seen: set[str] = set()
    for rule in profile.rules:
        if rule.rule_id in seen:
            raise ProfileInvalid(f"{name}: rule {rule.rule_id!r} appears twice.")
        seen.add(rule.rule_id)
        if rule.predicate.band not in ("", *BANDS):
            raise ProfileInvalid(
                f"{name}: rule {rule.rule_id!r} is about {rule.predicate.band!r}, which is not a band."
            )
        _check_fetch(name, rule)
        for field, value, most in (
            ("priority_weight", rule.priority_weight, PRIORITY_MAX),
            ("novelty_weight", rule.novelty_weight, WEIGHT_ONE),
            ("risk_weight", rule.risk_weight, WEIGHT_ONE),
            ("recency_half_life", rule.recency_half_life, WEIGHT_ONE),
        ):
            if not 0 <= value <= most:
                raise ProfileInvalid(
                    f"{name}: rule {rule.rule_id!r} has {field} {value}, outside 0 to {most}."
                )
    return profile


def _check_budget(profile: Profile, total: int) -> None:
    if not 1 <= total <= BUDGET_MAX:
        raise ProfileInvalid(
            f"Profile {profile.profile_id!r} version {profile.version}: the token budget {total:,} is not"
            f" between 1 and {BUDGET_MAX:,}."
        )


def _check_fetch(name: str, rule: Rule) -> None:
    if len(rule.fetch) > FETCH_ITEMS_MAX:
        raise ProfileInvalid(
            f"{name}: rule {rule.rule_id!r} fetches {len(rule.fetch)} items; at most"
            f" {FETCH_ITEMS_MAX} are allowed."
        )
    if not 1 <= rule.quota <= FETCH_QUOTA_MAX:
        raise ProfileInvalid(
            f"{name}: rule {rule.rule_id!r} has quota {rule.quota}, outside 1 to {FETCH_QUOTA_MAX:,}."
        )
    for item in rule.fetch:
        if not item.startswith(f"{rule.source_type}:"):
            raise ProfileInvalid(
                f"{name}: rule {rule.rule_id!r} is about {rule.source_type} and cannot fetch"
                f" {item[:80]!r}; its items start with '{rule.source_type}:'."
            )


def fetch_body(rule: Rule) -> list[dict[str, Any]]:
    """Return what a rule fetches as a list of one JSON value; empty for a rule that fetches nothing.

    A profile without such rules keeps the digest that it had before rules could fetch.
    """
    return [{"fetch": list(rule.fetch), "quota": rule.quota}] if rule.fetch else []


def scale(profile: Profile, total_budget: int) -> Profile:
    """Return the profile with its bands scaled to another budget, in whole tokens.

    Rounding down keeps floor ≤ target ≤ ceiling, and the floors within the budget.
    """
    old = check(profile).total_token_budget
    _check_budget(profile, total_budget)
    bands = tuple(
        Band(
            band.name,
            band.min_tokens * total_budget // old,
            band.target_tokens * total_budget // old,
            band.max_tokens * total_budget // old,
        )
        for band in profile.bands
    )
    return replace(profile, total_token_budget=total_budget, bands=bands)


def predicate_body(predicate: Predicate) -> dict[str, Any]:
    """Return a predicate as a JSON value; fields that do not restrict are left out."""
    return {
        name: value
        for name in predicate.__struct_fields__
        if (value := getattr(predicate, name)) != getattr(_UNRESTRICTED, name)
    }


def parse_predicate(value: Any) -> Predicate:
    """Reverse :func:`predicate_body`.

    Raises ``msgspec.ValidationError`` for an unknown key.
    """
    names = set(Predicate.__struct_fields__)
    if isinstance(value, dict) and (unknown := sorted(map(str, value.keys() - names))):
        raise msgspec.ValidationError(
            f"a predicate has no {', '.join(unknown)} (it has {', '.join(sorted(names))})"
        )
    return convert(value, Predicate)


class _BandRow(msgspec.Struct, forbid_unknown_fields=True):
    floor: Annotated[int, msgspec.Meta(ge=0)]
    target: Annotated[int, msgspec.Meta(ge=0)]
    ceiling: Annotated[int, msgspec.Meta(ge=0)]


_Weight = Annotated[float, msgspec.Meta(ge=0, le=4)]


class _RuleRow(msgspec.Struct, forbid_unknown_fields=True):
    source: str
    priority: _Weight = 1.0
    novelty: _Weight = 0.0
    risk: _Weight = 0.0
    half_life: Annotated[int, msgspec.Meta(ge=0)] = 0
    id: str = ""
    when: dict[str, Any] = {}
    enabled: bool = True
    fetch: tuple[str, ...] = ()
    quota: int = FETCH_QUOTA


class _ProfileFile(msgspec.Struct, forbid_unknown_fields=True):
    budget: int
    bands: dict[str, _BandRow]
    rules: tuple[_RuleRow, ...]
    ranking: Ranking = "utility"
    horizon: Annotated[int, msgspec.Meta(ge=0)] = 0
    cache: CachePrices = DEFAULT_PRICES


def parse(text: str, profile_id: str) -> Profile:
    """Parse the text of a TOML file into version 1 of a profile.

    Raises :class:`ProfileInvalid`, which names the place of the error.
    """
    try:
        file = convert(tomllib.loads(text), _ProfileFile)
        predicates = [parse_predicate(row.when) for row in file.rules]
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ProfileInvalid(f"Profile {profile_id!r} cannot be read: {error}.") from error
    missing = [name for name in BANDS if name not in file.bands]
    unknown = [name for name in file.bands if name not in BANDS]
    if missing or unknown:
        raise ProfileInvalid(
            f"Profile {profile_id!r}: bands missing: {', '.join(missing) or 'none'};"
            f" not a band: {', '.join(unknown) or 'none'}."
        )
    rows = {name: file.bands[name] for name in BANDS}
    return check(
        Profile(
            profile_id,
            1,
            file.budget,
            file.horizon,
            "active",
            file.ranking,
            tuple(Band(name, row.floor, row.target, row.ceiling) for name, row in rows.items()),
            tuple(
                Rule(
                    row.id or row.source,
                    row.source,
                    when,
                    to_thousandths(row.priority),
                    to_thousandths(row.novelty),
                    to_thousandths(row.risk),
                    row.half_life,
                    row.enabled,
                    row.fetch,
                    row.quota,
                )
                for row, when in zip(file.rules, predicates, strict=True)
            ),
            cache=file.cache,
        )
    )


@lru_cache(maxsize=1)
def load_shipped() -> Profile:
    """Load the default profile that ships with the program."""
    file = resources.files("cockpit") / "data" / "profiles" / "default.toml"
    return parse(file.read_text("utf-8"), "default")


def to_thousandths(weight: float) -> int:
    """Convert a weight to thousandths: reverses dividing by :data:`WEIGHT_ONE`."""
    return round(weight * WEIGHT_ONE)
