"""One live turn of the conversation: rendered Markdown that grows while the model writes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from widgets.clean import StreamCleaner
from widgets.frozen import details, label, plain, rule
from widgets.markdown import SafeMarkdown
from widgets.views import TurnView

LONG = 40_000
"""Characters above which a finished turn is drawn as plain lines: a widget per block is too many."""

_FRAME = 0.04


class Turn(Vertical):
    """Draw one :class:`TurnView`; :meth:`show` and :meth:`append` let it grow in place."""

    DEFAULT_CSS = """
    Turn { height: auto; width: 1fr; margin: 1 0 0 0; }
    Turn.-first, Turn.-note { margin: 0; }
    """

    def __init__(self, view: TurnView) -> None:
        super().__init__(classes="-note" if view.role == "note" else None)
        self.view = view
        self._fed = ""
        self._cleaner = StreamCleaner()
        self._waiting: list[str] = []
        self._pumping = False
        self._ready = False
        self._body: SafeMarkdown | None = None

    def compose(self) -> ComposeResult:
        yield TurnHead(self.view)
        if self.view.role == "agent" and (self.view.streaming or len(self.view.text) <= LONG):
            self._body = SafeMarkdown()
            yield self._body
        elif self.view.role in ("person", "error", "agent"):
            yield TurnText(self.view.text)
        yield TurnDetails(self.view)

    def on_mount(self) -> None:
        self._ready = True
        self.show(self.view)

    def show(self, view: TurnView) -> None:
        """Draw ``view``, a later state of the same turn. Text that only grew is only added to."""
        self.view = view
        if not self._ready:
            return
        self.query_one(TurnHead).show(view)
        self.query_one(TurnDetails).show(view)
        if self._body is None:
            for body in self.query(TurnText):
                body.show(view.text)
        elif view.text.startswith(self._fed):
            self._feed(view.text[len(self._fed) :])
        elif not (view.streaming and self._fed.startswith(view.text)):
            self._rewrite(view.text)

    def append(self, fragment: str) -> None:
        """Add a fragment of streamed text."""
        if self._ready and self._body is not None:
            self._feed(fragment)
        else:
            self.show(replace(self.view, text=self.view.text + fragment))

    @property
    def text(self) -> str:
        """The text of the turn as it stands now, as it came."""
        return self._fed if self._body is not None and self._fed else self.view.text

    def _feed(self, fragment: str) -> None:
        self._fed += fragment
        shown = self._cleaner.feed(fragment)
        if shown:
            self._waiting.append(shown)
            self._pump()

    def _rewrite(self, text: str) -> None:
        # Markdown's update() followed by append() loses an open code fence: start from nothing.
        old, self._body = self._body, SafeMarkdown()
        self._fed = ""
        self._cleaner = StreamCleaner()
        self._waiting.clear()
        if old is not None:
            self.mount(self._body, after=old)
            old.remove()
        self._feed(text)

    def _pump(self) -> None:
        if not self._pumping:
            self._pumping = True
            self.run_worker(self._write(), group="stream", exit_on_error=True)

    async def _write(self) -> None:
        """Write what is waiting, at most once a frame: many fragments become one update."""
        try:
            while self._waiting and self._body is not None:
                text = "".join(self._waiting)
                self._waiting.clear()
                await self._body.append(text)
                await asyncio.sleep(_FRAME if self.view.streaming else 0)
        finally:
            self._pumping = False


class TurnHead(Widget):
    DEFAULT_CSS = "TurnHead { height: 1; width: 1fr; text-wrap: nowrap; }"

    def __init__(self, view: TurnView) -> None:
        super().__init__()
        self._view = view
        self.display = view.role != "note"

    def show(self, view: TurnView) -> None:
        self._view = view
        self.refresh()

    def render(self) -> Content:
        if self._view.role == "wave":
            return rule(self._view.text, self.content_size.width)
        return label(self._view) or Content("")


class TurnRows(Widget):
    """Lines that are laid out for a width and known by their number."""

    DEFAULT_CSS = "TurnRows { height: auto; width: 1fr; text-wrap: nowrap; }"

    def rows(self, width: int) -> list[Content]:
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows(width))

    def render(self) -> Content:
        return Content("\n").join(self.rows(self.content_size.width))


class TurnText(TurnRows):
    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def show(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self.refresh(layout=True)

    def rows(self, width: int) -> list[Content]:
        return plain(self._text, max(1, width))


class TurnDetails(TurnRows):
    def __init__(self, view: TurnView) -> None:
        super().__init__()
        self._view = view

    def show(self, view: TurnView) -> None:
        if view.lines != self._view.lines or bool(view.text) != bool(self._view.text):
            self._view = view
            self.refresh(layout=True)

    def rows(self, width: int) -> list[Content]:
        drawn = details(self._view.lines, max(1, width))
        spoken = self._view.role in ("person", "agent", "error") and bool(self._view.text)
        return [Content(""), *drawn] if drawn and spoken else drawn
