"""A form as a text for an editor, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.backlog import form_text
from cockpit.backlog.form_text import FormField
from cockpit.backlog.validation import BacklogInvalid
from widgets.text.clean import clean

FIELDS = (
    FormField("title", "Title", "in a line"),
    FormField("type", "Type", choices=("bug", "chore")),
    FormField("description", "Description", long=True),
    FormField("criteria", "Done when", long=True),
)
VALUES = {"title": 'a "b" \\ c', "type": "bug", "description": "# x\n\n- y", "criteria": "z"}


def test_it_reads_well():
    assert form_text.write_form(FIELDS, VALUES) == (
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
    text = form_text.write_form(FIELDS, values)
    assert form_text.read_form(FIELDS, text) == shown
    assert form_text.read_form(FIELDS, text.replace("\n", "\r\n")) == shown


def test_values_may_be_written_as_toml_and_errors_are_said():
    fields = (FormField("hours", "Hours"), FormField("ids", "Ids"))
    text = '+++\nhours = 2.5\nids = ["T-1", "T-2"]\n+++\n'
    assert form_text.read_form(fields, text) == {"hours": "2.5", "ids": "T-1, T-2"}
    assert form_text.read_form(fields, "+++\n+++\n") == {"hours": "", "ids": ""}
    for text, word in (
        ("", "two lines"),
        ("+++\ntitle = 1\n", "two lines"),
        ("words\n+++\n+++\n", "two lines"),
        ("+++\ntitle = \n+++\n", "not TOML"),
        ('+++\nname = "x"\n+++\n', "no field .name"),
    ):
        with pytest.raises(BacklogInvalid, match=word):
            form_text.read_form(FIELDS, text)
