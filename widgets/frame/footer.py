"""The footer: the current meaning of the keys, on one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from widgets.text.style_names import ACCENT, DIM, STRONG, Part, line
from widgets.views import KeyHintView

_GAP = 3
_MORE = "…"
ELLIPSIS = KeyHintView(_MORE, "")
"""What stands for the hints that have no room."""


class KeyBar(Widget):
    """Draw key hints in order of importance; those that do not fit are left out whole.

    An ellipsis says that hints were left out. A click on a hint posts :class:`Pressed`.
    """

    DEFAULT_CSS = """
    KeyBar { height: 1; width: 1fr; padding: 0 1; text-wrap: nowrap; }
    """

    hints: reactive[tuple[KeyHintView, ...]] = reactive(())

    @dataclass
    class Pressed(Message):
        """The user clicked a hint; ``key`` is the key that it stands for."""

        key: str

    class More(Message):
        """The user clicked the ellipsis: they want the hints that had no room."""

    def show(self, hints: Sequence[KeyHintView]) -> None:
        """Draw ``hints``, the most important first."""
        self.hints = tuple(hints)

    def render(self) -> Content:
        return hint_line(self.hints, self.content_size.width)

    def on_click(self, event: events.Click) -> None:
        """Report the hint under the mouse."""
        hint = hint_at(self.hints, self.content_size.width, event.x - self.gutter.left)
        if hint is ELLIPSIS:
            event.stop()
            self.post_message(self.More())
        elif hint is not None and hint.press:
            event.stop()
            self.post_message(self.Pressed(hint.press))


def hint_at(hints: Sequence[KeyHintView], width: int, x: int) -> KeyHintView | None:
    """Return the hint that :func:`hint_line` draws at the cell ``x``."""
    start = 0
    for hint, content in _fit(hints, width, dim=False):
        if start <= x < start + content.cell_length:
            return hint
        start += content.cell_length + _GAP
    return None


def fitting_hints(hints: Sequence[KeyHintView], width: int) -> list[KeyHintView]:
    """Return the hints that :func:`hint_line` draws."""
    return [hint for hint, _ in _fit(hints, width, dim=False) if hint is not ELLIPSIS]


def hint_line(hints: Sequence[KeyHintView], width: int, *, dim: bool = False) -> Content:
    """Lay out whole hints in ``width`` cells. ``dim`` draws them as keys that do nothing yet."""
    return Content(" " * _GAP).join([content for _, content in _fit(hints, width, dim=dim)])


def _fit(
    hints: Sequence[KeyHintView], width: int, *, dim: bool
) -> Iterator[tuple[KeyHintView, Content]]:
    """Yield the hints that fit, and an ellipsis where some do not."""
    used = 0
    for place, hint in enumerate(hints):
        content = _draw(hint, dim)
        last = place == len(hints) - 1
        room = width - used - (0 if last else _GAP + len(_MORE))
        if content.cell_length > room:
            yield ELLIPSIS, line((_MORE, DIM))
            return
        yield hint, content
        used += content.cell_length + _GAP


def _draw(hint: KeyHintView, dim: bool) -> Content:
    key: Part = (hint.key, DIM if dim else ACCENT if hint.strong else STRONG)
    label: Part = (hint.label, "" if hint.strong and not dim else DIM)
    return line(key, " ", label)
