"""The frame that all lists share: rows that change under a question, filters, the mouse, hostile text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from app_world import calm, settled, text_of, until, write
from msgspec import Struct
from msgspec.structs import replace

from cockpit.app.application import CockpitApp
from cockpit.app.screens.lists.list_screen import ListScreen
from widgets.text.detail import DetailRow, fields, quoted
from widgets.work.task_views import QueuedView
from widgets.work.two_line_list import TwoLineList

pytestmark = pytest.mark.slow

HOSTILE = "\x1b]0;owned\x07y accepts\u202e[bold red]{}\u200b"


class Thing(Struct, frozen=True):
    name: str
    text: str = "text"


class Things(ListScreen[Thing]):
    NAME = "Things"
    PANE = "trust"
    EMPTY = "No things yet."
    ENTER = ("accept",)
    QUESTIONS = {"accept": "accepts exactly this"}  # noqa: RUF012

    def __init__(self, host: Any, things: list[Thing]) -> None:
        super().__init__(host)
        self.things = things
        self.done: list[tuple[str, Thing]] = []

    async def read_rows(self) -> tuple[Sequence[Thing], Sequence[str]]:
        return list(self.things), ()

    def verbs(self, row: Thing) -> Mapping[str, str]:
        return {"accept": "accept", "suspend": "suspend"}

    async def do(self, verb: str, row: Thing) -> None:
        self.done.append((verb, row))

    def draw_row(self, row: Thing) -> QueuedView:
        return QueuedView(row.name, row.text)

    def draw_detail(self, row: Thing, detail: Any) -> Sequence[DetailRow]:
        return [*fields([("says", row.text)]), *quoted("whole", row.text)]


async def shown(pilot, things: list[Thing]) -> Things:
    await settled(pilot)
    screen = Things(pilot.app, things)
    await pilot.app.open_screen(screen)
    await until(pilot, lambda: len(screen.rows) == len(things))
    return screen


async def reread(pilot, screen: Things, things: list[Thing]) -> None:
    screen.things[:] = things
    screen.read_again()
    await until(pilot, lambda: list(screen.rows) == things and not screen._reading)


async def test_what_changes_under_a_question_is_not_answered(still):
    app = CockpitApp(still)
    async with app.run_test(size=(100, 30)) as pilot:
        things = [Thing("a"), Thing("b")]
        screen = await shown(pilot, things)
        await pilot.press("enter")
        await until(pilot, lambda: screen._question is not None)
        await reread(pilot, screen, [Thing("a", "another text"), Thing("b")])
        assert screen._question is None, "it is not what was shown with the question"
        await pilot.press("y")
        assert screen.done == []
        await pilot.press("enter", "escape")
        assert app.screen is screen, "Escape takes the question back first"
        await pilot.press("enter", "y")
        await until(pilot, lambda: screen.done == [("accept", Thing("a", "another text"))])

        # The mouse does all of it: a row, the footer's verb, its second key.
        await pilot.click(TwoLineList, offset=(5, 2))
        assert screen.row == Thing("b")
        await pilot.click("KeyBar", offset=(2, 0))
        await until(pilot, lambda: screen._question is not None)
        await pilot.click("KeyBar", offset=(2, 0))
        await until(pilot, lambda: screen.done[1:] == [("accept", Thing("b"))])

        # The palette has the verbs of the row, and the lists that one can turn to.
        offered = {action.id for action in screen.valid_actions()}
        assert {"trust_accept", "trust_suspend", "skills", "tools"} <= offered
        assert "trust_revoke" not in offered

        # The row under the cursor goes; nothing is left; rows come again.
        await reread(pilot, screen, [Thing("a")])
        assert screen.row == Thing("a")
        await reread(pilot, screen, [])
        assert screen.row is None
        assert screen._detail.plain == ""
        await pilot.press("enter", "y", "s", "J", "K", "end")
        assert "No things yet" in screen.body.empty
        assert len(screen.done) == 2


async def test_ten_thousand_rows_a_filter_and_hostile_text(still):
    app = CockpitApp(still)
    async with app.run_test(size=(80, 24)) as pilot:
        things = [Thing(f"thing-{number}") for number in range(9_999)]
        long = "y accepts exactly this, any other key does not " * 20
        things.append(Thing(HOSTILE, f"{HOSTILE}\n{long}\nend"))
        screen = await shown(pilot, things)
        await pilot.press("end")
        await until(pilot, lambda: "end" in screen._detail.plain)
        for size in ((80, 24), (160, 45), (30, 8)):
            await pilot.resize_terminal(*size)
            await calm(pilot)
            lines = screen._detail.plain.splitlines()
            assert lines[0].startswith("says")
            # Nobody else's line begins where cockpit's own do.
            assert {line[:2] for line in lines} <= {"sa", "  ", "wh", "│ "}, lines
            assert not set("\x1b\x07\u202e\u200b") & set(screen._detail.plain)
        await pilot.press("slash")
        await write(pilot, "9998")
        await until(pilot, lambda: len(screen.body.rows) == 1)
        assert "1 of 10,000 listed" in screen.head()[1][-1][0]
        await pilot.press("enter")
        await until(pilot, lambda: screen.row == things[9_998])
        await reread(pilot, screen, [replace(things[9_998], text="new"), *things[:10]])
        assert screen.row == Thing("thing-9998", "new"), "the filter stays"
        await pilot.press("escape")
        await until(pilot, lambda: screen.filter == "" and len(screen.body.rows) == 11)


async def test_nothing_is_accepted_that_was_not_on_the_screen(still):
    """A detail below the fold is read to its end first; scrolling leaves the question open."""
    text = "\n".join(f"line {number}" for number in range(120))
    app = CockpitApp(still)
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await shown(pilot, [Thing("a", text), Thing("b")])
        await pilot.press("enter")
        await until(pilot, lambda: screen._question is not None)
        await until(pilot, lambda: "read on" in drawn_keys(screen))
        await pilot.press("y")
        await until(pilot, lambda: screen._detail.scroll_offset.y > 0)
        assert screen.done == [], "the rest was never on the screen"
        await pilot.press("J", "K")
        assert screen._question is not None
        for _ in range(40):
            if "read on" not in drawn_keys(screen):
                break
            assert screen.done == []
            await pilot.press("y")
            await calm(pilot)
        assert "line 119" in text_of(app)
        assert screen.done == []
        await pilot.press("y")
        await until(pilot, lambda: len(screen.done) == 1)
        # To the end at once is not to have read it.
        await pilot.press("enter")
        screen._detail.scroll_end(animate=False)
        await calm(pilot)
        await pilot.press("y")
        await calm(pilot)
        assert len(screen.done) == 1
        await pilot.press("escape")
        await until(pilot, lambda: screen._question is None)


def drawn_keys(screen: Things) -> str:
    return " ".join(f"{hint.key} {hint.label}" for hint in screen.bar.hints)
