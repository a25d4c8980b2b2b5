"""The parsed fields of a proposal, such as argv, cwd and sandbox."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from widgets.text.clean import clean
from widgets.text.style_names import DIM, block
from widgets.text.wrapped import wrap_line


class Fields(Widget):
    """Draw names in one column, and wrapped values next to them."""

    DEFAULT_CSS = "Fields { height: auto; width: 1fr; margin: 0 0 1 0; text-wrap: nowrap; }"

    def __init__(self, fields: tuple[tuple[str, str], ...]) -> None:
        super().__init__()
        self._fields = fields

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(width))

    def render(self) -> Content:
        return Content("\n").join(self._rows(self.content_size.width))

    def _rows(self, width: int) -> list[Content]:
        names = [clean(name, newlines=False) for name, _ in self._fields]
        column = min(max(len(name) for name in names) + 2, max(6, width // 3))
        rows: list[Content] = []
        for name, (_, value) in zip(names, self._fields, strict=True):
            head = Content.styled(name, DIM).truncate(column, ellipsis=True, pad=True)
            pieces = [
                piece
                for part in block(value).split("\n", allow_blank=True)
                for piece in wrap_line(part, max(4, width - column))
            ]
            for place, piece in enumerate(pieces or [Content("")]):
                rows.append(Content.assemble(head if place == 0 else " " * column, piece))
        return rows
