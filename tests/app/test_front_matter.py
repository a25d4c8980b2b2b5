"""A form as a text for an editor, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.app import front_matter
from cockpit.app.front_matter import FormInvalid
from widgets.clean import clean
from widgets.work_views import FieldView

FIELDS = (
    FieldView("title", "Title", hint="in a line"),
    FieldView("type", "Type", kind="choice", choices=("bug", "chore")),
    FieldView("description", "Description", kind="text"),
    FieldView("criteria", "Done when", kind="text"),
)
VALUES = {"title": 'a "b" \\ c', "type": "bug", "description": "# x\n\n- y", "criteria": "z"}


def test_it_reads_well():
    assert front_matter.written(FIELDS, VALUES) == (
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
    shown = {
        "title": clean(values["title"], newlines=False),
        "type": clean(values["type"], newlines=False),
        "description": clean(values["description"]).strip("\n"),
        "criteria": clean(values["criteria"]).strip("\n"),
    }
    text = front_matter.written(FIELDS, values)
    assert front_matter.read(FIELDS, text) == shown
    assert front_matter.read(FIELDS, text.replace("\n", "\r\n")) == shown


def test_numbers_and_lists_may_be_written_as_toml():
    fields = (FieldView("hours", "Hours"), FieldView("ids", "Ids"))
    text = '+++\nhours = 2.5\nids = ["T-1", "T-2"]\n+++\n'
    assert front_matter.read(fields, text) == {"hours": "2.5", "ids": "T-1, T-2"}
    assert front_matter.read(fields, "+++\n+++\n") == {"hours": "", "ids": ""}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "two lines"),
        ("+++\ntitle = 1\n", "two lines"),
        ("words\n+++\n+++\n", "two lines"),
        ("+++\ntitle = \n+++\n", "no TOML"),
        ('+++\nname = "x"\n+++\n', "no field name"),
    ],
)
def test_what_cannot_be_read_is_said(text, word):
    with pytest.raises(FormInvalid, match=word):
        front_matter.read(FIELDS, text)
