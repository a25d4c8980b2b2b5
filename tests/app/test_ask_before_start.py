"""The question before the cockpit opens: it scrolls, and no key typed before it answers it."""

from __future__ import annotations

import pytest
from textual.containers import VerticalScroll

from cockpit.app import ask_before_start
from cockpit.app.ask_before_start import QuestionApp


def question(monkeypatch: pytest.MonkeyPatch, armed_after_s: float) -> QuestionApp:
    monkeypatch.setattr(ask_before_start, "_ARMED_AFTER_S", armed_after_s)
    text = "\n".join(f"│ line {number} \x1b[31m" for number in range(200))
    return QuestionApp("Load 2 files?", text, agree="trust exactly this", refuse="go on without")


@pytest.mark.parametrize(("key", "answer"), [("y", True), ("n", False), ("escape", False)])
async def test_a_key_answers(monkeypatch: pytest.MonkeyPatch, key: str, answer: bool) -> None:
    app = question(monkeypatch, 0.001)
    async with app.run_test(size=(80, 20)) as pilot:
        while app._asked_at == float("inf"):
            await pilot.pause(0.01)
        await pilot.press("enter", "pagedown")
        assert app.query_one("#text", VerticalScroll).scroll_offset.y > 0
        await pilot.press(key)
        while app.is_running and app.return_value is None:
            await pilot.pause(0.01)  # a pilot waits for the widgets, and not for the app itself
    assert app.return_value is answer


async def test_keys_that_were_typed_before_are_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    app = question(monkeypatch, 3_600)
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.press("y", "n", "escape", "y")
        assert app.is_running and app.return_value is None
        app.exit(False)
