"""A form as a text for an editor, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.work import sheet
from cockpit.work.drafts import BacklogInvalid
from cockpit.work.sheet import Field
from widgets.clean import clean

FIELDS = (
    Field("title", "Title", "in a line"),
    Field("type", "Type", choices=("bug", "chore")),
    Field("description", "Description", long=True),
    Field("criteria", "Done when", long=True),
)
VALUES = {"title": 'a "b" \\ c', "type": "bug", "description": "# x\n\n- y", "criteria": "z"}


def test_it_reads_well():
    assert sheet.written(FIELDS, VALUES) == (
        "+++\n"
        'title = "a \\"b\\" \\\\ c"  # in a line\n'
        'type = "bug"  # bug, chore\n'
        "+++\n"
        "# x\n\n- y\n"
        "\n+++ Done when\n"
        "z\n"
    )


@given(
    st.fixed_dictionaries(
        {name: st.text(max_size=30) for name in ("title", "type", "description", "criteria")}
    )
)
def test_what_is_written_reads_back(values):
    for name in ("description", "criteria"):
        values[name] = clean(values[name])
    shown = values | {name: values[name].strip("\n") for name in ("description", "criteria")}
    text = sheet.written(FIELDS, values)
    assert sheet.read(FIELDS, text) == shown
    assert sheet.read(FIELDS, text.replace("\n", "\r\n")) == shown


def test_numbers_and_lists_may_be_written_as_toml():
    fields = (Field("hours", "Hours"), Field("ids", "Ids"))
    text = '+++\nhours = 2.5\nids = ["T-1", "T-2"]\n+++\n'
    assert sheet.read(fields, text) == {"hours": "2.5", "ids": "T-1, T-2"}
    assert sheet.read(fields, "+++\n+++\n") == {"hours": "", "ids": ""}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "two lines"),
        ("+++\ntitle = 1\n", "two lines"),
        ("words\n+++\n+++\n", "two lines"),
        ("+++\ntitle = \n+++\n", "no TOML"),
        ('+++\nname = "x"\n+++\n', "no field .name"),
    ],
)
def test_what_cannot_be_read_is_said(text, word):
    with pytest.raises(BacklogInvalid, match=word):
        sheet.read(FIELDS, text)
