"""The strict reader refuses every doubtful text, names the field, and writes the matching schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from msgspec import UNSET, Meta, Struct, UnsetType, field

from cockpit.core.read_record import (
    HIDDEN,
    InvalidRecord,
    describe,
    parse_object,
    read_record,
    record_schema,
)


class Limits(Struct, frozen=True):
    least: Annotated[int, Meta(ge=0, le=9)] | UnsetType = UNSET


class Order(Struct, frozen=True, kw_only=True):
    name: Annotated[str, describe("Who orders.")]
    size: Literal["small", "large"] = "small"
    limits: Mapping[str, Limits] = field(default_factory=dict)
    parts: tuple[Limits, ...] = ()
    price: float | None = None
    claim: Annotated[Any, HIDDEN] = None


def read(value: Any) -> Order:
    return read_record(Order, value, name="order")


def test_nested_records_are_read() -> None:
    order = read({"name": "n", "limits": {"a": {"least": 3}}, "parts": [{}, {"least": 9}]})
    assert order == Order(
        name="n", limits={"a": Limits(3)}, parts=(Limits(), Limits(9)), price=None
    )
    assert read({"name": "n", "price": 3}).price == 3.0


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ([], "", "order must be an object with named fields."),
        ({}, "name", "order needs 'name'; you gave nothing. It takes: name, size,"),
        ({"name": "n", "colour": 1}, "", "order has no field 'colour'. It takes: name, size,"),
        ({"name": 3}, "name", "order: Expected `str`, got `int` - at `$.name`."),
        ({"name": "n", "size": "huge"}, "size", "Invalid enum value 'huge' - at `$.size`"),
        ({"name": "n", "price": True}, "price", "Expected `float | null`, got `bool`"),
        ({"name": "n", "limits": []}, "limits", "- at `$.limits`"),
        ({"name": "n", "limits": {"a": 3}}, "limits.a", "order: limits.a must be an object"),
        ({"name": "n", "limits": {"a": {"b": 3}}}, "limits.a", "order: limits.a has no field 'b'"),
        ({"name": "n", "limits": {"a": {"least": 10}}}, "limits.a.least", "at `$.limits.a.least`"),
        ({"name": "n", "parts": [{}, {"least": None}]}, "parts[1].least", "`$.parts[1].least`"),
        ({"name": "n", "parts": [{"least": 2**60}]}, "parts[0].least", "Expected a number up to"),
        ({"name": "n", "claim": 2**60}, "claim", "Expected a number up to"),
    ],
)
def test_a_fault_is_named_by_its_path(value: Any, path: str, message: str) -> None:
    with pytest.raises(InvalidRecord) as refused:
        read(value)
    assert message in str(refused.value)
    assert (refused.value.path, refused.value.code) == (path, "malformed")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "order: not valid JSON: Expecting property name"),
        ("", "at line 1, column 1"),
        ("[]", "order must be a JSON object"),
        (b"\xff", "not valid JSON"),
        ('{"a": 1, "a": 2}', "the field 'a' is given twice"),
        ('{"a": {"b": 1, "b": 2}}', "the field 'b' is given twice"),
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a": -Infinity}', "-Infinity is not a number"),
        ('{"a": 1e999}', "1e999 is too large a number"),
        ('{"a": ' + "9" * 41 + "}", "9… is too large a number"),
        ('{"a": ["\\ud800"]}', "'a' contains half of a surrogate pair"),
        ('{"\\ud800": 1}', "contains half of a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
        (" " * 1_001, "longer than 1,000 characters"),
    ],
)
def test_a_doubtful_text_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(InvalidRecord) as refused:
        parse_object(text, name="order", max_characters=100_001 if "[[" in str(text) else 1_000)
    assert message in str(refused.value)
    str(refused.value).encode("utf-8")


def test_the_schema_says_what_the_reader_takes() -> None:
    limits = {
        "type": "object",
        "properties": {"least": {"type": "integer", "minimum": 0, "maximum": 9}},
    }
    assert record_schema(Order) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who orders."},
            "size": {"type": "string", "enum": ["small", "large"]},
            "limits": {"type": "object", "additionalProperties": limits},
            "parts": {"type": "array", "items": limits},
            "price": {"type": "number"},
        },
        "required": ["name"],
    }
    closed = record_schema(Order, closed=True)
    assert closed["additionalProperties"] is False
    assert closed["properties"]["parts"]["items"]["additionalProperties"] is False
