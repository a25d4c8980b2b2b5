"""Markdown lists drawn as one widget each: a streamed list of many items stays fast.

Textual mounts about six widgets an item and rebuilds the whole list for every fragment. Lists of
plain items are drawn here as lines; a list with code, quotes or tables falls back to Textual.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.widgets._markdown import (  # the blocks have no public names
    MarkdownBlock,
    MarkdownBulletList,
    MarkdownList,
    MarkdownListItem,
    MarkdownOrderedList,
    MarkdownParagraph,
)

from widgets.text.style_names import DIM

_LEAST = 8
_Row = tuple[int, str, Content]
"""One paragraph of an item: cells of indent, the mark before it, its text."""


class _Flat(MarkdownList):
    """The common part of both kinds of lists."""

    _lines: list[_Row] | None = None
    _wrapped: tuple[int, list[Content]] | None = None

    def compose(self) -> ComposeResult:
        self._lines = _flatten(self)
        if self._lines is None:
            yield from super().compose()

    async def _update_from_block(self, block: MarkdownBlock) -> None:
        lines = _flatten(block) if type(block) is type(self) and self._lines is not None else None
        if lines is None:
            await MarkdownBlock._update_from_block(self, block)
            return
        self._lines = lines
        self._wrapped = None
        self._copy_context(block)
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if self._lines is None:
            return super().get_content_height(container, viewport, width)
        return len(self._wrap(width))

    def render(self) -> Content:
        if self._lines is None:
            return Content("")
        return Content("\n").join(self._wrap(self.content_size.width))

    def _wrap(self, width: int) -> list[Content]:
        if self._wrapped is None or self._wrapped[0] != width:
            self._wrapped = (
                width,
                [row for each in self._lines or () for row in _hang(each, width)],
            )
        return self._wrapped[1]


class BulletList(_Flat, MarkdownBulletList):
    """An unordered list."""


class OrderedList(_Flat, MarkdownOrderedList):
    """A numbered list."""


def _flatten(block: MarkdownBlock) -> list[_Row] | None:
    """Return the rows of a list and of the lists in it; None with anything but paragraphs."""
    items = [each for each in block._blocks if isinstance(each, MarkdownListItem)]
    marks = _marks(block, items)
    rows: list[_Row] = []
    for mark, item in zip(marks, items, strict=True):
        for child in item._blocks:
            if isinstance(child, MarkdownParagraph):
                rows.append((0, mark, child._content))
                mark = " " * len(mark)
            elif isinstance(child, _Flat) and (inner := _flatten(child)) is not None:
                if mark.strip():
                    rows.append((0, mark, Content("")))
                    mark = " " * len(mark)
                rows += [(indent + len(mark), each, text) for indent, each, text in inner]
            else:
                return None
        if not item._blocks:
            rows.append((0, mark, Content("")))
    return rows


def _marks(block: MarkdownBlock, items: Sequence[MarkdownListItem]) -> list[str]:
    if not isinstance(block, MarkdownOrderedList):
        return [item.bullet for item in items]
    first = int(items[0].bullet) if items and items[0].bullet.isdecimal() else 1
    numbers = [f"{number}. " for number in range(first, first + len(items))]
    cells = max(map(len, numbers), default=0)
    return [number.rjust(cells) for number in numbers]


def _hang(row: _Row, width: int) -> list[Content]:
    indent, mark, text = row
    indent = min(indent, max(0, width // 2))
    room = max(_LEAST, width - indent - len(mark))
    return [
        Content.assemble(" " * indent, (mark, DIM) if place == 0 else " " * len(mark), piece)
        for place, piece in enumerate(text.wrap(room) or [Content("")])
    ]
