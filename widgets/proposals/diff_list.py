"""The diffs of many files below each other, each of which folds; the keys move over lines and files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from widgets.proposals.file_diff import FileDiff
from widgets.text.detail import DetailRow
from widgets.text.detail_lines import DetailLines
from widgets.text.diff_rows import AROUND
from widgets.text.style_names import DIM, WARN, line
from widgets.views import FileDiffView

SPLIT_CELLS = 110
"""Width from which the two sides of a diff are next to each other."""
_FOLDED_FROM = 30
"""Files from which on all begin folded: their names are what one looks for."""


Part = FileDiffView | Sequence[DetailRow]
"""A file, or rows of text."""


class DiffList(VerticalScroll, can_focus=True):
    """Draw files and texts; j and k scroll, ] and [ go to the next and previous file, space folds one, z all.

    ``around`` is the context around each change, in lines; None draws the files whole.
    """

    DEFAULT_CSS = """
    DiffList { scrollbar-size-vertical: 1; padding: 0 1; }
    DiffList > Static, DiffList > DetailLines { height: auto; margin: 0 0 1 0; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("j,down", "move(1)", "down", show=False),
        Binding("k,up", "move(-1)", "up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "page down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("g,home", "edge(-1)", "first line", show=False),
        Binding("G,end", "edge(1)", "last line", show=False),
        Binding("right_square_bracket", "file(1)", "next file", show=False),
        Binding("left_square_bracket", "file(-1)", "previous file", show=False),
        Binding("space", "fold", "fold the file", show=False),
        Binding("z", "fold_all", "fold all files", show=False),
        Binding("d", "split", "side by side", show=False),
    ]

    def __init__(
        self,
        parts: Sequence[Part] = (),
        *,
        around: int | None = AROUND,
        empty: str = "",
        id: str | None = None,  # noqa: A002 -- Textual's name for it
    ) -> None:
        super().__init__(id=id)
        self._shown, self._around, self._empty = tuple(parts), around, empty
        self._split: bool | None = None
        self._at = 0
        self._sought = -1

    def compose(self) -> ComposeResult:
        yield from self._parts(self._shown)

    def show(self, parts: Sequence[Part], *, follow: bool = False) -> None:
        """Draw other parts; where the first ones are those of before, the place and what is folded stay.

        ``follow`` keeps the end in view where it was in view.
        """
        shown, self._shown = self._shown, tuple(parts)
        widgets = [each for each in self.children if isinstance(each, FileDiff | DetailLines)]
        if shown and len(widgets) == len(shown) and all(map(_is_same, shown, parts)):
            at_end = follow and self.scroll_offset.y >= self.max_scroll_y
            for widget, part in zip(widgets, parts, strict=False):
                if isinstance(widget, DetailLines) and not isinstance(part, FileDiffView):
                    widget.show(part)
            if len(parts) >= len(shown):
                self.mount_all([self._part(part) for part in parts[len(shown) :]])
                if at_end:
                    self.call_after_refresh(self.scroll_end, animate=False)
                return
        self.remove_children()
        self.mount_all(list(self._parts(parts)))
        self.scroll_home(animate=False)
        self._at = 0

    def _parts(self, parts: Sequence[Part]) -> Iterator[Widget]:
        count = sum(isinstance(part, FileDiffView) for part in parts)
        folded = count >= _FOLDED_FROM
        if folded:
            yield Static(line((f"{count} files: space unfolds one, z all", WARN)))
        for part in parts:
            yield self._part(part, folded=folded)
        if not parts and self._empty:
            yield Static(line((self._empty, DIM)))

    def _part(self, part: Part, *, folded: bool = False) -> Widget:
        if isinstance(part, FileDiffView):
            return FileDiff(part, split=self._is_split, around=self._around, folded=folded)
        return DetailLines(part)

    @property
    def files(self) -> list[FileDiff]:
        """The diffs, in order."""
        return list(self.query(FileDiff))

    @property
    def current(self) -> FileDiff | None:
        """The file that keys act on: the one under the cursor."""
        files = self.files
        return files[min(self._at, len(files) - 1)] if files else None

    def _mark(self, at: int) -> None:
        self._at = at
        for place, diff in enumerate(self.files):
            diff.marked = place == at and len(self.files) > 1

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        tops = [diff.virtual_region.y for diff in self.files]
        if (
            round(new_value) != self._sought
        ):  # not where a key to a file went: the cursor follows the view
            self._mark(max(0, bisect_right(tops, round(new_value)) - 1))

    @property
    def place(self) -> tuple[str, int]:
        """The file under the cursor and its first line in view, from 1; '' without a file."""
        current = self.current
        if current is None:
            return "", 0
        below = max(0, self.scroll_offset.y - current.virtual_region.y)
        return current.text.path, current.place_at(below)

    @property
    def _is_split(self) -> bool:
        return self.size.width >= SPLIT_CELLS if self._split is None else self._split

    def on_resize(self, event: events.Resize) -> None:
        """Show both sides next to each other where there is room."""
        del event
        self._split_all()

    def _split_all(self) -> None:
        for diff in self.files:
            diff.split = self._is_split

    def action_move(self, step: int) -> None:
        """Scroll by a line."""
        self.scroll_relative(y=step, animate=False)

    def action_page(self, way: int) -> None:
        """Scroll by a page."""
        self.scroll_relative(y=way * max(1, self.size.height - 2), animate=False)

    def action_edge(self, way: int) -> None:
        """Go to the first or the last line."""
        (self.scroll_home if way < 0 else self.scroll_end)(animate=False)

    def action_file(self, way: int) -> None:
        """Go to the next or the previous file."""
        files = self.files
        if files:
            self._mark(max(0, min(self._at + way, len(files) - 1)))
            self._seek(files[self._at])

    def _seek(self, diff: FileDiff) -> None:
        self._sought = min(diff.virtual_region.y, self.max_scroll_y)
        self.scroll_to(y=self._sought, animate=False)

    def action_fold(self) -> None:
        """Fold or unfold the file under the cursor."""
        if (current := self.current) is not None:
            current.folded = not current.folded
            self._seek(current)

    def action_fold_all(self) -> None:
        """Fold all files, or unfold them where all are folded."""
        files = self.files
        folded = not all(diff.folded for diff in files)
        for diff in files:
            diff.folded = folded

    def action_split(self) -> None:
        """Switch between side by side and unified."""
        self._split = not self._is_split
        self._split_all()


def _is_same(before: Part, after: Part) -> bool:
    """Whether a part can stay: the same file, or rows, whose text may change."""
    if isinstance(before, FileDiffView) or isinstance(after, FileDiffView):
        return before == after
    return True
