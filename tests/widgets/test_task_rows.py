"""Texts of tasks: aligned and wrapped, every word and indent kept, and limited however long they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import settle
from textual.content import Content

from widgets.text.wrapped import wrap_line
from widgets.work.task_panel import READ_MOST, TaskPanel
from widgets.work.task_views import TaskView

pytestmark = pytest.mark.slow


async def test_a_long_text_is_cut_and_that_is_said(stage):
    panel = TaskPanel(TaskView(Content("T-1"), description="word " * READ_MOST))
    async with stage(panel) as pilot:
        panel.focus()
        await pilot.press("G")
        await settle(pilot)
        assert f"{READ_MOST * 4 - 1:,} more characters" in pilot.app.drawn


def drawn(text: str, width: int, hang: int | None = None) -> list[str]:
    return [piece.plain.rstrip() for piece in wrap_line(Content(text), width, hang)]


def test_the_rest_of_an_indented_line_is_indented():
    assert drawn("  one two three four", 12) == ["  one two", "  three four"]
    assert drawn("  f1      Show all the keys", 20, 10) == [
        "  f1      Show all",
        "          the keys",
    ]
    assert drawn("one two three", 9) == ["one two", "three"]
    assert drawn("", 9) == [""]


@given(
    st.text(alphabet=" ab\u4e00", max_size=60), st.integers(2, 30), st.none() | st.integers(0, 12)
)
def test_nothing_is_lost_and_nothing_is_wider(text, width, hang):
    pieces = wrap_line(Content(text), width, hang)
    assert "".join("".join(piece.plain for piece in pieces).split()) == "".join(text.split())
    assert all(piece.rstrip().cell_length <= width for piece in pieces)
