"""The backlog's widgets, filled with one text wherever a view takes text."""

from __future__ import annotations

from collections.abc import Callable

from textual.widget import Widget

from widgets.forms.form import FieldView, Form, FormView
from widgets.frame.headline import Headline
from widgets.text.detail import sheet
from widgets.text.style_names import line
from widgets.work import chain_tree_views as chains
from widgets.work.kanban import Kanban
from widgets.work.task_card_views import CardView, ColumnView, KanbanView, ResultsView, TaskLineView
from widgets.work.task_panel import TaskPanel
from widgets.work.task_views import QueuedView, TaskView
from widgets.work.two_line_list import TwoLineList

Made = tuple[Widget, Callable[[], None]]


def tests(text: str) -> ResultsView:
    return ResultsView(12, 1, text)


def task_lines(text: str) -> tuple[TaskLineView, ...]:
    return (
        TaskLineView(text, text[:1], "warn", text, text, tests(text), text),
        TaskLineView("T-2", "■", "bad", "blocked", text),
    )


def chain_rows(text: str) -> tuple[chains.ChainRowView, ...]:
    marks = (chains.MarkView(text[:1], "good", text), chains.MarkView("▶", "warn", text))
    first = task_lines(text)[0]
    return (
        chains.ChainView(
            "ch-1", text[:1], "warn", text, text, text, 3, marks, 7, 12, text, text, "bad", text, text,
            folded=True,
        ),
        chains.ChainSessionView("ch-1/s1", text[:1], "good", text, text, text, text, text, full=True),
        chains.ChainTaskView("ch-1/T-1", first, text, text, current=True),
    )  # fmt: skip


def headline(text: str) -> Made:
    made = Headline()
    return made, lambda: made.show(text, [(text, "bold"), text], 3)


def kanban(text: str) -> Made:
    made = Kanban()
    cards = (
        CardView("#", text, heading=text),
        CardView(text, text, text[:1], "bad", text, text, "warn", tests(text)),
        CardView("T-2", text),
    )
    columns = tuple(ColumnView(f"c{n}", text, cards, 2) for n in range(5))

    def fill() -> None:
        made.show(KanbanView(columns, text, text, text))
        made.focus()

    return made, fill


def task(text: str) -> Made:
    rows = tuple(sheet([(text, line(text))]))
    return TaskPanel(TaskView(line(text), text, text, rows, rows)), lambda: None


def queue(text: str) -> Made:
    made = TwoLineList(empty=text)
    rows = [
        QueuedView(text, text, text[:1], "good", text, text),
        QueuedView("T-2", text),
    ]
    return made, lambda: made.show(rows)


def form(text: str) -> Made:
    made = Form(
        FormView(
            text,
            (
                FieldView("a", text, text, hint=text),
                FieldView("b", text, text, "choice", text, (text, "other")),
                FieldView("c", text, text, "text", text),
            ),
        )
    )
    return made, lambda: made.fill({"a": text, "b": text, "c": text})


WORK_WIDGETS = {
    "headline": headline,
    "kanban": kanban,
    "task": task,
    "queue": queue,
    "form": form,
}
