"""The footer: the current meaning of the keys, on one line."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from widgets.text.tone import ACCENT, DIM, STRONG, Part, line
from widgets.views import KeyHintView

_GAP = 3
_MORE = "…"


class KeyBar(Widget):
    """Draw key hints in order of importance; those that do not fit are left out whole.

    Posts nothing. An ellipsis says that hints were left out.
    """

    DEFAULT_CSS = """
    KeyBar { height: 1; width: 1fr; padding: 0 1; text-wrap: nowrap; }
    """

    hints: reactive[tuple[KeyHintView, ...]] = reactive(())

    def show(self, hints: Sequence[KeyHintView]) -> None:
        """Draw ``hints``, the most important first."""
        self.hints = tuple(hints)

    def render(self) -> Content:
        return hint_line(self.hints, self.content_size.width)


def hint_line(hints: Sequence[KeyHintView], width: int, *, dim: bool = False) -> Content:
    """Lay out whole hints in ``width`` cells. ``dim`` draws them as keys that do nothing yet."""
    contents = [_hint(hint, dim) for hint in hints]
    fitting: list[Content] = []
    used = 0
    for place, content in enumerate(contents):
        last = place == len(contents) - 1
        room = width - used - (0 if last else _GAP + len(_MORE))
        if content.cell_length > room:
            fitting.append(line((_MORE, DIM)))
            break
        fitting.append(content)
        used += content.cell_length + _GAP
    return Content(" " * _GAP).join(fitting)


def _hint(hint: KeyHintView, dim: bool) -> Content:
    key: Part = (hint.key, DIM if dim else ACCENT if hint.strong else STRONG)
    label: Part = (hint.label, "" if hint.strong and not dim else DIM)
    return line(key, " ", label)
