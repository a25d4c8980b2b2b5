"""The queue in a few rows: who waits, where, since when and for what."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from widgets.text.clean import clean
from widgets.text.numerals import duration
from widgets.text.tone import BAD, DIM, STRONG, WARN, Part, line
from widgets.views import QueueView, WaitingView

_FEW = 3
_TALL = 20
"""Lines of a panel from which more rows have room."""
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
        """Draw the rows of ``view`` in a panel of ``height`` lines."""
        most = 0 if height < 12 else _FEW if height < _TALL else 6
        if (view.waiting, view.front, most) == (self._view.waiting, self._view.front, self._most):
            return
        self._view, self._most = view, most
        self.display = bool(self._rows())
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows()) + (self._most > _FEW)

    def render(self) -> Content:
        width = self.content_size.width
        rows = self._rows()
        column = max((len(clean(row.who, newlines=False)) for row in rows), default=0)
        column = min(column, max(12, width * 2 // 5))
        return Content("\n").join(self._row(row, column, width) for row in rows)

    def _rows(self) -> tuple[WaitingView, ...]:
        """Return the rows that have room, the one in front among them."""
        rows, front = self._view.waiting, self._view.front
        ids = [row.proposal_id for row in rows]
        place = ids.index(front.proposal_id) if front and front.proposal_id in ids else 0
        first = max(0, min(place - self._most // 2, len(rows) - self._most))
        return rows[first : first + self._most]

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
