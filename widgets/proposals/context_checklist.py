"""The items of a context request: source, band and tokens of each, to tick."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from widgets.text.numerals import tokens
from widgets.text.style_names import BAD, CURSOR, DIM, GOOD, STRONG, STRUCK, band, line
from widgets.views import ItemView

_BAND_CELLS = 12
_TOKEN_CELLS = 6
_LEAST = 12
_INDENT = 4


class Checklist(Widget):
    """Draw items with their tokens and bands; while narrowing, each has a box to tick.

    Refused items are struck through, with the reason; they cannot be ticked.
    """

    DEFAULT_CSS = """
    Checklist { height: auto; width: 1fr; text-wrap: nowrap; }
    """

    narrowing: reactive[bool] = reactive(False)
    cursor: reactive[int] = reactive(0)
    dropped: reactive[frozenset[int]] = reactive(frozenset())

    def __init__(self, items: tuple[ItemView, ...]) -> None:
        super().__init__()
        self.items = items
        self._width = 0

    def watch_narrowing(self, narrowing: bool) -> None:
        """Tick every item again once narrowing ends: Enter approves the whole request then."""
        if not narrowing:
            self.dropped = frozenset()

    @property
    def kept(self) -> tuple[str, ...]:
        """The items to fetch, in order."""
        return tuple(
            each.item
            for place, each in enumerate(self.items)
            if not each.refused and place not in self.dropped
        )

    def move(self, step: int) -> None:
        """Move the cursor by ``step`` items."""
        self.cursor = max(0, min(self.cursor + step, len(self.items) - 1))

    def toggle(self) -> bool:
        """Tick or untick the item under the cursor; False when it was refused."""
        if not self.items or self.items[self.cursor].refused:
            return False
        self.dropped = self.dropped ^ {self.cursor}
        return True

    @property
    def cursor_line(self) -> int:
        """The line that the cursor is on."""
        return 1 + sum(len(self._rows(place)) for place in range(self.cursor))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._width = width
        if not self.items:
            return 0
        return 1 + sum(len(self._rows(place)) for place in range(len(self.items)))

    def render(self) -> Content:
        self._width = width = self.content_size.width
        rows: list[Content] = [self._total(width)] if self.items else []
        for place in range(len(self.items)):
            item_rows = self._rows(place)
            if self.narrowing and place == self.cursor:
                item_rows = [
                    row.pad_right(max(0, width - row.cell_length)).stylize(CURSOR)
                    for row in item_rows
                ]
            rows += item_rows
        return Content("\n").join(rows)

    def _rows(self, place: int) -> list[Content]:
        """Draw one item. It is never cut off: the user must be able to read what they approve."""
        each, width = self.items[place], self._width
        ticked = not each.refused and place not in self.dropped
        sign = "✗" if each.refused else "✔" if ticked else "–"
        box = f"[{'x' if ticked else ' '}]" if self.narrowing and not each.refused else f" {sign} "
        style = BAD if each.refused else GOOD if ticked else DIM
        level = f" · {each.level}" if each.level != "full" else ""
        name = line((each.item, STRUCK if each.refused else "" if ticked else DIM), (level, DIM))
        right = self._right(each, ticked)
        room = width - right.cell_length - 1 - _INDENT
        if room < _LEAST:
            right, room = Content(""), max(_LEAST, width - _INDENT)
        rows = [
            Content.assemble(line((box, style), " ") if at == 0 else " " * _INDENT, piece)
            for at, piece in enumerate(name.wrap(room))
        ]
        gap = max(1, width - rows[0].cell_length - right.cell_length)
        rows[0] = Content.assemble(rows[0], " " * gap, right) if right else rows[0]
        for text, style in ((each.refused, BAD), (each.note, DIM)):
            if text:
                pieces = line((text, style)).wrap(max(_LEAST, width - _INDENT))
                rows += [Content.assemble(" " * _INDENT, piece) for piece in pieces]
        return rows

    def _right(self, each: ItemView, ticked: bool) -> Content:
        cost = "" if each.refused else "?" if each.tokens is None else tokens(each.tokens)
        content = line((f"{cost:>{_TOKEN_CELLS}}", STRONG if ticked else DIM))
        if self._width < 3 * _BAND_CELLS + _TOKEN_CELLS:
            return content
        label = Content.styled(line(each.band).plain, band(each.band))
        return Content.assemble(content, "  ", label.truncate(_BAND_CELLS, ellipsis=True, pad=True))

    @property
    def total_text(self) -> str:
        """How many items are kept, and their tokens."""
        count, total = self._sum()
        return f"{count} · {total}"

    def _sum(self) -> tuple[str, str]:
        fetched = [
            each
            for place, each in enumerate(self.items)
            if not each.refused and place not in self.dropped
        ]
        sizes = [each.tokens for each in fetched if each.tokens is not None]
        unknown = len(fetched) - len(sizes)
        size = f"{tokens(sum(sizes))} tokens" if sizes or not unknown else "size unknown"
        if sizes and unknown:
            size += f" and {unknown} of unknown size"
        count = (
            f"{len(fetched)} of {len(self.items)}"
            if len(fetched) != len(self.items)
            else (str(len(self.items)))
        )
        noun = "item" if len(self.items) == 1 else "items"
        return f"{count} {noun}", size

    def _total(self, width: int) -> Content:
        count, total = self._sum()
        summary = line((f"{count} · ", DIM), (total, STRONG))
        return summary.truncate(width, ellipsis=True)
