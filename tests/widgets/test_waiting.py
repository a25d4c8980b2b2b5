"""What the pilots of tests wait for (``textual_idle``): whatever the app can do without time passing."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, ClassVar

import pytest
from textual.pilot import WaitForScreenTimeout
from textual.widgets import Static


class Busy(Static, can_focus=True):
    """Does things that take a thread, some steps, or a process when a key is pressed."""

    BINDINGS: ClassVar = [("t", "think"), ("s", "steps"), ("w", "wait")]

    def __init__(self) -> None:
        super().__init__("nothing")
        self.go_on = threading.Event()

    async def action_think(self) -> None:
        self.update(await asyncio.to_thread(lambda: "thought"))

    def action_steps(self, left: int = 30) -> None:
        self.update(f"{left} left")
        if left:
            self.call_after_refresh(self.action_steps, left - 1)

    async def action_wait(self) -> None:
        while not self.go_on.is_set():
            await asyncio.sleep(0.001)
        self.update("went on")


async def test_a_thread_is_waited_for(stage: Any) -> None:
    widget = Busy()
    async with stage(widget) as pilot:
        widget.focus()
        await pilot.press("t")
        await pilot.pause()
        assert "thought" in pilot.app.drawn


async def test_steps_that_each_wait_for_a_frame_are_waited_for(stage: Any) -> None:
    widget = Busy()
    async with stage(widget) as pilot:
        widget.focus()
        await pilot.press("s")
        await pilot.pause()
        assert "0 left" in pilot.app.drawn


async def test_a_widget_that_is_busy_is_waited_for(stage: Any) -> None:
    widget = Busy()
    async with stage(widget) as pilot:
        widget.focus()
        asyncio.get_running_loop().call_later(0.05, widget.go_on.set)
        await pilot.press("w")
        await pilot.pause()
        assert "went on" in pilot.app.drawn


async def test_a_widget_that_never_rests_is_told_of(stage: Any) -> None:
    widget = Busy()
    async with stage(widget) as pilot:
        widget.focus()
        widget.call_later(widget.action_wait)
        with pytest.raises(WaitForScreenTimeout, match="Busy"):
            await pilot._wait_for_screen(timeout=0.01)
        widget.go_on.set()


async def test_a_new_size_is_laid_out_at_once(stage: Any) -> None:
    async with stage(Static("words")) as pilot:
        await pilot.resize_terminal(30, 7)
        assert len(pilot.app.rows) == 7
