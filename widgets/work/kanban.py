"""The backlog as a board: columns of cards, of which only the visible ones are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget

from widgets.text.style_names import ACCENT, CURSOR, DIM, RULE, STRONG, WARN, Part, line, spread
from widgets.work.task_card_views import CardView, ColumnView, KanbanView
from widgets.work.task_cards import CARD_LINES, draw_card

COLUMN_CELLS = 22
"""The least width of a column. Where not all fit, those around the cursor are visible."""

_GAP = 2
_HEAD = 2
_ROOMY = 26
_VERY_ROOMY = 34


class Spot(msgspec.Struct, frozen=True):
    """A place on the board: a column, and the number of a card in it."""

    column: int = 0
    card: int = 0


class Kanban(Widget, can_focus=True):
    """Draw a :class:`KanbanView`. Arrows and ``hjkl`` move; the cursor stays on its card, also when
    that moves to another column.

    Ten thousand cards take no longer to draw than the visible ones. Posts :class:`Opened` and :class:`Moved`.
    """

    DEFAULT_CSS = """
    Kanban { height: 1fr; width: 1fr; padding: 0 1; text-wrap: nowrap; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("h,left", "across(-1)", "column to the left", show=False),
        Binding("l,right", "across(1)", "column to the right", show=False),
        Binding("j,down", "move(1)", "next card", show=False),
        Binding("k,up", "move(-1)", "previous card", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("home,g", "edge(0)", "first card", show=False),
        Binding("end,G", "edge(-1)", "last card", show=False),
        Binding("enter", "open", "open", show=False),
    ]

    view: reactive[KanbanView] = reactive(KanbanView())
    spot: reactive[Spot] = reactive(Spot())

    @dataclass
    class Opened(Message):
        """The user opened this task."""

        key: str

    @dataclass
    class Moved(Message):
        """The cursor is on another card; ``key`` is empty without one."""

        key: str

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name for it
        super().__init__(id=id)
        self._tops: list[int] = []
        self._left = 0

    def show(self, view: KanbanView) -> None:
        """Draw ``view``."""
        self.view = view

    @property
    def at_cursor(self) -> CardView | None:
        """The card under the cursor."""
        columns = self.view.columns
        if self.spot.column >= len(columns):
            return None
        cards = columns[self.spot.column].cards
        return cards[self.spot.card] if self.spot.card < len(cards) else None

    def turn_to(self, key: str) -> None:
        """Put the cursor on a card, if it is on the board."""
        for column, each in enumerate(self.view.columns):
            for place, card in enumerate(each.cards):
                if card.key == key and not card.heading:
                    self.spot = Spot(column, place)
                    return

    def watch_view(self, old: KanbanView, view: KanbanView) -> None:
        card = _card(old, self.spot)
        self._tops = (self._tops + [0] * len(view.columns))[: len(view.columns)]
        self.spot = self._find_spot(view, card)
        self._follow()
        self.refresh()

    def _find_spot(self, view: KanbanView, last_card: CardView | None) -> Spot:
        """Return the new place of the card under the cursor; else a card near the same place."""
        start = self.spot.column
        order = sorted(range(len(view.columns)), key=lambda column: column != start)
        if last_card is not None:
            for column in order:
                for place, card in enumerate(view.columns[column].cards):
                    if card.key == last_card.key and not card.heading:
                        return Spot(column, place)
        else:  # the first time: a column with tasks
            filled = [column for column in order if view.columns[column].count]
            start = filled[0] if filled else 0
        start = min(start, max(0, len(view.columns) - 1))
        return Spot(start, self._near(view, start, self.spot.card))

    @staticmethod
    def _near(view: KanbanView, column: int, place: int, way: int = 1) -> int:
        """Return the card nearest to ``place`` that is not a heading, in the direction ``way`` first."""
        cards = view.columns[column].cards if column < len(view.columns) else ()
        place = max(0, min(place, len(cards) - 1))
        for step in (way, -way):
            look = place
            while 0 <= look < len(cards):
                if not cards[look].heading:
                    return look
                look += step
        return 0

    def watch_spot(self, old: Spot, spot: Spot) -> None:
        if old != spot:
            self._follow()
            self.refresh()
        card = self.at_cursor
        self.post_message(self.Moved(card.key if card is not None else ""))

    def on_resize(self) -> None:
        """Scroll to the cursor: the number of visible cards and columns changed."""
        self._follow()
        self.refresh()

    # Moving

    def action_across(self, step: int) -> None:
        """Go ``step`` columns to the right, to the card next to this one."""
        column = self.spot.column + step
        if 0 <= column < len(self.view.columns):
            row = self.spot.card - self._tops[self.spot.column]
            place = self._near(self.view, column, self._tops[column] + row)
            self.spot = Spot(column, place)

    def action_move(self, step: int) -> None:
        """Go ``step`` cards down."""
        place = self.spot.card + step
        near = self._near(self.view, self.spot.column, place, 1 if step > 0 else -1)
        self.spot = Spot(self.spot.column, near)

    def action_page(self, way: int) -> None:
        """Go a page down or up."""
        self.action_move(way * max(1, self._fit - 1))

    def action_edge(self, place: int) -> None:
        """Go to the first (0) or last (-1) card of the column."""
        last = len(self.view.columns[self.spot.column].cards) - 1 if self.view.columns else 0
        near = self._near(self.view, self.spot.column, 0 if place == 0 else last, place or 1)
        self.spot = Spot(self.spot.column, near)

    def action_open(self) -> None:
        """Ask to see the task under the cursor."""
        if (card := self.at_cursor) is not None:
            self.post_message(self.Opened(card.key))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the card that was clicked; again: open it."""
        x, y = event.x - self.gutter.left, event.y - self.gutter.top - _HEAD
        for column, start, width in self._visible_columns():
            if start <= x < start + width and 0 <= y < self._fit * self._tall:
                place = self._tops[column] + y // self._tall
                cards = self.view.columns[column].cards
                if place < len(cards) and not cards[place].heading:
                    again = self.spot == Spot(column, place)
                    self.spot = Spot(column, place)
                    if again:
                        self.action_open()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel moves the cursor of its column."""
        event.stop()
        self.action_move(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel moves the cursor of its column."""
        event.stop()
        self.action_move(-1)

    # Drawing

    @property
    def _tall(self) -> int:
        """The lines of one card: a low screen has no room for notes and gaps."""
        height = self.content_size.height
        return 2 if height < _ROOMY else CARD_LINES + (height >= _VERY_ROOMY)

    @property
    def _fit(self) -> int:
        """How many cards a column shows; its last line counts the rest."""
        return max(1, (self.content_size.height - _HEAD - 1) // self._tall)

    def _follow(self) -> None:
        """Scroll so that the column and card of the cursor are visible."""
        count, many = len(self.view.columns), self._many
        column, card = self.spot.column, self.spot.card
        self._left = max(0, min(self._left, count - many))
        self._left = min(max(self._left, column - many + 1), column)
        for place in range(min(count, len(self._tops))):
            last = len(self.view.columns[place].cards) - self._fit
            self._tops[place] = max(0, min(self._tops[place], last))
        if column < len(self._tops):
            top = min(max(self._tops[column], card - self._fit + 1), card)
            if top == 1 and self.view.columns[column].cards[0].heading:
                top = 0
            self._tops[column] = top

    @property
    def _many(self) -> int:
        """How many columns are visible."""
        width = self.content_size.width + _GAP
        return max(1, min(len(self.view.columns), width // (COLUMN_CELLS + _GAP)))

    def _visible_columns(self) -> list[tuple[int, int, int]]:
        """Return the visible columns as (number, first cell, cells)."""
        many, width = self._many, self.content_size.width
        visible, start = [], 0
        for place in range(many):
            cells = (width - start - _GAP * (many - place - 1)) // (many - place)
            visible.append((self._left + place, start, max(0, cells)))
            start += cells + _GAP
        return [each for each in visible if each[0] < len(self.view.columns)]

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        if width < 1:
            return Strip.blank(0)
        parts: list[Content] = []
        for column, _, cells in self._visible_columns():
            content = self._cell(self.view.columns[column], column, y, cells)
            parts.append(content.pad_right(max(0, cells - content.cell_length)))
        content = Content(" " * _GAP).join(parts).truncate(width, ellipsis=True)
        return Visual.to_strips(self, content, width, 1, self.visual_style, pad=True)[0]

    def _cell(self, column: ColumnView, number: int, y: int, cells: int) -> Content:
        current = number == self.spot.column
        if y == 0:
            return self._title(column, number, cells, current)
        if y == 1:
            return line(("─" * cells, ACCENT if current and self.has_focus else RULE))
        top, place = self._tops[number], (y - _HEAD) // self._tall
        index = top + place
        below = len(column.cards) - top - self._fit
        if place >= self._fit:
            last = y == _HEAD + self._fit * self._tall
            return line((f"↓ {below:,} more", DIM)) if below > 0 and last else Content("")
        if not column.cards:
            return line(("no tasks", DIM)) if y == _HEAD else Content("")
        if index >= len(column.cards):
            return Content("")
        lines = draw_card(column.cards[index], cells, tall=self._tall)
        row = (y - _HEAD) % self._tall
        if row >= len(lines):
            return Content("")
        content = lines[row].truncate(cells, ellipsis=True)
        if current and index == self.spot.card and self.has_focus:
            content = content.pad_right(max(0, cells - content.cell_length)).stylize(CURSOR)
        return content

    def _title(self, column: ColumnView, number: int, cells: int, current: bool) -> Content:
        left = line((column.title, STRONG if current else ""), " ", (f"{column.count:,}", DIM))
        notes: list[Part] = []
        if self._tops[number]:
            notes.append((f"↑ {self._tops[number]:,}", DIM))
        many = self._many
        if number == self._left and self._left:
            notes.append((f"  ‹ {self._left} more" if notes else f"‹ {self._left} more", WARN))
        hidden = len(self.view.columns) - self._left - many
        if number == self._left + many - 1 and hidden > 0:
            notes.append((f"  {hidden} more ›" if notes else f"{hidden} more ›", WARN))
        return spread(left, line(*notes), cells) if notes else left.truncate(cells, ellipsis=True)


def _card(view: KanbanView, spot: Spot) -> CardView | None:
    if spot.column < len(view.columns):
        cards = view.columns[spot.column].cards
        if spot.card < len(cards):
            return cards[spot.card]
    return None
