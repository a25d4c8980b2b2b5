"""The newest turns of a conversation as widgets: Markdown for the agent, plain lines for the rest."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.reactive import Reactive
from textual.widget import Widget

from widgets.conversation.static_turns import details, draw, label
from widgets.text.clean import StreamCleaner
from widgets.views import TurnView

if TYPE_CHECKING:
    from widgets.conversation.markdown import SafeMarkdown

LONG = 40_000
"""Characters above which a finished turn is drawn as plain lines: a widget per block is too many."""

_FRAME = 0.07
_REST = 5
"""Times that drawing an update took until the next update."""


def _body() -> SafeMarkdown:
    from widgets.conversation.markdown import SafeMarkdown  # late: an empty screen shows none

    return SafeMarkdown()


class Rows(Widget):
    """A widget of lines that are laid out for its width."""

    DEFAULT_CSS = "Rows { height: auto; width: 1fr; text-wrap: nowrap; }"

    # Nothing scrolls in it. Textual would lay out the whole screen again after each change of its size.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)

    def rows(self, width: int) -> list[Content]:
        """Lay the lines out for ``width`` cells."""
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows(width))

    def render(self) -> Content:
        return Content("\n").join(self.rows(self.content_size.width))


class Card(Rows):
    """A turn that does not stream: a message of the user, a wave, a note, an error."""

    DEFAULT_CSS = """
    Card { margin: 1 0 0 0; }
    Card.-close { margin: 0; }
    """

    def __init__(self, view: TurnView) -> None:
        super().__init__()
        self.view = view
        self._drawn: tuple[TurnView, int, list[Content]] | None = None
        """The rows of this view at this width: layout and drawing ask for the same ones."""

    @property
    def text(self) -> str:
        """The text of the turn, uncleaned."""
        return self.view.text

    def show(self, view: TurnView) -> None:
        """Draw ``view``, a later state of the same turn."""
        if view != self.view:
            self.view = view
            self.refresh(layout=True)

    def rows(self, width: int) -> list[Content]:
        drawn = self._drawn
        if drawn is None or drawn[0] is not self.view or drawn[1] != width:
            drawn = self._drawn = (self.view, width, draw(self.view, max(1, width), close=True))
        return drawn[2]


class Answer(Vertical):
    """A turn of the agent, rendered as Markdown; :meth:`show` lets it grow in place."""

    DEFAULT_CSS = """
    Answer { height: auto; width: 1fr; margin: 1 0 0 0; }
    Answer.-close { margin: 0; }
    """

    def __init__(self, view: TurnView) -> None:
        super().__init__()
        self.view = view
        self._fed = ""
        self._cleaner = StreamCleaner()
        self._waiting: list[str] = []
        self._pumping = False
        self._ready = False
        # Held, not looked up: where the program ends as a turn begins, the children may be gone by then.
        self._head, self._body, self._lines = AnswerHead(view), _body(), AnswerLines(view)

    @property
    def text(self) -> str:
        """The current text of the turn, uncleaned."""
        return self._fed if self._ready else self.view.text

    def compose(self) -> ComposeResult:
        yield from (self._head, self._body, self._lines)

    def on_mount(self) -> None:
        self._ready = True
        self.show(self.view)

    def show(self, view: TurnView) -> None:
        """Draw ``view``, a later state of the same turn. Text that only grew is only added to."""
        self.view = view
        if not self._ready or not self._body.is_attached:
            return
        self._head.show(view)
        self._lines.show(view)
        if view.text.startswith(self._fed):
            self._feed(view.text[len(self._fed) :])
        elif not (view.streaming and self._fed.startswith(view.text)):
            self._rewrite(view.text)

    def _feed(self, fragment: str) -> None:
        self._fed += fragment
        shown = self._cleaner.feed(fragment)
        if shown:
            self._waiting.append(shown)
            self._pump()

    def _rewrite(self, text: str) -> None:
        # Markdown's update() followed by append() loses an open code fence: start from nothing.
        old, self._body = self._body, _body()
        self._fed = ""
        self._cleaner = StreamCleaner()
        self._waiting.clear()
        self.mount(self._body, after=old)
        old.remove()
        self._feed(text)

    def _pump(self) -> None:
        if not self._pumping:
            self._pumping = True
            self.run_worker(self._write(), group="stream")

    async def _write(self) -> None:
        """Write the waiting fragments, at most once a frame: many become one update.

        An answer that grows is laid out and drawn again. It grows the less often, the more processor time
        that takes, so that streaming leaves most of a processor to others, however long the answer is.
        """
        try:
            while self._waiting:
                text = "".join(self._waiting)
                self._waiting.clear()
                used = time.thread_time()
                await self._body.append(text)
                if self.view.streaming:
                    drawn = asyncio.Event()
                    self.call_after_refresh(drawn.set)
                    await drawn.wait()
                    await asyncio.sleep(max(_FRAME, _REST * (time.thread_time() - used)))
        finally:
            self._pumping = False


Turn = Answer | Card
"""A live turn."""


def turn_widget(view: TurnView) -> Turn:
    """Return a widget for ``view``."""
    if view.role == "agent" and (view.streaming or len(view.text) <= LONG):
        return Answer(view)
    return Card(view)


class AnswerHead(Rows):
    """The speaker, and whether the text still streams."""

    def __init__(self, view: TurnView) -> None:
        super().__init__()
        self._view = view

    def show(self, view: TurnView) -> None:
        """Draw the head of ``view``."""
        before, self._view = label(self._view), view
        if label(view) != before:
            self.refresh()

    def rows(self, width: int) -> list[Content]:
        return [label(self._view) or Content("")]


class AnswerLines(Rows):
    """The indented lines below the text."""

    def __init__(self, view: TurnView) -> None:
        super().__init__()
        self._view = view
        self.display = bool(view.lines)

    def show(self, view: TurnView) -> None:
        """Draw the lines of ``view``."""
        if view.lines != self._view.lines or bool(view.text) != bool(self._view.text):
            self._view = view
            self.display = bool(view.lines)
            self.refresh(layout=True)

    def rows(self, width: int) -> list[Content]:
        rows = details(self._view.lines, max(1, width))
        return [Content(""), *rows] if rows and self._view.text else rows
