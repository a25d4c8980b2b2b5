"""A line of a form that is filled in from a list: what is typed narrows it, by id or by title."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.widgets import Input

from widgets.prompt.completions import Completions
from widgets.text.clean import clean
from widgets.views import CompletionView

_MOST = 50


class PickingInput(Input):
    """Offer ``options`` below the line: while something is typed, and on ↓.

    Enter and Tab take the highlighted one and go on, Escape closes the list. With ``several`` a comma begins
    the next one. Any other text can be typed as well.
    """

    def __init__(
        self, value: str, hint: str, options: Sequence[CompletionView], *, several: bool
    ) -> None:
        super().__init__(value, placeholder=hint, select_on_focus=False)
        self.cursor_blink = False
        self._options = [
            CompletionView(clean(each.text, newlines=False), clean(each.hint, newlines=False))
            for each in options
        ]
        self._several = several
        self._list = Completions()
        self._first = value
        self._moved = False
        """Whether the user moved the highlight: only then a comma takes it."""

    async def on_mount(self) -> None:
        await self.screen.mount(self._list)  # over the other fields

    def _split(self) -> tuple[str, str]:
        """Return what stands before the part that is typed, and that part."""
        if not self._several:
            return "", self.value
        before, comma, part = self.value.rpartition(",")
        return (f"{before}{comma} " if comma else ""), part.lstrip()

    def _offer(self) -> None:
        before, part = self._split()
        typed = part.casefold().strip()
        taken = {each.strip() for each in before.split(",")}
        matches = [
            each for each in self._options if each.text not in taken and _matches(each, typed)
        ]
        if any(each.text.casefold() == typed for each in matches):
            matches = []  # it is typed already
        self._moved = False
        self._list.show(tuple(matches[:_MOST]), self)

    def watch_value(self, value: str) -> None:
        if self.is_attached and self.has_focus and value != self._first:
            self._first = ""
            if self._split()[1]:
                self._offer()
            else:
                self._list.close()

    def on_blur(self) -> None:
        """Close the list."""
        self._list.close()

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "down" and not self._list.open:
            self._offer()
        elif self._list.open and event.key in ("up", "down"):
            self._list.move(1 if event.key == "down" else -1)
            self._moved = True
        elif self._list.open and event.key == "escape":
            self._list.close()
        else:
            if event.key in ("enter", "tab") or (event.character == "," and self._moved):
                self._take()
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()

    def _take(self) -> None:
        chosen = self._list.chosen if self._list.open else None
        self._moved = False
        if chosen is not None:
            self.value = f"{self._split()[0]}{chosen.text}"
            self.cursor_position = len(self.value)
        self._list.close()


def _matches(option: CompletionView, typed: str) -> bool:
    """Whether an option has every word that was typed; a number is that of an id."""
    if typed.isdigit():
        return option.text.casefold().endswith(f"-{typed}")
    text = f"{option.text} {option.hint}".casefold()
    return all(word in text for word in typed.split())
