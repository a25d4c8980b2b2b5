"""The diff of a file: textual-diff-view, made safe for untrusted text."""

from __future__ import annotations

from types import SimpleNamespace

from textual.app import ComposeResult
from textual.content import Content
from textual.highlight import highlight
from textual.style import Style
from textual_diff_view import DiffView, _diff_view

from widgets.proposals.name_language import name_language
from widgets.text.clean import clean
from widgets.text.tone import BAD, DIM, GOOD, STRONG, WARN, Part, line
from widgets.views import FileDiffView

_INLINE_MOST = 4_000

# What DiffView takes for Textual's module: it asks for the language of a file nowhere else.
_diff_view.highlight = SimpleNamespace(  # type: ignore[attr-defined,assignment]
    guess_language=name_language, highlight=highlight
)


class FileDiff(DiffView):
    """Draw one :class:`FileDiffView`; split or unified, with ``+`` and ``-`` next to the colours."""

    DEFAULT_CSS = """
    FileDiff { height: auto; width: 1fr; }
    """

    def __init__(self, view: FileDiffView, *, split: bool = False) -> None:
        path = clean(view.path, newlines=False)
        super().__init__(
            path,
            path,
            clean(view.before or ""),
            clean(view.after or ""),
            split=split,
            annotations=True,
            wrap=True,
        )
        self._state = "new" if view.before is None else "removed" if view.after is None else ""
        self._unseen = _unseen(view)
        self._drawn_in: tuple[object, ...] | None = None

    def compose(self) -> ComposeResult:
        """Note the colours in which the lines are drawn."""
        self._drawn_in = self._colours()
        yield from super().compose()

    def notify_style_update(self) -> None:
        """Draw the lines anew if their colours changed.

        Whatever restyles the panel around a diff restyles the diff too, as when a proposal may be approved.
        Its lines are highlighted and mounted again only if that shows.
        """
        super(DiffView, self).notify_style_update()
        if self._drawn_in is not None:
            self.call_next(self._draw_in_new_colours)

    def _draw_in_new_colours(self) -> None:
        if self._drawn_in != self._colours():
            super().notify_style_update()

    def _colours(self) -> tuple[object, ...]:
        names = sorted(DiffView.COMPONENT_CLASSES)
        return (self.app.theme, *(self.get_visual_style(name) for name in names))

    def get_title(self) -> Content:
        """Return the path, whether the file is new or removed, and the counts of lines."""
        added, removed = self.counts
        parts: list[Part] = [(self.path_modified, STRONG)]
        if self._state:
            parts.append((f"  {self._state} file", DIM))
        parts += ["  ", (f"+{added}", GOOD), " ", (f"−{removed}", BAD)]
        if self._unseen:
            parts.append((f"  ! {self._unseen}", WARN))
        return line(*parts)

    @classmethod
    def _highlight_diff_lines(
        cls,
        lines_a: list[Content],
        lines_b: list[Content],
        added_style: Style,
        removed_style: Style,
    ) -> tuple[list[Content], list[Content]]:
        # Comparing characters takes quadratic time: a large change is compared by lines only.
        if sum(len(each) for each in (*lines_a, *lines_b)) > _INLINE_MOST:
            return lines_a, lines_b
        return super()._highlight_diff_lines(lines_a, lines_b, added_style, removed_style)


def _unseen(view: FileDiffView) -> str:
    """Describe a change that the drawn lines do not show; empty without one."""
    if view.before is None or view.after is None or view.before == view.after:
        return ""
    if clean(view.before).splitlines() == clean(view.after).splitlines():
        return "only line endings or invisible characters change"
    if ("\r\n" in view.before) != ("\r\n" in view.after):
        return "line endings change too"
    return ""
