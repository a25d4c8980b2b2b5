"""The board: only visible cards are drawn, the cursor stays on its card, every key works."""

from typing import Any

import pytest
from msgspec.structs import replace

from widgets.work.kanban import Kanban, Spot
from widgets.work.task_card_views import CardView, ColumnView, KanbanView, ResultsView

pytestmark = pytest.mark.slow

NAMES = ("To do", "In progress", "Review", "Blocked", "Done")


def column(number: int, count: int) -> ColumnView:
    cards = tuple(CardView(f"T-{number}{n:04}", f"task {number}/{n}", "○") for n in range(count))
    return ColumnView(f"c{number}", NAMES[number], cards, count)


def board(*counts: int) -> KanbanView:
    return KanbanView(tuple(column(number, count) for number, count in enumerate(counts)))


async def test_columns_have_counts_and_cards(stage: Any) -> None:
    kanban = Kanban()
    card = CardView(
        "T-42", "token expiry", "▶", "warn", "P1", "testing", tests=ResultsView(12, 1, "x")
    )
    view = board(2, 0, 0, 0, 0)
    columns = (view.columns[0], ColumnView("c1", "In progress", (card,), 1), *view.columns[2:])
    async with stage(kanban, size=(150, 42)) as pilot:
        kanban.show(KanbanView(columns))
        await pilot.pause()
        rows = pilot.app.rows
        assert rows[0].split() == ["To", "do", "2", "In", "progress", "1", "Review", "0",
                                   "Blocked", "0", "Done", "0"]  # fmt: skip
        assert "▶ T-42                    P1" in rows[2]
        assert "token expiry" in rows[3]
        assert "12✓ 1✗  testing" in rows[4]
        assert rows[2].endswith("no tasks")


@pytest.mark.parametrize(
    ("size", "seen"), [((80, 24), 3), ((100, 30), 4), ((150, 42), 5), ((30, 10), 1)]
)
async def test_narrow_screens_show_the_columns_around_the_cursor(
    stage: Any, size: tuple[int, int], seen: int
) -> None:
    kanban = Kanban()
    async with stage(kanban, size=size) as pilot:
        kanban.show(board(1, 1, 1, 1, 1))
        kanban.focus()
        await pilot.pause()
        for name in NAMES[:seen]:
            assert name in pilot.app.rows[0]
        assert (f"{5 - seen} more ›" in pilot.app.drawn) == (seen < 5)
        await pilot.press("l", "l", "l", "l", "l")
        await pilot.pause()
        assert kanban.spot == Spot(4, 0)
        for name in NAMES[5 - seen :]:
            assert name in pilot.app.rows[0]
        assert (f"‹ {5 - seen} more" in pilot.app.drawn) == (seen < 5)


async def test_a_cursor_put_on_the_last_column_before_there_is_a_size_leaves_no_room_unused(
    stage: Any,
) -> None:
    kanban = Kanban()
    kanban.show(board(1, 1, 1, 1, 1))
    kanban.turn_to("T-40000")
    async with stage(kanban, size=(80, 24)) as pilot:
        assert kanban.spot == Spot(4, 0)
        for name in NAMES[2:]:
            assert name in pilot.app.rows[0]


async def test_a_long_column_scrolls_and_tells_what_is_above_and_below(stage: Any) -> None:
    kanban = Kanban()
    async with stage(kanban, size=(80, 24)) as pilot:
        kanban.show(board(10_000, 1, 0, 0, 0))
        kanban.focus()
        await pilot.pause()
        assert "To do 10,000" in pilot.app.drawn
        assert "↓ 9,990 more" in pilot.app.drawn
        await pilot.press("G")
        await pilot.pause()
        assert "task 0/9999" in pilot.app.drawn
        assert "↑ 9,990" in pilot.app.drawn
        await pilot.press("pageup", "right", "left", "g")
        await pilot.pause()
        assert kanban.spot == Spot(0, 0)
        assert "task 0/0" in pilot.app.drawn


async def test_the_cursor_stays_on_its_card_wherever_that_goes(stage: Any) -> None:
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


async def test_headings_are_passed_over(stage: Any) -> None:
    kanban = Kanban()
    cards = column(0, 3).cards
    grouped = (
        CardView("# a", "", heading="S-1 one"), cards[0],
        CardView("# b", "above", heading="S-2 two"), *cards[1:],
    )  # fmt: skip
    async with stage(kanban, size=(100, 30)) as pilot:
        kanban.show(KanbanView((ColumnView("c", "To do", grouped, 3),)))
        kanban.focus()
        seen = []
        for key in ("j", "j", "j", "k", "k", "k", "G", "g"):
            await pilot.press(key)
            seen.append(kanban.spot.card)
        assert seen == [3, 4, 4, 3, 1, 1, 4, 1]
        assert "S-1 one" in pilot.app.drawn


async def test_clicks_and_the_wheel_move_and_open(stage: Any) -> None:
    kanban = Kanban()
    async with stage(kanban, size=(150, 42)) as pilot:
        kanban.show(board(2, 9, 0, 0, 0))
        kanban.focus()
        await pilot.pause()
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
