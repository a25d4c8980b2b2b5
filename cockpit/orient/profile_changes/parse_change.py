"""Read a proposed profile change strictly: anything doubtful is refused.

A field that is left out stays as it is. Numbers are whole tokens and waves; weights are 0 to 4 (risk and
novelty 0 to 1). See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, structs
from msgspec.structs import replace

from cockpit.core.read_record import InvalidRecord, parse_object, read_record
from cockpit.orient.profile_changes.change_record import (
    MAX_NUMBER,
    MAX_RULES,
    MAX_TEXT,
    NAME_PATTERN,
    ChangePayload,
    ChangeRefused,
    ProfileChange,
    RuleChange,
)
from cockpit.store.context.profile_model import BANDS, FETCH_ITEMS_MAX, Predicate

MAX_CHARACTERS = 200_000

_OUT_OF_REACH = frozenset(
    (
        *("scope", "scopes", "tool", "tools", "capability", "capabilities", "permissions"),
        *("policy", "approval", "sandbox", "network", "paths", "limits", "grants", "allow"),
        *("max_jobs", "max_facts", "floors", "admin"),
    )
)
"""Fields that no profile has: a change that names one asks for more than a profile decides."""
_NAME = re.compile(NAME_PATTERN, re.ASCII)


def parse_change(text: str | bytes, *, imported: bool = False) -> ProfileChange:
    """Read the JSON text of a change; ``imported`` allows the fields of :class:`ProfileChange`.

    Raises :class:`ChangeRefused` with a message that names the field.
    """
    payload = _read_payload(ProfileChange if imported else ChangePayload, read_object(text))
    change = ProfileChange(**structs.asdict(payload))
    for name in change.bands:
        _check_band("bands", name)
    for name in change.removed_rules:
        _check_name("removed_rules", name)
    if change.cache is not None and (problem := change.cache.problem()):
        raise ChangeRefused(f"{problem}.")
    return replace(
        change,
        bands={name: change.bands[name] for name in BANDS if name in change.bands},
        rules=_check_rules(change.rules),
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


def _check_rules(rules: tuple[RuleChange, ...]) -> tuple[RuleChange, ...]:
    """Return the rules, each with its id."""
    if len(rules) > MAX_RULES:
        raise ChangeRefused(f"rules lists {len(rules):,} rules; at most {MAX_RULES} are allowed.")
    checked: dict[str, RuleChange] = {}
    for position, rule in enumerate(rules):
        place = f"rules[{position}]"
        rule_id = rule.source_type if rule.rule_id is UNSET else rule.rule_id
        if rule_id is UNSET:
            raise ChangeRefused(f"{place} needs a rule_id, or the source_type that it is about.")
        _check_name(f"{place}.rule_id", rule_id)
        if rule.source_type is not UNSET:
            _check_name(f"{place}.source_type", rule.source_type)
        if rule.predicate is not UNSET:
            _check_predicate(f"{place}.predicate", rule.predicate)
        if rule.fetch is not UNSET:
            rule = replace(rule, fetch=_check_fetch(f"{place}.fetch", rule.fetch))
        if rule_id in checked:
            raise ChangeRefused(f"{place}: rule {rule_id!r} is given twice.")
        checked[rule_id] = replace(rule, rule_id=rule_id)
    return tuple(checked.values())


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


def _check_name(place: str, name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise ChangeRefused(f"{place} must be a name: letters, digits and _.:/- up to 100.")
