"""The memory of a task: aligned, and limited however long it is."""

from typing import Any

from widgets.forms.key_values import Sheet, SheetRow
from widgets.text.style_names import line
from widgets.work.task_memory_rows import LISTED_MOST, READ_MOST, handoff_rows, wip_rows
from widgets.work.task_panel import TaskPanel
from widgets.work.task_views import ErrorView, HandoffView, TaskView, WipView


async def test_names_and_values_are_aligned_and_values_wrap_under_each_other(stage: Any) -> None:
    sheet = Sheet(
        [
            SheetRow("phase", line("testing")),
            SheetRow("a name that is too long", line("one two three four five six seven eight")),
            SheetRow("Heading"),
            SheetRow("", line("the whole width " * 3)),
        ]
    )
    async with stage(sheet, size=(40, 20)) as pilot:
        assert pilot.app.rows[:6] == [
            "phase          testing",
            "a name that …  one two three four five",
            "               six seven eight",
            "Heading",
            "the whole width the whole width the",
            "whole width",
        ]  # fmt: skip
        sheet.show([])
        await pilot.pause()
        assert pilot.app.drawn.strip() == ""


async def test_long_lists_and_texts_are_cut_and_that_is_said(stage: Any) -> None:
    many = LISTED_MOST + 7
    view = WipView(
        "T-1",
        phase="testing",
        files=tuple(f"src/{n}.py" for n in range(many)),
        decisions=tuple((f"decision {n}", "") for n in range(many)),
        errors=tuple(ErrorView("e", "", f"message {n}") for n in range(many)),
    )
    told = "\n".join(row.value.plain if row.value else row.name for row in wip_rows(view))
    assert "src/0.py" in told
    assert f"src/{many - 1}.py" not in told
    assert "… 7 more" in told
    assert "decision 6\n" not in told
    assert f"decision {many - 1}" in told
    assert f"message {many - 1}" in told
    assert told.count("… 7 earlier") == 2
    handoff = HandoffView("T-1", status="PASS", details="x" * (READ_MOST + 5), kept=True)
    told = "\n".join(row.value.plain if row.value else row.name for row in handoff_rows(handoff))
    assert "5 more characters: `cockpit handoff show T-1 --details`" in told
    panel = TaskPanel(TaskView("T-1", "title", description="word " * READ_MOST))
    async with stage(panel) as pilot:
        panel.focus()
        await pilot.press("G")
        await pilot.pause()
        await pilot.pause()
        assert f"{READ_MOST * 4 - 1:,} more characters" in pilot.app.drawn
