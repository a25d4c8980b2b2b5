"""Lines that are typed at a terminal: what was typed ahead of a question counts as typed before it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from cockpit.commands.sessions.typed_lines import Typed, TypedLines

Typing = tuple[int, TypedLines, "asyncio.Queue[Typed | None]"]


@pytest.fixture
async def typing() -> AsyncIterator[Typing]:
    """The keyboard's end of a terminal, the lines, and what is handed over."""
    keyboard, terminal = os.openpty()
    loop, handed = asyncio.get_running_loop(), asyncio.Queue[Typed | None]()
    yield keyboard, TypedLines(loop, handed.put_nowait, loop.time, terminal), handed
    os.close(terminal)


async def test_a_line_counts_before_a_question_whenever_the_thread_runs(typing: Typing):
    keyboard, lines, handed = typing
    os.write(keyboard, b"\nyes\nrest")
    # The thread has not come to run: it is not even started.
    lines.catch_up()
    asked_at = asyncio.get_running_loop().time()
    early = [await handed.get(), await handed.get()]
    assert [each.text for each in early if each] == ["", "yes"]
    assert all(each.at <= asked_at for each in early if each)
    assert handed.empty(), "a line without its Enter is not handed over"
    lines.start()
    os.write(keyboard, b" of it\n")
    late = await handed.get()
    assert late is not None
    assert (late.text, late.at > asked_at) == ("rest of it", True)
    os.close(keyboard)
    assert await handed.get() is None
    lines.catch_up()
    assert handed.empty(), "the end is said once"
