"""The line of keys under a proposal."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.widget import Widget

from widgets.frame.footer import KeyBar, fitting_hints, hint_at, hint_line
from widgets.text.style_names import DIM, WARN, line
from widgets.views import KeyHintView

_WAIT = line(("…  ", DIM))


class ProposalKeys(Widget):
    """The keys that decide, dim until the proposal is armed; before them what was not in view yet."""

    DEFAULT_CSS = "ProposalKeys { height: 1; width: 1fr; text-wrap: nowrap; }"

    def __init__(self) -> None:
        super().__init__()
        self._hints: tuple[KeyHintView, ...] = ()
        self._unread = ""
        self._is_dim = True

    def on_click(self, event: events.Click) -> None:
        """Press the key that was clicked. It decides nothing that the key would not decide."""
        head = self._head.cell_length
        hint = hint_at(self._hints, self.content_size.width - head, event.x - head)
        if hint is not None and hint.press:
            self.post_message(KeyBar.Pressed(hint.press))

    def show(self, hints: tuple[KeyHintView, ...], unread: str, is_dim: bool) -> None:
        self._hints, self._unread, self._is_dim = hints, unread, is_dim
        self.display = bool(hints)
        self.refresh()

    def render(self) -> Content:
        width = self.content_size.width
        head = self._head
        is_dim = self._is_dim and not self._unread
        hints = hint_line(self._hints, width - head.cell_length, dim=is_dim)
        return Content.assemble(head, hints).truncate(width)

    def list_drawn(self) -> list[str]:
        """List the keys that have room, as they are pressed."""
        room = self.content_size.width - self._head.cell_length
        return [hint.press for hint in fitting_hints(self._hints, room)]

    @property
    def _head(self) -> Content:
        """What stands before the keys."""
        if self._unread:
            return line((self._unread, WARN), "   ")
        return _WAIT if self._is_dim else Content("")
