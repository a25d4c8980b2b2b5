"""The screen below a dialog is dimmed as Textual dims it."""

from __future__ import annotations

import pytest
from rich.color import Color as RichColor
from rich.segment import ControlType, Segment
from rich.style import Style
from textual.color import Color
from textual.renderables.background_screen import BackgroundScreen

from widgets.frame.dimmed_screen import DimmedScreen

STYLES = (
    None,
    Style(),
    Style(color="#112233", bgcolor="#445566"),
    Style(color="#112233", bgcolor="#445566", bold=True),
    Style(color="#112233", bgcolor="#445566", bold=False, italic=True),
    Style(color="#112233"),
    Style(bgcolor="#445566", dim=True, reverse=True),
    Style(color=RichColor.parse("red"), link="https://example.org/a"),
    Style.from_meta({"@click": "quit", "offset": (1, 2)}) + Style(color="#112233"),
)


@pytest.mark.parametrize("tint", [Color(10, 20, 30, 0.6), Color(0, 0, 0, 0), Color(1, 2, 3)])
def test_each_segment_is_tinted_as_textual_does(tint):
    segments = [Segment(f"text {number}", style) for number, style in enumerate(STYLES)]
    segments.append(Segment("", None, [(ControlType.HOME,)]))
    expected = list(BackgroundScreen.process_segments(segments, tint))
    for _ in range(2):  # the second time from what it keeps
        drawn = list(DimmedScreen.process_segments(segments, tint))
        assert drawn == expected
        assert [s.style and (s.style.link, s.style.meta) for s in drawn] == [
            s.style and (s.style.link, s.style.meta) for s in expected
        ]
