"""Markdown drawn as lines, for reading and for deciding: nothing of the text is left out.

A link shows its address, an image and HTML are shown as they are written. What is drawn of a block depends on
nothing outside of it, so that a text that grows is drawn again from its last block on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from textual.content import Content

from widgets.text.clean import clean
from widgets.text.line_view import LineView
from widgets.text.style_names import CODE, RULE, STRONG, line

_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*)")
_ITEM = re.compile(r"(\s*)(?:([-*+])|(\d{1,9}[.)]))\s+(.*)")
_QUOTE = re.compile(r"\s{0,3}>\s?(.*)")
_INLINE = re.compile(
    r"\*\*(?P<strong>[^*\n]+)\*\*|`(?P<code>[^`\n]+)`"
    r"|(?<![*\w])\*(?P<emphasis>[^*\s](?:[^*\n]*[^*\s])?)\*(?![*\w])"
)
_RULE_OF_TABLE = re.compile(r"[|:\-\s]+")
_MOST_OF_A_NAME = 24
"""Characters of the name of a language, which is not drawn; what is longer is drawn as code."""
_MOST_COLOURED = 20_000
"""Characters of code that are coloured."""
_LEAST = 8


class MarkdownLines(LineView):
    """A text as Markdown; only the lines in view are made into strips."""

    def __init__(self, source: str = "", *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._source = source
        self._drawn: tuple[int, list[Content]] = (0, [])

    def show(self, source: str) -> None:
        """Draw another text."""
        if source != self._source:
            self._source, self._drawn = source, (0, [])
            self.refresh(layout=True)

    def count_lines(self, width: int) -> int:
        if self._drawn[0] != width:
            self._drawn = (width, draw_markdown(self._source, max(_LEAST, width)))
        return len(self._drawn[1])

    def line_at(self, y: int, width: int) -> Content:
        return self._drawn[1][y]


def draw_markdown(text: str, width: int) -> list[Content]:
    """Draw Markdown for reading: headings, lists, quotes, tables, code, bold. Nothing is left out."""
    rows: list[Content] = []
    for block in _blocks(clean(text)):
        rows += [*([Content("")] if rows else []), *_draw_block(block, width)]
    return rows


def _blocks(text: str) -> Iterator[str]:
    """Split Markdown where lines are blank, but not within code."""
    block: list[str] = []
    fence = ""
    for row in text.split("\n"):
        opened = _FENCE.match(row)
        if fence:
            fence = "" if opened and row.strip() == fence else fence
        elif opened:
            fence = opened[1]
        elif not row.strip():
            if block:
                yield "\n".join(block)
            block = []
            continue
        block.append(row)
    if block:
        yield "\n".join(block)


@lru_cache(maxsize=256)
def _draw_block(block: str, width: int) -> tuple[Content, ...]:
    rows: list[Content] = []
    for kind, text in _parts(block):
        if kind == "table":
            rows += _table(text, width)
        elif kind.startswith("code"):
            rows += _code(text, kind.removeprefix("code"), width)
        elif kind == "heading":
            rows += Content.styled(text, STRONG).wrap(width)
        elif kind == "item":
            rows += _item(text, width)
        elif kind == "quote":
            rows += [
                Content.assemble(("▌ ", RULE), piece)
                for piece in _inline(text).wrap(max(_LEAST, width - 2))
            ]
        else:
            rows += _inline(text).wrap(width)
    return tuple(rows)


def _parts(block: str) -> Iterator[tuple[str, str]]:
    """Split a block by kind; lines of one paragraph are joined, those of code and tables stay together."""
    paragraph: list[str] = []
    kept: list[str] = []
    last, fence = "", ""

    def end() -> Iterator[tuple[str, str]]:
        if paragraph:
            yield "text", " ".join(paragraph)
        if kept:
            yield last, "\n".join(kept)
        paragraph.clear()
        kept.clear()

    for row in block.split("\n"):
        opened = _FENCE.match(row)
        if fence:
            if opened and row.strip() == fence:
                yield from end()
                fence = ""
            else:
                kept.append(row)
            continue
        is_cell = row.lstrip().startswith("|")
        kind, text = "text", row.strip()
        if heading := _HEADING.match(row):
            kind, text = "heading", heading[1]
        elif _ITEM.match(row):
            kind, text = "item", row
        elif quote := _QUOTE.match(row):
            kind, text = "quote", quote[1]
        if opened or (is_cell and not kept) or (kind != "text") or (kept and not is_cell):
            yield from end()
        if opened:
            fence = opened[1]
            info = row.strip().removeprefix(fence).strip()
            is_language = info.isalnum() and len(info) <= _MOST_OF_A_NAME
            last = f"code{info}" if is_language else "code"
            if info and not is_language:
                kept.append(info)
        elif is_cell:
            last = "table"
            kept.append(row)
        elif kind == "text":
            paragraph.append(text)
        else:
            yield kind, text
    yield from end()


def _code(text: str, language: str, width: int) -> Iterator[Content]:
    drawn = Content(text)
    if language and len(text) <= _MOST_COLOURED:
        from widgets.text.language import colour_code  # late: Pygments takes a while to load

        drawn = colour_code(text, language)
    room = max(2, width - 3)
    for row in drawn.split("\n", allow_blank=True):
        for piece in row.fold(room) or [Content("")]:
            padded = piece.pad_right(max(0, room - piece.cell_length))
            yield Content.assemble("  ", Content.assemble(" ", padded).stylize(CODE))


def _table(text: str, width: int) -> list[Content]:
    """Draw a table in columns where it has room, else as it is written."""
    rows = text.split("\n")
    cells = [[_inline(cell.strip()) for cell in row.strip().strip("|").split("|")] for row in rows]
    columns = len(cells[0])
    is_table = len(rows) > 1 and _RULE_OF_TABLE.fullmatch(rows[1]) and "\\|" not in text
    widths = [
        max(row[place].cell_length for at, row in enumerate(cells) if at != 1)
        for place in range(columns)
        if all(len(row) == columns for row in cells)
    ]
    if not (is_table and widths) or sum(widths) + 2 * (columns - 1) > width:
        return [piece for row in rows for piece in _inline(row).wrap(width)]
    drawn = []
    for at, row in enumerate(cells):
        padded = [
            cell.pad_right(room - cell.cell_length) for cell, room in zip(row, widths, strict=True)
        ]
        if at == 1:
            padded = [line(("─" * room, RULE)) for room in widths]
        content = Content("  ").join(padded)
        drawn.append(content.stylize(STRONG) if at == 0 else content)
    return drawn


def _item(row: str, width: int) -> list[Content]:
    match = _ITEM.match(row)
    assert match is not None  # noqa: S101 -- the same pattern decided the kind
    indent, bullet, number, text = match.groups()
    mark = "• " if bullet else f"{number} "
    margin = min(len(indent), width // 3)
    room = max(_LEAST, width - margin - len(mark))
    return [
        Content.assemble(" " * margin, mark if place == 0 else " " * len(mark), piece)
        for place, piece in enumerate(_inline(text).wrap(room))
    ]


def _inline(row: str) -> Content:
    parts: list[str | tuple[str, str]] = []
    at = 0
    for match in _INLINE.finditer(row):
        parts.append(row[at : match.start()])
        style = {"strong": STRONG, "code": CODE}.get(match.lastgroup or "", "italic")
        parts.append((match[match.lastgroup or 0], style))
        at = match.end()
    parts.append(row[at:])
    return line(*(part for part in parts if part))
