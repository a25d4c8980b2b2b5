"""Picking from a list by typing and by arrows."""

from typing import Any

from widgets.forms.pick_list import PickList, mark_current

ROWS = [
    ("a", "review pr 24", "2 h ago"),
    ("b", "fix login", "yesterday"),
    ("c", "fix logout", "yesterday"),
]


async def test_it_lists_rows_with_hints(stage: Any) -> None:
    async with stage(PickList("Resume a session", ROWS)) as pilot:
        text = pilot.app.drawn
        assert "Resume a session" in text
        assert all(title in text and hint in text for _, title, hint in ROWS)


async def test_arrows_and_enter_pick(stage: Any) -> None:
    async with stage(PickList("p", ROWS)) as pilot:
        await pilot.press("down", "down", "up", "enter")
        assert [each.key for each in pilot.app.got(PickList.Picked)] == ["b"]


async def test_typing_filters_by_words_in_any_order(stage: Any) -> None:
    async with stage(PickList("p", ROWS)) as pilot:
        await pilot.press(*"OUT fix")
        assert "fix logout" in pilot.app.drawn
        assert "fix login" not in pilot.app.drawn
        await pilot.press("enter")
        assert [each.key for each in pilot.app.got(PickList.Picked)] == ["c"]


async def test_nothing_found_picks_nothing(stage: Any) -> None:
    async with stage(PickList("p", ROWS)) as pilot:
        await pilot.press(*"zzz", "down", "enter")
        assert "No row matches." in pilot.app.drawn
        assert not pilot.app.got(PickList.Picked)


async def test_the_current_row_is_marked(stage: Any) -> None:
    async with stage(PickList("p", mark_current(ROWS, "b"), first="b")) as pilot:
        marked = [row for row in pilot.app.rows if "now" in row]
        assert len(marked) == 1
        assert "fix login" in marked[0]
        assert "yesterday" in marked[0]
        await pilot.press("enter")
        assert [each.key for each in pilot.app.got(PickList.Picked)] == ["b"]


async def test_escape_leaves(stage: Any) -> None:
    async with stage(PickList("p", [], empty="No sessions yet.")) as pilot:
        assert "No sessions yet." in pilot.app.drawn
        await pilot.press("enter", "escape")
        assert len(pilot.app.got(PickList.Dismissed)) == 1
        assert not pilot.app.got(PickList.Picked)


async def test_a_click_picks(stage: Any) -> None:
    async with stage(PickList("p", ROWS)) as pilot:
        place = next(y for y, text in enumerate(pilot.app.rows) if "fix login" in text)
        await pilot.click(offset=(6, place))
        assert [each.key for each in pilot.app.got(PickList.Picked)] == ["b"]


async def test_new_rows_keep_the_filter(stage: Any) -> None:
    pick = PickList("p", ROWS)
    async with stage(pick) as pilot:
        await pilot.press(*"fix")
        pick.show([("d", "fix build", ""), ("e", "docs", "")])
        await pilot.pause()
        assert "fix build" in pilot.app.drawn
        assert "docs" not in pilot.app.drawn
