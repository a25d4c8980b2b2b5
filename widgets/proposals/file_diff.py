"""The diff of a file, line by line: only the lines in view are made, coloured and drawn.

Specified in ``docs/reference/screen.md``, large things.
"""

from __future__ import annotations

from collections import OrderedDict

from textual import events
from textual.content import Content
from textual.highlight import ANSIDarkHighlightTheme, ANSILightHighlightTheme, HighlightTheme
from textual.reactive import reactive

from widgets.text.diff_rows import AROUND, DiffText, Layout, Row
from widgets.text.line_view import LineView
from widgets.text.style_names import BAD, CURSOR, DIM, GOOD, RULE, STRONG, WARN, Part, line
from widgets.views import FileDiffView

_GROUNDS = {"+": "on $diff-added-background", "-": "on $diff-removed-background"}
_TONES = {"+": GOOD, "-": BAD, " ": DIM}
_KEPT = 500
_HATCH = "╲"


class FileDiff(LineView):
    """Draw one :class:`FileDiffView`; split or unified, with ``+`` and ``-`` next to the colours.

    A file that is new or removed, or only grows or shrinks, has one column. ``around`` is the context
    around each change, in lines; None draws all of both files. While it is ``folded`` only its title is
    drawn. What of the title stands in ``above`` already (path, counts of lines) is left out.
    """

    DEFAULT_CSS = "FileDiff { margin: 0 0 1 0; }"

    split: reactive[bool] = reactive(False, init=False)
    folded: reactive[bool] = reactive(False, init=False)
    marked: reactive[bool] = reactive(False, init=False)
    """Whether it is the one of several that keys act on."""

    def __init__(
        self,
        view: FileDiffView,
        *,
        split: bool = False,
        around: int | None = AROUND,
        folded: bool | None = None,
        above: str = "",
    ) -> None:
        super().__init__()
        self._above = f" {above} "
        self.set_reactive(FileDiff.split, split)
        self.set_reactive(FileDiff.folded, bool(folded))
        self._foldable = folded is not None
        self._around = around
        self.text = DiffText(view.path, view.before, view.after)
        self._note = _unseen(view, self.text)
        self._layouts: OrderedDict[tuple[int, bool], Layout] = OrderedDict()
        self._pieces: OrderedDict[tuple[object, ...], list[Content]] = OrderedDict()

    def watch_split(self) -> None:
        self.refresh(layout=True)

    watch_folded = watch_split

    @property
    def title(self) -> Content:
        """The path, whether the file is new or removed, and the counts of lines."""
        text = self.text
        state = "new" if text.is_new else "removed" if text.is_removed else ""
        parts: list[Part] = [("▸ " if self.folded else "▾ ", DIM)] if self._foldable else []
        if f" {text.path} " not in self._above:
            parts.append((f"{text.path}  ", STRONG))
        if state:
            parts.append((f"{state} file  ", DIM))
        if f"(+{text.added} −{text.removed})" not in self._above:
            parts += [(f"+{text.added}", GOOD), " ", (f"−{text.removed}", BAD), "  "]
        if self._note:
            parts.append((f"! {self._note}", WARN))
        return line(*parts).rstrip()

    def on_click(self, event: events.Click) -> None:
        """Fold or unfold the file with a click on its title."""
        if self._foldable and event.y < len(self._titles(self.size.width)):
            self.folded = not self.folded
            event.stop()

    def place_at(self, y: int) -> int:
        """Return the line of the file after the change that is on line ``y`` of the screen, from 1."""
        layout = self._layout(self.size.width)
        at = min(max(0, y - len(self._titles(self.size.width))), max(0, layout.height - 1))
        place, _ = layout.find(at)
        for row in layout.rows[place:]:
            if row.new >= 0 and row.sign != "⋮":
                return row.new + 1
        return max(1, len(self.text.sides[1]))

    def count_lines(self, width: int) -> int:
        titles = len(self._titles(width))
        return titles if self.folded else titles + self._layout(width).height

    def line_at(self, y: int, width: int) -> Content:
        titles = self._titles(width)
        if y < len(titles):
            return titles[y]
        layout = self._layout(width)
        place, step = layout.find(y - len(titles))
        row = layout.rows[place]
        if row.sign == "⋮":
            count = "1 line" if row.old == 1 else f"{row.old:,} lines"
            return line((f"{'⋮':>{layout.gutter - 2}}  {count} unchanged", DIM)).truncate(width)
        if not layout.split:
            side = 0 if row.new < 0 else 1
            return self._half(row, side, row.sign, layout, step, layout.half)
        left = self._half(row, 0, row.sign, layout, step, layout.half)
        right_sign = "+" if row.sign == "-" else " "
        right = self._half(row, 1, right_sign, layout, step, width - layout.half)
        return Content.assemble(left, right)

    def _half(
        self, row: Row, side: int, sign: str, layout: Layout, step: int, width: int
    ) -> Content:
        """Draw a line of a row: all of it, or one of its sides."""
        place = row.new if side else row.old
        if place < 0:
            return Content.styled(_HATCH * width, RULE)
        pieces = self._fold(row, side, sign, layout)
        if step:
            head = Content.styled("▎" + " " * (layout.gutter - 1), _TONES[sign])
        else:
            numbers = self._numbers(row, side, layout)
            head = Content.assemble(
                Content.styled(f"▎{numbers} ", _TONES[sign]),
                Content.styled(f"{sign} ", f"bold {_TONES[sign]}"),
            )
        piece = pieces[step] if step < len(pieces) else Content("")
        room = max(0, width - layout.gutter - piece.cell_length)
        drawn = Content.assemble(head, piece.pad_right(room)).truncate(width)
        ground = _GROUNDS.get(sign, "")
        return drawn.stylize_before(ground) if ground else drawn

    def _numbers(self, row: Row, side: int, layout: Layout) -> str:
        width = layout.digits
        if layout.split or self.text.has_one_column:
            return f"{(row.new if side else row.old) + 1:>{width}}"
        old, new = (f"{at + 1:>{width}}" if at >= 0 else " " * width for at in (row.old, row.new))
        return f"{old} {new}"

    def _fold(self, row: Row, side: int, sign: str, layout: Layout) -> list[Content]:
        theme = self._theme
        key = (row, side, layout.room, theme)
        if (pieces := self._pieces.get(key)) is not None:
            return pieces
        place, other = (row.new, row.old) if side else (row.old, row.new)
        # The sides of an unchanged line are the same: only one is coloured.
        source, at = (1, row.new) if sign == " " and row.new >= 0 else (side, place)
        content = self.text.line(source, at, theme)
        if sign != " " and row.pair >= 0:
            content = self.text.marked(side, place, other if layout.split else row.pair, content)
        pieces = content.fold(layout.room) if content.cell_length > layout.room else [content]
        self._pieces[key] = pieces
        if len(self._pieces) > _KEPT:
            self._pieces.popitem(last=False)
        return pieces

    @property
    def _theme(self) -> type[HighlightTheme]:
        theme = self.app.current_theme
        if not getattr(theme, "ansi", False):
            return HighlightTheme
        return ANSIDarkHighlightTheme if theme.dark else ANSILightHighlightTheme

    def _titles(self, width: int) -> list[Content]:
        title = self.title
        if not title and self._layout(width).height:
            return []
        rows = title.wrap(max(1, width)) if title.cell_length > width else [title]
        if self.marked:
            rows = [row.pad_right(max(0, width - row.cell_length)).stylize(CURSOR) for row in rows]
        return rows

    def _layout(self, width: int) -> Layout:
        key = (width, self.split)
        if (layout := self._layouts.get(key)) is None:
            text = self.text
            # Where lines only come or only go, one side would be empty.
            split = self.split and bool(text.added and text.removed) and not text.has_one_column
            rows = self.text.rows(split=split, around=self._around)
            layout = self._layouts[key] = Layout(self.text, rows, width, split=split)
            if len(self._layouts) > 2:
                self._layouts.popitem(last=False)
        return layout


def _unseen(view: FileDiffView, text: DiffText) -> str:
    """Describe a change that the drawn lines do not show; empty without one."""
    if view.before is None or view.after is None or view.before == view.after:
        return ""
    if text.sides[0] == text.sides[1]:
        return "only line endings or invisible characters change"
    if ("\r\n" in view.before) != ("\r\n" in view.after):
        return "line endings change too"
    return ""
