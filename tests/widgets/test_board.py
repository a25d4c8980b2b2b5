"""The board and the work pane: the cursor stays on its row, every key and click works."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from stage import settle

from widgets.views import WorkPaneView, WorkRowView
from widgets.work.kanban import Kanban, Spot
from widgets.work.task_card_views import CardView, ColumnView, KanbanView
from widgets.work.work_pane import WorkPane

pytestmark = pytest.mark.slow

NAMES = ("To do", "In progress", "Review", "Blocked", "Done")


def column(number: int, count: int) -> ColumnView:
    cards = tuple(CardView(f"T-{number}{n:04}", f"task {number}/{n}", "○") for n in range(count))
    return ColumnView(f"c{number}", NAMES[number], cards, count)


def board(*counts: int) -> KanbanView:
    return KanbanView(tuple(column(number, count) for number, count in enumerate(counts)))


async def test_narrow_screens_show_the_columns_around_the_cursor(stage):
    kanban = Kanban()
    async with stage(kanban, size=(80, 24)) as pilot:
        kanban.show(board(1, 1, 1, 1, 1))
        kanban.focus()
        for width, seen, spot in ((80, 3, 0), (80, 3, 4), (150, 5, 4)):
            await pilot.resize_terminal(width, 24)
            await pilot.press(*["l"] * (spot - kanban.spot.column))
            await settle(pilot)
            assert kanban.spot == Spot(spot, 0)
            names = NAMES[5 - seen :] if spot else NAMES[:seen]
            assert all(name in pilot.app.rows[0] for name in names)
            assert (f"{5 - seen} more ›" in pilot.app.drawn) == (seen < 5 and not spot)
            assert (f"‹ {5 - seen} more" in pilot.app.drawn) == (seen < 5 and spot > 0)


async def test_the_cursor_stays_on_its_card_wherever_that_goes(stage):
    kanban = Kanban()
    async with stage(kanban, size=(150, 42)) as pilot:
        view = board(3, 2, 0, 0, 0)
        kanban.show(view)
        kanban.focus()
        await pilot.press("j")
        held = kanban.at_cursor
        moved = (
            replace(view.columns[0], cards=(view.columns[0].cards[0], view.columns[0].cards[2])),
            replace(view.columns[1], cards=(*view.columns[1].cards, held)),
            *view.columns[2:],
        )
        kanban.show(KanbanView(moved))
        assert kanban.spot == Spot(1, 2)
        kanban.show(KanbanView((moved[0], column(1, 2), *moved[2:])))  # it is gone
        assert kanban.at_cursor == view.columns[1].cards[1]
        kanban.show(board(0, 0, 0, 0, 0))
        assert kanban.at_cursor is None
        await pilot.press("j", "k", "l", "h", "G", "g", "enter", "pagedown")
        assert not pilot.app.got(Kanban.Opened)


async def test_clicks_and_the_wheel_move_and_open(stage):
    kanban = Kanban()
    async with stage(kanban, size=(150, 42)) as pilot:
        kanban.show(board(2, 9, 0, 0, 0))
        kanban.focus()
        await settle(pilot)
        place = next(y for y, row in enumerate(pilot.app.rows) if "T-10001" in row)
        await pilot.click(offset=(40, place))
        assert kanban.spot == Spot(1, 1)
        await pilot.click(offset=(40, place + 1))
        assert [each.key for each in pilot.app.got(Kanban.Opened)] == ["T-10001"]
        await pilot.click(offset=(40, 0))
        await pilot.click(offset=(100, place))
        assert kanban.spot == Spot(1, 1)
        kanban.action_move(1)
        await pilot.press("enter")
        assert [each.key for each in pilot.app.got(Kanban.Opened)] == ["T-10001", "T-10002"]


ROWS = (
    WorkRowView("s1", "▶", "accent", "T-42 token expiry", "testing", "12✓ 1✗", current=True),
    WorkRowView("s2", "?", "warn", "T-43 rename client", "waits for you", depth=1),
    WorkRowView("s3", "■", "bad", "T-40 drop py3.8", "blocked", "red after 3 tries", depth=1),
)


async def test_the_work_pane_shows_rows_that_keys_and_clicks_open_and_peek_at(stage):
    board = WorkPane()
    async with stage(board) as pilot:
        board.focus()
        await pilot.press("j", "k", "G", "enter", "space")
        assert "No chains or tasks yet" in pilot.app.drawn
        assert not pilot.app.got(WorkPane.RowOpened)
        board.show(WorkPaneView("7/12 tasks", ROWS))
        await settle(pilot)
        text = pilot.app.drawn
        for words in (
            *("7/12 tasks", "▸ ▶ T-42 token expiry", "    ? T-43 rename client", "waits for you"),
            "red after 3 tries",
        ):
            assert words in text
        await pilot.press("g", "j", "enter", "j", "j", "space", "k", "k", "k", "enter")
        place = next(y for y, text in enumerate(pilot.app.rows) if "T-40" in text)
        await pilot.click(offset=(8, place))
        assert [each.key for each in pilot.app.got(WorkPane.RowOpened)] == ["s2", "s1", "s3"]
        assert [each.key for each in pilot.app.got(WorkPane.RowPeeked)] == ["s3"]
