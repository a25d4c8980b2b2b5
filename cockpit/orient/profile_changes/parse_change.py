"""A proposed profile change, read strictly: anything that is not plainly right is refused.

What is left out stays as it is. Numbers are whole tokens and waves, weights 0 to 4 (risk and novelty
0 to 1). Source: RFC-003 §10.3, §16.1 (fail closed on malformed payloads).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

import msgspec

from cockpit.core.canonical_json import canonical_json
from cockpit.orient.profile_changes.change_record import (
    BAND_FIELDS,
    BandChange,
    ChangeRefused,
    ProfileChange,
    RuleChange,
)
from cockpit.store.context.profile_model import (
    BANDS,
    PRIORITY_MAX,
    WEIGHT_ONE,
    Predicate,
    Ranking,
    read_predicate,
)

LONGEST = 200_000
LARGEST = 10**9
MOST_RULES = 200
MOST_WORDS = 4_000

_FIELDS = (
    "base_profile_version",
    "effective_waves",
    "bands",
    "rules",
    "total_token_budget",
    "reason",
    "namespace",
    "requested_by",
)
_OWN_FIELDS = ("ranking", "removed_rules")
_RULE_FIELDS = (
    "rule_id",
    "source_type",
    "predicate",
    "priority_weight",
    "novelty_weight",
    "risk_weight",
    "recency_half_life",
    "enabled",
)
_BOUNDS = frozenset(
    (
        *("scope", "scopes", "tool", "tools", "capability", "capabilities", "permissions"),
        *("policy", "approval", "sandbox", "network", "paths", "limits", "grants", "allow"),
        *("max_jobs", "max_facts", "floors", "admin"),
    )
)
"""Words for what a profile has no say in: a payload that names them asks for wider bounds."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,99}", re.ASCII)


def parse(text: str | bytes, *, own: bool = False) -> ProfileChange:
    """Read a payload. ``own`` allows what only an import asks for.

    Raises :class:`ChangeRefused`, whose words name the field and what would be right.
    """
    body = read_object(text)
    allowed = (*_FIELDS, *_OWN_FIELDS) if own else _FIELDS
    _known("the change", body, allowed)
    for name in ("base_profile_version", "effective_waves"):
        if name not in body:
            raise ChangeRefused(f"{name} is missing.")
    base = _whole("base_profile_version", body["base_profile_version"], least=1)
    waves = _whole("effective_waves", body["effective_waves"], least=0 if own else 1)
    total = None
    if "total_token_budget" in body:
        total = _whole("total_token_budget", body["total_token_budget"], least=1)
    claimed = [_words(name, body[name]) for name in ("namespace", "requested_by") if name in body]
    ranking = body.get("ranking")
    if ranking not in (None, *get_args(Ranking)):
        raise ChangeRefused(f"ranking must be one of {', '.join(get_args(Ranking))}.")
    return ProfileChange(
        base,
        waves,
        _bands(body.get("bands", {})),
        _rules(body.get("rules", [])),
        total,
        _words("reason", body.get("reason", "")),
        tuple(claimed),
        cast("Ranking | None", ranking),
        tuple(_name("removed_rules", name) for name in _list("removed_rules", body)),
    )


def read_object(text: str | bytes) -> dict[str, Any]:
    """One JSON object: no duplicate key, no number that is none, nothing that cannot be stored.

    Raises :class:`ChangeRefused`.
    """
    if len(text) > LONGEST:
        raise ChangeRefused(f"The change is longer than {LONGEST:,} characters.")
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=_once,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_short,
        )
        # What cannot be encoded cannot be stored, shown or digested.
        canonical_json(value).encode("utf-8")
    except json.JSONDecodeError as error:
        raise ChangeRefused(
            f"It is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from error
    except RecursionError as error:
        raise ChangeRefused("It is nested too deeply.") from error
    except ValueError as error:
        raise ChangeRefused(f"It is not JSON that can be used: {error}.") from error
    if not isinstance(value, dict):
        raise ChangeRefused("It must be a JSON object with named fields.")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the field {key[:80]!r} is given twice")
        found[key] = value
    return found


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"{word[:40]} is too large a number")
    return value


def _short(word: str) -> int:
    # Python's own limit tells the reader to change the interpreter.
    if len(word) > 40:
        raise ValueError(f"{word[:40]}… is too large a number")
    return int(word)


def _bands(value: Any) -> tuple[BandChange, ...]:
    found = []
    for name, body in _mapping("bands", value).items():
        if name not in BANDS:
            raise ChangeRefused(
                f"There is no band {name[:80]!r}; there are {', '.join(BANDS)}.",
                code="band_invalid",
            )
        fields = _mapping(f"bands.{name}", body)
        _known(f"bands.{name}", fields, BAND_FIELDS)
        room = {field: _whole(f"bands.{name}.{field}", n) for field, n in fields.items()}
        found.append(BandChange(name, **room))
    return tuple(sorted(found, key=lambda band: BANDS.index(band.name)))


