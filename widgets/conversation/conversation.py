"""The conversation: messages and events as blocks that stream, freeze and scroll."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from textual import events
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget

from widgets.conversation.live_output import LiveOutput
from widgets.conversation.turn_list import TurnList
from widgets.conversation.welcome import Welcome
from widgets.views import TurnView

_FOLDABLE = ("thought", "tool")
_NEAR_END = 20
"""A turn goes above the one that it names among so many of the last."""
_STRIDE = 150
"""Older turns that are laid out at once: some ten milliseconds."""


class Conversation(VerticalScroll, can_focus=True):
    """Show turns by key; keep to the bottom until the reader scrolls away from it.

    While the reader is scrolled up nothing moves; the border says how much is new below. With the pane
    focused, j and k move over the blocks and y copies one: :class:`Copied` carries its text as it came. Right
    and left unfold and fold what the agent thought and what its tools changed or said: the marked block, or
    all where none is marked.
    """

    DEFAULT_CSS = """
    Conversation { padding: 0 1; scrollbar-size-vertical: 1; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("j", "move(1)", "next block", show=False),
        Binding("k", "move(-1)", "previous block", show=False),
        Binding("g,home", "top", "first", show=False),
        Binding("G,end", "bottom", "last", show=False),
        Binding("y", "copy", "copy block", show=False),
        Binding("right", "fold(False)", "unfold", show=False),
        Binding("left", "fold(True)", "fold", show=False),
        Binding("escape", "unmark", "leave the blocks", show=False),
    ]

    @dataclass
    class Copied(Message):
        """The user copied a block: its text, uncleaned."""

        text: str

    class Opened(Message):
        """The user wants to see all of the marked block."""

    class Folded(Message):
        """The user folded or unfolded blocks."""

    def __init__(
        self,
        turns: Sequence[TurnView] = (),
        *,
        id: str | None = None,  # noqa: A002 -- Textual's name for it
        classes: str | None = None,
    ) -> None:
        self._list = TurnList()
        self.welcome = Welcome()
        self._output = LiveOutput()
        super().__init__(self.welcome, self._list, self._output, id=id, classes=classes)
        self._place: dict[str, int] = {}
        self._foldable_keys: list[str] = []
        self._cursor: int | None = None
        self._unseen = 0
        self._following = True
        self._initial = tuple(turns)

    def on_mount(self) -> None:
        self.border_title = Content("Conversation")
        if self._initial:
            self.show(self._initial)

    @property
    def following(self) -> bool:
        """True while the newest line is in view and kept there."""
        return self._following

    @property
    def turns(self) -> Sequence[TurnView]:
        """All turns, oldest first."""
        return self._list.turns

    def show(self, turns: Sequence[TurnView]) -> None:
        """Show exactly ``turns``, oldest first, from the bottom."""
        turns = tuple({view.key: view for view in turns}.values())
        self._place = {view.key: place for place, view in enumerate(turns)}
        self._foldable_keys = [view.key for view in turns if view.role in _FOLDABLE]
        self._cursor = None
        self._unseen = 0
        self._list.fill(turns)
        self._show_unseen()
        self._following = True
        self._hold_bottom()

    def upsert(self, view: TurnView) -> None:
        """Add the turn, or draw a later state of the one with its key; it stays as the user folded it."""
        place = self._place.get(view.key)
        if place is None:
            self._add(view)
            return
        earlier = self.turns[place]
        if earlier.text and view.text and view.role in _FOLDABLE:
            view = replace(view, folded=earlier.folded)
        if view != earlier:
            self._list.replace(place, view)

    def _add(self, view: TurnView) -> None:
        end = len(self.turns)
        place = self._place.get(view.before, end)
        place = place if place >= end - _NEAR_END else end
        self._list.insert(place, view, forgets=self.following)
        self._place |= {each.key: at for at, each in enumerate(self.turns[place:], place)}
        if view.role in _FOLDABLE:
            self._foldable_keys.append(view.key)
        if self._cursor is not None and self._cursor >= place:
            self._mark_quietly(self._cursor + 1)
        if not self.following:
            self._unseen += 1
            self._show_unseen()

    def _shift(self, lines: int) -> None:
        """Keep the lines in view where they are after ``lines`` were added above them."""
        if lines:
            # Set before the layout, so that no frame is painted with the lines elsewhere.
            target = self.scroll_offset.y + lines
            self.set_scroll(None, target)
            self.set_reactive(Widget.scroll_target_y, target)
            self.call_after_refresh(self._move_scrollbar)

    def _move_scrollbar(self) -> None:
        self.vertical_scrollbar.position = self.scroll_y

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value < old_value or new_value >= self.max_scroll_y:
            self._following = new_value >= self.max_scroll_y
        if self._unseen and self._following:
            self._unseen = 0
            self._show_unseen()
        if new_value < old_value and new_value < self.size.height and self._list.more:
            self._shift(self._list.older())

    def action_page_up(self) -> None:
        """Scroll up by a page, without animation: it is slow in a long conversation."""
        self.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        """Scroll down by a page, without animation."""
        self.scroll_page_down(animate=False)

    def action_scroll_up(self) -> None:
        """Scroll up by a line, without animation."""
        self.scroll_up(animate=False)

    def action_scroll_down(self) -> None:
        """Scroll down by a line, without animation."""
        self.scroll_down(animate=False)

    def watch_virtual_size(self) -> None:
        self._hold_bottom()

    def on_resize(self, event: events.Resize) -> None:
        """Keep the newest line in view when the pane changes its size."""
        del event
        self._hold_bottom()

    def _hold_bottom(self) -> None:
        # Textual's anchor pins short content to the bottom edge; a page begins at the top.
        full = self.virtual_size.height > self.size.height > 0 and bool(self.turns)
        if self._following and full:
            self.anchor()
        elif self.is_anchored and not full:
            self.anchor(False)
            self.scroll_home(animate=False, force=True, immediate=True)

    def _show_unseen(self) -> None:
        self.border_subtitle = Content(f"↓ {self._unseen} new") if self._unseen else None

    def action_move(self, step: int) -> None:
        """Move the cursor by ``step`` blocks; the first move marks the lowest in view."""
        if self.turns:
            last = len(self.turns) - 1
            place = self._lowest() if self._cursor is None else self._cursor + step
            self._mark(max(0, min(place, last)))

    def _lowest(self) -> int:
        """The block on the last line in view."""
        bottom = self.scroll_offset.y + self.size.height - 1
        return self._list.at(bottom)

    def action_top(self) -> None:
        """Go to the first block; lay out older turns piece by piece."""
        if self.turns:
            self.run_worker(self._to_top(), group="top", exclusive=True)

    async def _to_top(self) -> None:
        while self._list.more:
            self._list.older(_STRIDE)
            await asyncio.sleep(0)
        self._mark(0)
        self.scroll_home(animate=False, force=True)

    def action_bottom(self) -> None:
        """Go to the newest block and stay at the bottom."""
        self.workers.cancel_group(self, "top")
        self._mark(None)
        self._following = True
        self._hold_bottom()

    def action_unmark(self) -> None:
        """Unmark the block."""
        self._mark(None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let Escape through to the application when no block is marked, and arrows with nothing to fold."""
        if action == "fold":
            return self.can_fold(bool(parameters[0]))
        return self._cursor is not None if action == "unmark" else True

    def can_fold(self, folded: bool) -> bool:
        """Whether a block can be folded, or unfolded: the marked one, or any."""
        return any(view.folded != folded for view in self._list_foldable())

    def _list_foldable(self) -> list[TurnView]:
        """List the blocks that can be folded and have text: the marked one, or all."""
        places = [self._place[key] for key in self._foldable_keys]
        views = [self.turns[at] for at in places if self._cursor in (None, at)]
        return [view for view in views if view.text]

    def action_copy(self) -> None:
        """Copy the marked block, or the newest."""
        if self.turns:
            place = -1 if self._cursor is None else self._cursor
            self.post_message(self.Copied(_as_text(self.turns[place])))

    def action_fold(self, folded: bool) -> None:
        """Fold or unfold what the agent thought and its tools' results: in the marked block, or in all."""
        for view in self._list_foldable():
            if view.folded != folded:
                self._list.replace(self._place[view.key], replace(view, folded=folded))
        self.post_message(self.Folded())

    @property
    def current(self) -> TurnView | None:
        """The marked block, or the newest; None in an empty conversation."""
        if not self.turns:
            return None
        return self.turns[-1 if self._cursor is None else self._cursor]

    def go_to(self, keys: Sequence[str], step: int) -> bool:
        """Mark the next of some blocks below the cursor, or above it for a negative ``step``."""
        places = sorted(self._place[key] for key in keys if key in self._place)
        here = len(self.turns) if self._cursor is None else self._cursor
        beyond = (
            [at for at in places if at > here] if step > 0 else [at for at in places if at < here]
        )
        if beyond:
            self._mark(beyond[0] if step > 0 else beyond[-1])
        return bool(beyond)

    def find(self, text: str) -> tuple[str, ...]:
        """Return the keys of the blocks that contain each word of ``text``, in any case."""
        words = text.casefold().split()
        return tuple(
            view.key
            for view in self.turns
            if words and all(word in _as_text(view).casefold() for word in words)
        )

    def show_live(self, title: str, lines: Sequence[str]) -> None:
        """Draw the end of a running command's output at the bottom; nothing without a title."""
        self._output.show(title, lines)

    def on_click(self, event: events.Click) -> None:
        """Mark the clicked block; a double click opens it."""
        content = event.get_content_offset(self)
        if content is None or not self.turns or event.widget is self._output:
            return
        self._mark_quietly(self._list.at(content.y + self.scroll_offset.y))
        if event.chain == 2:
            self.post_message(self.Opened())

    def on_blur(self, event: events.Blur) -> None:
        """Take the cursor off when the pane loses the focus."""
        del event
        self._mark(None)

    def _mark_quietly(self, place: int | None) -> None:
        """Mark a block where it stands, without scrolling."""
        self._cursor = place
        self._list.mark(place)

    def _mark(self, place: int | None) -> None:
        self._mark_quietly(place)
        if place is not None:
            top, height = self._list.where(place)
            region = Region(0, top, self.size.width, height)
            self.scroll_to_region(region, animate=False, top=False, force=True)


def _as_text(view: TurnView) -> str:
    lines = [
        " ".join(part for part in (line.sign, line.text, line.right) if part) for line in view.lines
    ]
    return "\n".join([*([view.text] if view.text else []), *lines])
