"""The queue in a few rows: who waits, where, since when and for what."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from widgets.text.clean import clean
from widgets.text.numerals import duration
from widgets.text.style_names import BAD, DIM, STRONG, WARN, Part, line
from widgets.views import QueueView, WaitingView

_FEW = 3
_LOW, _TALL = 20, 34
"""Lines of a panel from which a few rows have room, and from which more; in fewer there is a line. Without a
proposal in front the rows are all that the panel has, and the lines are those of the screen."""
_SMALL = 60
"""Below this many columns of the screen a row has two lines: its title has room, and a finger meets it."""
_RISKS: dict[str, Part] = {"low": ("○ ", DIM), "medium": ("● ", WARN), "high": ("▲ ", BAD)}
"""The sign of each risk, which is told apart without colours too."""


class WaitingRows(Widget):
    """Draw the proposals around the one in front, a row each."""

    DEFAULT_CSS = "WaitingRows { height: auto; width: 1fr; text-wrap: nowrap; }"

    def __init__(self) -> None:
        super().__init__()
        self._view = QueueView()
        self._most = 0
        self.display = False

    def show(self, view: QueueView, height: int) -> None:
        """Draw the rows of ``view`` in a panel, or without a front on a screen, of ``height`` lines."""
        most = 1 if height < _LOW else _FEW if height < _TALL else 6
        if (view.waiting, view.front, most) == (self._view.waiting, self._view.front, self._most):
            return
        height = self._height
        self._view, self._most = view, most
        self.display = bool(self._rows())
        self.refresh(layout=self._height != height)

    @dataclass
    class Chosen(Message):
        """The user clicked a proposal."""

        proposal_id: str

    def on_click(self, event: events.Click) -> None:
        """Report the proposal that was clicked."""
        rows, place = self._rows(), event.y // self._lines
        if 0 <= place < len(rows):
            event.stop()
            self.post_message(self.Chosen(rows[place].proposal_id))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._height

    @property
    def _height(self) -> int:
        return len(self._rows()) * self._lines + (self._most > _FEW)

    @property
    def _lines(self) -> int:
        """The lines of a row."""
        return 2 if self._most > 1 and self.screen.size.width < _SMALL else 1

    def render(self) -> Content:
        width = self.content_size.width
        rows = self._rows()
        if not rows:
            return Content("")  # a frame below a dialog, before it is laid out without them
        if self._most == 1:
            return self._summary(rows[0], width)
        if self._lines > 1:
            return Content("\n").join(self._tall_row(row, width) for row in rows)
        column = max((len(clean(row.who, newlines=False)) for row in rows), default=0)
        column = min(column, max(12, width * 2 // 5))
        return Content("\n").join(self._row(row, column, width) for row in rows)

    def _summary(self, row: WaitingView, width: int) -> Content:
        """How many more wait, and the first of them."""
        has_front = self._view.front is not None
        more = self._view.total - (len(self._view.front.together) if self._view.front else 0)
        waits = "more" if has_front else "waits" if more == 1 else "wait"
        count = line(
            (f"{more} {waits}  ", STRONG), _RISKS[row.risk], (f"{row.who}: ", DIM), row.title
        )
        return count.truncate(width, ellipsis=True)

    def _rows(self) -> tuple[WaitingView, ...]:
        """Return the rows that have room, the one in front among them."""
        rows, front = self._view.waiting, self._view.front
        if self._most == 1:
            return tuple(row for row in rows if not front or row.proposal_id != front.proposal_id)[
                :1
            ]
        ids = [row.proposal_id for row in rows]
        place = ids.index(front.proposal_id) if front and front.proposal_id in ids else 0
        first = max(0, min(place - self._most // 2, len(rows) - self._most))
        return rows[first : first + self._most]

    def _tall_row(self, row: WaitingView, width: int) -> Content:
        """What waits, and below it who asks and since when."""
        front = self._view.front
        is_front = front is not None and row.proposal_id == front.proposal_id
        age = f"  {duration(row.age_s)}" if row.age_s else "  now"
        sign: Part = ("▸ " if is_front else "  ", STRONG)
        title = line(sign, _RISKS[row.risk], (row.title, STRONG if is_front else ""))
        below = line(("    ", DIM), (row.who, DIM), (age, DIM))
        return Content("\n").join(each.truncate(width, ellipsis=True) for each in (title, below))

    def _row(self, row: WaitingView, column: int, width: int) -> Content:
        front = self._view.front
        is_front = front is not None and row.proposal_id == front.proposal_id
        age = f"{duration(row.age_s)} " if row.age_s else "now "
        who = line((row.who, STRONG if is_front else DIM)).truncate(column, ellipsis=True, pad=True)
        sign: Part = ("▸ " if is_front else "  ", STRONG)
        head = Content.assemble(
            line(sign), who, "  ", line((f"{age:>5}", DIM)), line(_RISKS[row.risk])
        )
        title = line((row.title, STRONG if is_front else ""))
        return Content.assemble(head, title).truncate(width, ellipsis=True)
