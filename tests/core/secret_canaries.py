"""A made-up secret for each rule, drawn from the rule's own pattern."""

from __future__ import annotations

import random
import re
import string
from functools import cache

# The parser of patterns is the standard library's own, under the name that it has had since 3.11.
from re import _constants as names  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from cockpit.core.masking.long_runs import measure_entropy
from cockpit.core.masking.secret_rules import Rule, load_rules

_ALPHABET = string.ascii_letters + string.digits + "-_ .:=/+~'\"%@?&"
_NO_DIGITS = ("hf_", "api_org_")


@cache
def canaries() -> dict[str, tuple[str, str]]:
    """By rule, with its number: a text with a secret, and the secret alone."""
    return {f"{number}-{rule.kind}": _canary(rule) for number, rule in enumerate(load_rules())}


def _canary(rule: Rule) -> tuple[str, str]:
    for seed in range(4000):
        text = _draw(parser.parse(rule.pattern, re.ASCII), random.Random(seed))
        match = re.compile(rule.pattern, re.ASCII).search(text)
        if match is None:
            continue
        group = rule.group or next((n for n in range(1, match.re.groups + 1) if match[n]), 0)
        secret = match[group]
        digits = any(character.isdigit() for character in secret) or rule.sign in _NO_DIGITS
        if measure_entropy(secret) > max(rule.entropy, 2.5) and digits:
            return text, secret
    raise AssertionError(f"no text was drawn for {rule.kind}")


def _draw(parsed: Any, dice: random.Random, ignore: bool = False) -> str:
    return "".join(_draw_one(code, value, dice) for code, value in parsed)


def _draw_one(code: Any, value: Any, dice: random.Random) -> str:
    if code is names.LITERAL:
        return chr(value)
    if code is names.NOT_LITERAL:
        return dice.choice([each for each in "abc123" if ord(each) != value])
    if code is names.ANY:
        return "."
    if code is names.IN:
        return dice.choice(_list_allowed(value))
    if code in (names.MAX_REPEAT, names.MIN_REPEAT):
        least, most, inner = value
        count = min(int(most), max(least, 9)) if least else dice.choice([0, min(int(most), 2)])
        return "".join(_draw(inner, dice) for _ in range(count))
    if code is names.SUBPATTERN:
        return _draw(value[3], dice)
    if code is names.BRANCH:
        return _draw(dice.choice(value[1]), dice)
    if code in (names.AT, names.ASSERT_NOT):
        return ""
    if code is names.ASSERT:
        return _draw(value[1], dice)
    raise AssertionError(f"{code} is not drawn")


_sets: dict[str, list[str]] = {}


def _list_allowed(items: Any) -> list[str]:
    """The characters of a set: letters and digits, if it has any."""
    key = repr(items)
    if key not in _sets:
        allowed = [each for each in _ALPHABET if _is_in(each, items)]
        _sets[key] = [each for each in allowed if each.isalnum()] or allowed
    return _sets[key]


def _is_in(character: str, items: Any) -> bool:
    result, negated = False, False
    for code, value in items:
        if code is names.NEGATE:
            negated = True
        elif code is names.LITERAL:
            result = result or ord(character) == value
        elif code is names.RANGE:
            result = result or value[0] <= ord(character) <= value[1]
        elif code is names.CATEGORY:
            sign = {
                names.CATEGORY_DIGIT: r"\d",
                names.CATEGORY_WORD: r"\w",
                names.CATEGORY_SPACE: r"\s",
                names.CATEGORY_NOT_SPACE: r"\S",
            }[value]
            result = result or re.fullmatch(sign, character, re.ASCII) is not None
    return result != negated
