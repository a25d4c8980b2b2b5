"""The backlog's widgets are as readable as the others: WCAG 4.5:1, in each theme."""

from typing import Any

import pytest
from test_contrast import TONES, weak
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical

import themes
from widgets.forms.form import FieldView, Form, FormView
from widgets.forms.key_values import Sheet
from widgets.frame.headline import Headline
from widgets.views import WorkPaneView
from widgets.work.chain_tree_views import ChainRowView, ChainSessionView, ChainView, MarkView
from widgets.work.kanban import Kanban
from widgets.work.task_card_views import CardView, ColumnView, KanbanView, ResultsView, TaskLineView
from widgets.work.task_memory_rows import handoff_rows, wip_rows
from widgets.work.task_panel import TaskPanel
from widgets.work.task_views import (
    ActivityView,
    ErrorView,
    HandoffView,
    LinkView,
    QueuedView,
    TaskView,
    WipView,
)
from widgets.work.two_line_list import TwoLineList
from widgets.work.work_pane import WorkPane

pytestmark = pytest.mark.slow

TESTS = ResultsView(12, 1, "first")
WIP = WipView(
    "T-1", "title", "now", "testing", "next", "context", TESTS, "a1b2", True, ("file",),
    (("what", "why"),), (ErrorView("kind", "place", "message"),),
)  # fmt: skip
HANDOFF = HandoffView("T-1", "title", "FAIL", "bad", "summary", ("file",), "now", True, "details")
HAPPENING = ActivityView("now", "✗", "bad", "quality", "words", "agent")


class Gallery(App[None]):
    """All widgets of the backlog at once, each with everything that it can show."""

    CSS_PATH = themes.STYLESHEET
    CSS = "Kanban { height: 30; } WorkPane { height: 28; } TwoLineList { height: 1fr; }"

    def __init__(self, theme: str) -> None:
        super().__init__()
        for each in themes.THEMES:
            self.register_theme(each)
        self.theme = theme

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.fallbacks(self.current_theme)

    def compose(self) -> ComposeResult:
        yield Headline()
        with Horizontal():
            with Vertical():
                yield Kanban()
                yield WorkPane()
                yield TwoLineList()
            with Vertical():
                yield TaskPanel(
                    TaskView(
                        "T-1",
                        "title",
                        "▶",
                        "warn",
                        "in progress",
                        (("story", "S-1"),),
                        "words",
                        "words",
                        "blocked",
                        (LinkView("T-2", "waits for", "○", "good", "title"),),
                        WIP,
                        HANDOFF,
                        (HAPPENING,),
                        (HAPPENING,),
                    )
                )
            with Vertical():
                yield Sheet([*wip_rows(WIP), *handoff_rows(HANDOFF)])
                yield Form(
                    FormView(
                        "form",
                        (
                            FieldView("a", "Title", "value"),
                            FieldView("b", "Empty", hint="a hint"),
                            FieldView("c", "Type", "x", "choice", choices=("x", "y")),
                            FieldView("d", "Words", "words\nwords", "text"),
                        ),
                    )
                )

    def on_mount(self) -> None:
        self.query_one(Headline).show("Board", [("words", "$tone-dim")], 2)
        cards = tuple(
            CardView(f"T-{tone}", "title", "▶", tone, "P1", "note", tone, TESTS) for tone in TONES
        )
        heading = CardView("#", "epic", heading="story")
        columns = tuple(ColumnView(str(n), "To do", (heading, *cards), 5) for n in range(3))
        self.query_one(Kanban).show(KanbanView(columns))
        lines = tuple(
            TaskLineView(f"T-{tone}", "▶", tone, "testing", "title", TESTS, "next")
            for tone in TONES
        )
        chains: list[ChainRowView] = []
        for tone in TONES:
            marks = (MarkView("✔", tone, "s1"), MarkView("▶", tone, "s2"))
            chains += [
                ChainView(
                    "ch-1", "▶", tone, "ch-1", "epic E-1", "about", 3, marks, 7, 12, "2 ready",
                    "draining", tone, "41k", "$0.12", folded=True,
                ),
                ChainSessionView("s", "✔", tone, "s1", "batch 1", "41k of 120k tok", full=tone == "bad"),
            ]  # fmt: skip
        self.query_one(WorkPane).show(WorkPaneView("sessions", (), "tasks", lines, tuple(chains)))
        self.query_one(TwoLineList).show(
            [
                QueuedView(f"{tone}{n}", "title", "○", tone, "can start", "why")
                for tone in TONES
                for n in range(6)
            ]
        )
        self.query_one(Kanban).focus()


@pytest.mark.parametrize("name", [theme.name for theme in themes.THEMES])
async def test_every_word_of_the_backlog_stands_out(name: str) -> None:
    app: Any = Gallery(name)
    async with app.run_test(size=(240, 110)) as pilot:
        for _ in range(3):
            await app.workers.wait_for_complete()
            await pilot.pause()
        assert app.screen.focused is not None
        found = weak(app)
        await pilot.press("tab", "tab", "tab", "tab")
        await pilot.pause()
        assert found | weak(app) == set()