def _rules(value: Any) -> tuple[RuleChange, ...]:
    if not isinstance(value, list):
        raise ChangeRefused("rules must be a list of objects.")
    if len(value) > MOST_RULES:
        raise ChangeRefused(f"rules names {len(value):,} rules; at most {MOST_RULES} are read.")
    found: dict[str, RuleChange] = {}
    for place, entry in enumerate(value):
        rule = _rule(f"rules[{place}]", _mapping(f"rules[{place}]", entry))
        if rule.rule_id in found:
            raise ChangeRefused(f"rules[{place}]: rule {rule.rule_id!r} is given twice.")
        found[rule.rule_id] = rule
    return tuple(found.values())


def _rule(place: str, body: Mapping[str, Any]) -> RuleChange:
    _known(place, body, _RULE_FIELDS)
    names = {
        field: _name(f"{place}.{field}", body[field])
        for field in ("rule_id", "source_type")
        if field in body
    }
    if not names:
        raise ChangeRefused(f"{place} needs a rule_id, or the source_type that it is about.")
    enabled = body.get("enabled")
    if "enabled" in body and not isinstance(enabled, bool):
        raise ChangeRefused(f"{place}.enabled must be true or false.")
    weights: dict[str, int] = {}
    for field, most in (
        ("priority_weight", PRIORITY_MAX),
        ("novelty_weight", WEIGHT_ONE),
        ("risk_weight", WEIGHT_ONE),
    ):
        if field in body:
            weights[field] = _weight(f"{place}.{field}", body[field], most)
    half_life = None
    if "recency_half_life" in body:
        name = f"{place}.recency_half_life"
        half_life = _whole(name, body["recency_half_life"], most=WEIGHT_ONE)
    return RuleChange(
        names.get("rule_id", names.get("source_type", "")),
        names.get("source_type"),
        _predicate(place, body["predicate"]) if "predicate" in body else None,
        weights.get("priority_weight"),
        weights.get("novelty_weight"),
        weights.get("risk_weight"),
        half_life,
        enabled,
    )


def _predicate(place: str, value: Any) -> Predicate:
    try:
        found = read_predicate(_mapping(f"{place}.predicate", value))
    except msgspec.ValidationError as error:
        raise ChangeRefused(f"{place}.predicate: {error}.") from error
    numbers = (found.min_utility, found.max_age_waves or 0)
    if not all(0 <= number <= LARGEST for number in numbers):
        raise ChangeRefused(f"{place}.predicate: numbers are 0 to {LARGEST:,}.")
    if found.band not in ("", *BANDS):
        raise ChangeRefused(
            f"{place}.predicate: there is no band {found.band[:80]!r}.", code="band_invalid"
        )
    _words(f"{place}.predicate.ref_prefix", found.ref_prefix)
    return found


def _known(place: str, body: Mapping[str, Any], allowed: Sequence[str]) -> None:
    unknown = sorted(body.keys() - set(allowed))
    wider = [name for name in unknown if name.casefold() in _BOUNDS]
    if wider:
        raise ChangeRefused(
            f"{wider[0]} is not a profile's to change: what an agent may do is decided elsewhere.",
            code="capability_relaxed",
        )
    if unknown:
        raise ChangeRefused(
            f"{place} has no field {unknown[0][:80]!r}; it has {', '.join(allowed)}."
        )


def _mapping(place: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ChangeRefused(f"{place} must be an object with named fields.")
    return value


def _list(place: str, body: Mapping[str, Any]) -> list[Any]:
    value = body.get(place, [])
    if not isinstance(value, list):
        raise ChangeRefused(f"{place} must be a list.")
    return value


def _whole(place: str, value: Any, *, least: int = 0, most: int = LARGEST) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ChangeRefused(f"{place} must be a whole number.")
    if not least <= value <= most:
        raise ChangeRefused(f"{place} must be from {least:,} to {most:,}.")
    return value


def _weight(place: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ChangeRefused(f"{place} must be a number.")
    if not 0 <= value <= most // WEIGHT_ONE:
        raise ChangeRefused(f"{place} must be from 0 to {most // WEIGHT_ONE}.")
    return round(value * WEIGHT_ONE)


def _words(place: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > MOST_WORDS:
        raise ChangeRefused(f"{place} must be text of at most {MOST_WORDS:,} characters.")
    return value


def _name(place: str, value: Any) -> str:
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise ChangeRefused(f"{place} must be a name: letters, digits and _.:/- up to 100.")
    return value
