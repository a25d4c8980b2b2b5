"""The screen below a dialog, dimmed quickly: Textual mixes the colours of each piece of text anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen

_MOST_STYLES = 4_096
_dimmed: dict[tuple[Any, ...], Style] = {}
"""Dimmed styles by colours, attributes and tint: a screen of a thousand pieces of text has few."""


class DimmedScreen(BackgroundScreen):
    """Draws what Textual's own class does, and mixes each pair of colours once.

    That class takes longer than all else of a key in a dialog over a diff, since a dialog whose height
    changes draws the screen below it again.
    """

    @classmethod
    def process_segments(cls, segments: Iterable[Segment], color: Color) -> Iterable[Segment]:
        """Tint the segments and remove their links and meta data."""
        for segment in segments:
            text, style, control = segment
            if control:
                yield segment
                continue
            if style is None:
                key: tuple[Any, ...] = (color,)
            else:
                attributes, is_set = style._attributes, style._set_attributes
                key = (color, style.color, style.bgcolor, attributes, is_set)
            dimmed = _dimmed.get(key)
            if dimmed is None:
                if len(_dimmed) >= _MOST_STYLES:
                    _dimmed.clear()
                (drawn,) = super().process_segments((segment,), color)
                dimmed = _dimmed[key] = drawn.style or Style()
            yield Segment(text, dimmed)


def dim_quickly(drawn: Any) -> Any:
    """Return what a screen draws behind its widgets, with the screen below it as a :class:`DimmedScreen`."""
    if type(drawn) is BackgroundScreen:
        screen: Screen[Any] = drawn.screen
        return DimmedScreen(screen, drawn.color)
    return drawn
