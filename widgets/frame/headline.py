"""The first line of a screen over the cockpit: its name, and the number of waiting proposals."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from widgets.text.style_names import ACCENT, STRONG, Part, line, spread


class Headline(Widget):
    """Draw a name, text about it, and how many proposals wait. Posts nothing."""

    DEFAULT_CSS = "Headline { height: 1; width: 1fr; padding: 0 1; text-wrap: nowrap; }"

    view: reactive[tuple[str, tuple[Part, ...], int]] = reactive(("", (), 0))

    def show(self, name: str, parts: Sequence[Part] = (), waiting: int = 0) -> None:
        """Draw the name of the screen and ``parts`` about it, the most important first."""
        self.view = (name, tuple(parts), waiting)

    def render(self) -> Content:
        name, parts, waiting = self.view
        left = line(("cockpit", STRONG), "  ", (name, STRONG), *([("   ", "")] if parts else []))
        right = line((f"● {waiting} to decide", ACCENT)) if waiting else line("")
        return spread(Content.assemble(left, line(*parts)), right, self.content_size.width)
