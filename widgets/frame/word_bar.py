"""One line that explains a word, until the user dismisses it."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.widget import Widget

from widgets.frame.footer import KeyBar
from widgets.text.style_names import ACCENT, DIM, STRONG, line, spread
from widgets.views import KeyHintView

_LEAST_LINES = 16
"""Lines of a screen from which on one is given to a word."""


class WordBar(Widget):
    """Draw a word with its meaning, and the key that dismisses it; a click presses that key.

    It takes no line while there is no word, and none of a low screen. A meaning that has no room wraps.
    """

    DEFAULT_CSS = "WordBar { height: auto; width: 1fr; padding: 0 1; display: none; }"

    def __init__(self, dismiss: KeyHintView) -> None:
        super().__init__()
        self._dismiss = dismiss
        self.word = ""
        """The word that is explained; empty for none."""
        self._meaning = ""

    def show(self, word: str, meaning: str) -> None:
        """Explain ``word``, or nothing where it is empty."""
        if self.screen.size.height < _LEAST_LINES:
            word = ""
        if word == self.word:
            return
        self.word, self._meaning = word, meaning
        self.display = bool(word)
        self.refresh(layout=True)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return len(self._rows(width))

    def render(self) -> Content:
        return Content("\n").join(self._rows(self.content_size.width))

    def on_click(self, event: events.Click) -> None:
        """Press the key that dismisses the word."""
        event.stop()
        self.post_message(KeyBar.Pressed(self._dismiss.press))

    def _rows(self, width: int) -> list[Content]:
        key = line((self._dismiss.key, STRONG), (f" {self._dismiss.label}", DIM))
        text = line((self.word, ACCENT), (f": {self._meaning}", DIM))
        if text.cell_length + key.cell_length + 3 <= width:
            return [spread(text, key, width)]
        rows = text.wrap(max(1, width))
        last = rows[-1]
        if last.cell_length + key.cell_length + 3 <= width:
            return [*rows[:-1], spread(last, key, width)]
        return [*rows, key]
