"""One task in full: description, dependencies, work in progress, handoff and activity."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from widgets.text.detail_lines import DetailLines
from widgets.text.markdown import MarkdownLines
from widgets.text.style_names import STRONG, line
from widgets.work.task_views import TaskView

READ_MOST = 20_000
"""Characters of a text that are shown; a line counts the rest."""
WIDE = 110
"""From this width on, the two columns are next to each other."""


class TaskPanel(VerticalScroll, can_focus=True):
    """Draw a :class:`TaskView`; scrolls. Posts nothing."""

    DEFAULT_CSS = """
    TaskPanel { height: 1fr; width: 1fr; padding: 0 1; }
    TaskPanel #task-head { height: auto; margin: 0 0 1 0; }
    TaskPanel #task-body { height: auto; layout: vertical; }
    TaskPanel #task-body.-wide { layout: horizontal; }
    TaskPanel #task-asked { height: auto; width: 1fr; }
    TaskPanel #task-known { height: auto; width: 1fr; margin: 1 0 0 0; }
    TaskPanel .-wide #task-asked { width: 11fr; margin: 0 4 0 0; }
    TaskPanel .-wide #task-known { width: 9fr; margin: 0; }
    TaskPanel .asked-title { height: auto; }
    TaskPanel #task-asked DetailLines, TaskPanel .-later { margin: 1 0 0 0; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("j,down", "scroll_down", "down", show=False),
        Binding("k,up", "scroll_up", "up", show=False),
        Binding("space,pagedown", "page_down", "page down", show=False),
        Binding("pageup", "page_up", "page up", show=False),
        Binding("g,home", "scroll_home", "top", show=False),
        Binding("G,end", "scroll_end", "end", show=False),
    ]

    def __init__(self, view: TaskView | None = None, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.view = view or TaskView(Content(""))
        self._head = Static(id="task-head")
        self._texts = {"description": MarkdownLines(), "criteria": MarkdownLines()}
        self._titles = {name: Static(classes="asked-title") for name in self._texts}
        self._activity, self._memory = DetailLines(), DetailLines()
        self._body = Container(id="task-body")

    def compose(self) -> ComposeResult:
        yield self._head
        with self._body:
            with Container(id="task-asked"):
                for name, markdown in self._texts.items():
                    yield self._titles[name]
                    yield markdown
                yield self._activity
            with Container(id="task-known"):
                yield self._memory

    def on_mount(self) -> None:
        self._titles["criteria"].update(line(("Done when", STRONG)))
        self._titles["criteria"].add_class("-later")
        self._titles["description"].update(line(("Description", STRONG)))
        self.show(self.view)

    def on_resize(self, event: events.Resize) -> None:
        """Put the second column next to the first, or below it."""
        self._body.set_class(event.size.width >= WIDE, "-wide")

    def show(self, view: TaskView) -> None:
        """Draw ``view``; the scroll position stays."""
        self.view = view
        if not self._head.is_attached:
            return  # on_mount draws it
        self._head.update(view.head)
        texts = {
            "description": view.description.strip() or "*No description.*",
            "criteria": view.criteria.strip(),
        }
        for name, text in texts.items():
            self._titles[name].display = self._texts[name].display = bool(text)
            self._texts[name].show(_cut(text))
        for lines, rows in ((self._memory, view.memory), (self._activity, view.activity)):
            lines.show(rows)
            lines.display = bool(rows)


def _cut(text: str) -> str:
    left = len(text) - READ_MOST
    more = f"\n\n**… {left:,} more characters. e shows all of them.**" if left > 0 else ""
    return text[:READ_MOST] + more
