"""The work pane: a tree of rows that scrolls, opens and peeks."""

from typing import Any

from msgspec.structs import replace

from widgets.views import WorkPaneView, WorkRowView
from widgets.work.work_pane import WorkPane

ROWS = (
    WorkRowView("s1", "▶", "accent", "T-42 token expiry", "testing", "12✓ 1✗", current=True),
    WorkRowView("s2", "?", "warn", "T-43 rename client", "waits for you", depth=1),
    WorkRowView("s3", "■", "bad", "T-40 drop py3.8", "blocked", "red after 3 tries", depth=1),
)
MANY = tuple(WorkRowView(f"k{n}", "✔", "good", f"task {n}", "done") for n in range(50))


async def test_rows_have_signs_states_and_depth(stage: Any) -> None:
    board = WorkPane()
    async with stage(board) as pilot:
        board.show(WorkPaneView("7/12 tasks", ROWS))
        await pilot.pause()
        text = pilot.app.drawn
        assert "7/12 tasks" in text
        assert "▸ ▶ T-42 token expiry" in text
        assert "    ? T-43 rename client" in text
        assert "waits for you" in text
        assert "red after 3 tries" in text


async def test_keys_move_open_and_peek(stage: Any) -> None:
    board = WorkPane()
    async with stage(board) as pilot:
        board.show(WorkPaneView("", ROWS))
        board.focus()
        await pilot.press("j", "enter", "j", "j", "space", "k", "k", "k", "enter")
        assert [each.key for each in pilot.app.got(WorkPane.RowOpened)] == ["s2", "s1"]
        assert [each.key for each in pilot.app.got(WorkPane.RowPeeked)] == ["s3"]


async def test_the_cursor_scrolls_into_view(stage: Any) -> None:
    board = WorkPane()
    async with stage(board, size=(60, 12)) as pilot:
        board.show(WorkPaneView("many", MANY))
        board.focus()
        await pilot.pause()
        await pilot.press("G")
        await pilot.pause()
        assert "task 49" in pilot.app.drawn
        await pilot.press("g")
        await pilot.pause()
        assert "task 0" in pilot.app.drawn
        assert "many" in pilot.app.drawn


async def test_the_cursor_follows_its_row(stage: Any) -> None:
    board = WorkPane()
    async with stage(board) as pilot:
        board.show(WorkPaneView("", ROWS))
        board.focus()
        await pilot.press("j")
        board.show(WorkPaneView("", (replace(ROWS[0], key="new"), *ROWS)))
        await pilot.press("enter")
        assert [each.key for each in pilot.app.got(WorkPane.RowOpened)] == ["s2"]
        board.show(WorkPaneView("", ROWS[:1]))
        await pilot.press("enter")
        assert [each.key for each in pilot.app.got(WorkPane.RowOpened)][-1] == "s1"


async def test_a_click_opens_a_row(stage: Any) -> None:
    board = WorkPane()
    async with stage(board) as pilot:
        board.show(WorkPaneView("sum", ROWS))
        await pilot.pause()
        place = next(y for y, text in enumerate(pilot.app.rows) if "T-40" in text)
        await pilot.click(offset=(8, place))
        assert [each.key for each in pilot.app.got(WorkPane.RowOpened)] == ["s3"]


async def test_an_empty_board_says_so(stage: Any) -> None:
    board = WorkPane()
    async with stage(board) as pilot:
        board.focus()
        await pilot.press("j", "k", "G", "enter", "space")
        assert "No chains or tasks yet" in pilot.app.drawn
        assert not pilot.app.got(WorkPane.RowOpened)
