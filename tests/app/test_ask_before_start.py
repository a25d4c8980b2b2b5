"""The question before the cockpit opens: it scrolls, and no key typed before it answers it."""

from __future__ import annotations

import pytest
import screens
from textual.containers import VerticalScroll

from cockpit.app.ask_before_start import QuestionApp


def question(armed_after_s: float) -> QuestionApp:
    text = "\n".join(f"│ line {number} \x1b[31m" for number in range(200))
    return QuestionApp(
        "Load 2 files?", text, agree="trust exactly this", refuse="go on without",
        armed_after_s=armed_after_s,
    )  # fmt: skip


@pytest.mark.parametrize(("key", "answer"), [("y", True), ("n", False), ("escape", False)])
async def test_a_key_answers(key: str, answer: bool) -> None:
    app = question(0)
    async with app.run_test(size=(80, 20)) as pilot:
        await screens.rest(pilot)
        await pilot.press("enter", "pagedown")
        await screens.rest(pilot)
        assert app.query_one("#text", VerticalScroll).scroll_offset.y > 0
        await pilot.press(key)
        while app.is_running and app.return_value is None:
            await pilot.pause(0.01)  # a pilot waits for the widgets, and not for the app itself
    assert app.return_value is answer


async def test_keys_that_were_typed_before_are_no_answer() -> None:
    app = question(3_600)
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.press("y", "n", "escape", "y")
        assert app.is_running and app.return_value is None
        app.exit(False)
