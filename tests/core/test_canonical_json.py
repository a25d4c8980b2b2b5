"""Canonical JSON: byte for byte what Python's encoder writes, whichever encoder does it."""

from __future__ import annotations

import enum
import json
import math
from typing import Any

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cockpit.core.canonical_json import canonical_json, parse_json

TEXT = st.text(st.characters(), max_size=12)  # lone surrogates included
INTEGERS = st.integers() | st.integers(-(2**70), 2**70)
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats() | TEXT
KEYS = st.one_of(TEXT, st.integers(-9, 9), st.booleans(), st.none(), st.floats())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXT, inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=3),
    ),
    max_leaves=12,
)


def expected(value: Any) -> str | type[Exception]:
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
    except (TypeError, ValueError) as error:
        return type(error)


def written(value: Any) -> str | type[Exception]:
    try:
        return canonical_json(value)
    except (TypeError, ValueError) as error:
        return type(error)


@pytest.mark.search
@settings(max_examples=examples(25))
@given(VALUES)
@example([1e16, 1e-5, 1e-7, 5e-324, -0.0, 1.5e300, 0.1, 9007199254740993.0])
@example({"b": 1, "a": 2, "é": 1, "\U00010000": 1, "\uffff": 2, "A": 0, "": 1})
@example('\x00\x1f\x7f\u2028\u2029/\\"\b\f\n\r\t<>&')
@example(["\ud800", "\udfff", "a\udc80b"])
@example({"\ud800": 1, "\uffff": 2, "\U0001f600": 3})
@example([2**63, 2**64, -(2**63) - 1, 10**40])
@example({1: "a", "1": "b"})
@example({True: 1, 10: 2, 9: 3})
@example([math.nan])
@example({"cost": math.inf})
def test_the_bytes_are_those_of_pythons_encoder(value: Any) -> None:
    assert written(value) == expected(value)


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()


def test_subclasses_and_depth_are_written_and_other_types_refused() -> None:
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    for value in (Colour.RED, [Level.HIGH], {Text("k"): Text("v")}, {"a": Text("b")}, deep):
        assert written(value) == expected(value)
    for value in (b"bytes", {"a": {1, 2}}, [object()], {("a",): 1}):
        with pytest.raises(TypeError):
            canonical_json(value)


def test_parsing_gives_and_refuses_what_the_standard_parser_does() -> None:
    for text in (
        '{"a":[1,-2.5,null,true,"é"]}', '{"a":1,"a":2}', "1e400", "NaN", "[1e22,1.5e300,0.1]", "-0",
        "18446744073709551616", '"\\ud800"', "[" * 400 + "]" * 400, '""', " 1 ",
    ):  # fmt: skip
        assert repr(parse_json(text)) == repr(json.loads(text))
    for text in ("", "{", "[1,]", "x", "1 2", '{"a"}'):
        with pytest.raises(json.JSONDecodeError):
            parse_json(text)
