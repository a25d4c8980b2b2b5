"""The items of a context request: what would be read, where it lands, what it costs."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from widgets.numerals import tokens
from widgets.tone import BAD, CURSOR, DIM, GOOD, STRONG, STRUCK, band, line
from widgets.views import ItemView

_BAND_CELLS = 12
_TOKEN_CELLS = 6
_LEAST = 12


class Checklist(Widget):
    """Draw items with their tokens and bands; while narrowing, each has a box to tick.

    Refused items are struck through with the reason; they can never be kept.
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
        return sum(_height(each) for each in self.items[: self.cursor])

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return sum(_height(each) for each in self.items) + 1 if self.items else 0

    def render(self) -> Content:
        width = self.content_size.width
        rows: list[Content] = []
        for place, each in enumerate(self.items):
            drawn = self._row(place, each, width)
            if self.narrowing and place == self.cursor:
                drawn = drawn.pad_right(max(0, width - drawn.cell_length)).stylize(CURSOR)
            rows.append(drawn)
            for words, style in ((each.refused, BAD), (each.note, DIM)):
                if words:
                    note = line("    ", (words, style)).truncate(width, ellipsis=True)
                    rows.append(note)
        if self.items:
            rows.append(self._total(width))
        return Content("\n").join(rows)

    def _row(self, place: int, each: ItemView, width: int) -> Content:
        kept = not each.refused and place not in self.dropped
        sign = "✗" if each.refused else "✔" if kept else "–"
        box = f"[{'x' if kept else ' '}]" if self.narrowing and not each.refused else f" {sign} "
        style = BAD if each.refused else GOOD if kept else DIM
        level = f" · {each.level}" if each.level != "full" else ""
        name = line(
            (box, style),
            " ",
            (each.item, STRUCK if each.refused else "" if kept else DIM),
            (level, DIM),
        )
        cost = f"{tokens(each.tokens):>{_TOKEN_CELLS}}" if not each.refused else " " * _TOKEN_CELLS
        right = line((cost, STRONG if kept else DIM))
        if width >= _LEAST + _BAND_CELLS + _TOKEN_CELLS + 2:
            label = Content.styled(line(each.band).plain, band(each.band))
            label = label.truncate(_BAND_CELLS, ellipsis=True, pad=True)
            right = Content.assemble(right, "  ", label)
        room = width - right.cell_length - 1
        if room < _LEAST:
            return name.truncate(width, ellipsis=True)
        return Content.assemble(name.truncate(room, ellipsis=True, pad=True), " ", right)

    def _total(self, width: int) -> Content:
        fetched = [
            each
            for place, each in enumerate(self.items)
            if not each.refused and place not in self.dropped
        ]
        total = sum(each.tokens for each in fetched)
        count = (
            f"{len(fetched)} of {len(self.items)}"
            if len(fetched) != len(self.items)
            else (str(len(self.items)))
        )
        words = line((f"    {count} items · ", DIM), (f"{tokens(total)} tokens", STRONG))
        return words.truncate(width, ellipsis=True)


def _height(item: ItemView) -> int:
    return 1 + bool(item.refused) + bool(item.note)
