"""The records of journal events: the same JSON as ever, read from any JSON, each described."""

from __future__ import annotations

import json

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from cockpit.core.secrets import masked_json
from cockpit.store.journal.details.detail import (
    Detail,
    decode_detail,
    detail_body,
    detail_json,
    read_part,
)
from cockpit.store.journal.details.proposals import ProposalCreated
from cockpit.store.journal.details.table import ACTIONS, DETAILS, UnknownDetail, detail_type
from cockpit.store.journal.event_types import Action

NUMBERS = st.integers() | st.just(10**400) | st.floats()
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)


def test_every_event_type_has_one_record() -> None:
    assert set(DETAILS) == set(Action)
    assert len(ACTIONS) == len(DETAILS), "two event types share a record"
    assert len(DETAILS) <= 100


HOSTILE = (
    "", "wave", "sk-proj-aB3dE5fG7hI9jK1lM3nO", "password=hunter2hunter2", "\ud800", "é", "\x00\x1f\u2028",
    "t" * 300, "ghp_" + "a1B2" * 9, "https://me:secretsecret@host/x", 10**30, 2**63, -(2**70), 1.5, True,
    None, UNSET, Action.WAVE_CREATED, b"bytes", ["a"], {"token": "aB3dE5fG7hI9jK1lM3nO5pQ7"}, ("x", 1),
)  # fmt: skip
"""What a field may hold at run time, whatever its type says."""


@given(st.sampled_from(sorted(DETAILS)), st.data())
@pytest.mark.search
@settings(max_examples=examples(35))
def test_a_record_is_written_as_its_masked_body_is(action: Action, data: st.DataObject) -> None:
    kind = DETAILS[action]
    values = data.draw(
        st.fixed_dictionaries({name: st.sampled_from(HOSTILE) for name in kind.__struct_fields__})
    )
    record = kind(**values)
    for _ in range(2):  # the second time it has seen the texts before
        try:
            expected = masked_json(detail_body(record))
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                detail_json(record)
        else:
            assert detail_json(record) == expected


@st.composite
def details(draw: st.DrawFn) -> tuple[type[Detail], str]:
    kind = draw(st.sampled_from(list(DETAILS.values())))
    keys = st.sampled_from(kind.__struct_encode_fields__ or ("other",)) | st.text(max_size=6)
    body = draw(st.dictionaries(keys, JSON, max_size=6) | JSON)
    return kind, json.dumps(body)


@pytest.mark.search
@settings(max_examples=examples(20))
@given(details())
def test_any_json_reads_as_a_record(drawn: tuple[type[Detail], str]) -> None:
    kind, text = drawn
    record = decode_detail(kind, text)
    assert type(record) is kind
    # The tolerant reader, which is slower, reads a sound row the same.
    assert read_part(kind, json.loads(detail_json(record))) == decode_detail(
        kind, detail_json(record)
    )
    detail_body(record)
    if isinstance(record, ProposalCreated):
        assert isinstance(record.shown().items, tuple)


def test_what_is_no_object_or_unknown_reads_as_an_empty_record() -> None:
    for text in ("", "{", "null", "[1]", '{"a":', "NaN", "[" * 100_000):
        for kind in DETAILS.values():
            assert decode_detail(kind, text) == decode_detail(kind, "{}"), text[:9]
    assert decode_detail(detail_type("tomorrow.arrived"), '{"a":1}') == UnknownDetail()


def test_every_event_type_says_when_it_is_written() -> None:
    assert all((kind.__doc__ or "").strip() for kind in DETAILS.values())
