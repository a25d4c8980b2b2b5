"""With any text in a view, no widget crashes or lets a control character reach the compositor."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import screens
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from widget_cases import WIDGETS

from widgets.conversation import conversation

pytestmark = pytest.mark.slow

SIZE = (70, 20)
INJECTIONS = {
    "osc 52": "\x1b]52;c;cm0gLXJm\x07",
    "osc 8": "\x1b]8;;http://evil\x1b\\x\x1b]8;;\x1b\\",
    "osc 0": "\x1b]0;owned\x07",
    "csi": "\x1b[2J\x1b[31m",
    "dcs": "\x1bPq\x1b\\",
    "apc": "\x1b_Gx\x1b\\",
    "c1": "\x9b2J\x9d0;x\x9c\x85",
    "bidi": "\u202egnp.exe\u2066\u2069\u200f",
    "return": "safe\rEVIL",
    "nul": "a\x00b\x08\x08c",
    "markup": "[/] [bold [@click=app.bell]x[/] [link=http://x]y \\[ [[",
    "variables": "$primary $undefined {x} %s",
    "unterminated": "a\x1b]0;b",
    "wide": "漢字" * 30,
    "newlines": "one\ntwo\n\nthree",
    "surrogate": "\ud83d",
    "entities": "&#27;[31m &#x202e; &#155;",
    "nothing": "",
    "space": "   ",
}

PIECES = st.lists(
    st.one_of(
        st.sampled_from(list(INJECTIONS.values())),
        st.text(max_size=8),
        st.sampled_from(["# ", "- ", "> ", "```", "|", "|--|", "\n", "1. ", "[", "](", "**", "`"]),
    ),
    max_size=12,
).map("".join)


HOSTILE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
    "\u200b\u200e\u200f\u061c\ufeff\u2028\u2029]"
)
"""Controls but the line feed, directions, surrogates, and what takes no room."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep one live turn of each kind: a widget for each of four more only repeats the text."""
    monkeypatch.setattr(conversation, "LIVE", 5)


class OneStage:
    """One app for all texts; a new one after a text that ended it."""

    def __init__(self, stage: Callable[..., Any]) -> None:
        self._stage = stage
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._pilot: Any = None

    def run(self, checks: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
        """Run checks on the empty screen."""

        async def check_all() -> None:
            if self._pilot is None:
                self._pilot = await self._stack.enter_async_context(self._stage(size=SIZE))
            await checks(self._pilot)

        try:
            self._runner.run(check_all())
            self._pilot.app.posted.clear()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """End the app; what ended it before is raised."""
        self._pilot = None
        self._runner.run(self._stack.aclose())

    def close(self) -> None:
        """End the app and the event loop."""
        with self._runner:
            self.end()


@pytest.fixture(scope="module")
def one_stage(stage: Any) -> Iterator[OneStage]:
    shared = OneStage(stage)
    yield shared
    shared.close()


@asynccontextmanager
async def shown(pilot: Any, name: str, text: str) -> AsyncIterator[None]:
    """Put the widget with that text on the screen, alone."""
    app = pilot.app
    widget, fill = WIDGETS[name](text)
    await app.screen.mount(widget)
    app.screen.set_focus(next(iter(app.screen.focus_chain), None))
    fill()
    yield
    # Without a blur, which restyles all that goes away now.
    app.screen.focused = None
    await widget.remove()


async def look(pilot: Any, text: str) -> None:
    """Look at what is drawn."""
    app = pilot.app
    await screens.rest(pilot)
    assert app.is_running, text
    strips = app.screen._compositor.render_strips()
    assert not HOSTILE.findall("\n".join(strip.text for strip in strips)), text
    for strip in strips:
        for segment in strip:
            assert segment.control is None or not segment.control, text
            assert segment.style is None or segment.style.link is None, text
    svg = app.export_screenshot()
    assert not HOSTILE.findall(svg), text


async def check(pilot: Any, name: str, text: str) -> None:
    async with shown(pilot, name, text):
        await look(pilot, text)


@pytest.mark.parametrize("name", WIDGETS)
def test_no_widget_lets_an_injection_through(one_stage: OneStage, name: str) -> None:
    async def checks(pilot: Any) -> None:
        for injection in INJECTIONS.values():
            await check(pilot, name, f"before {injection} after")

    one_stage.run(checks)


@pytest.mark.parametrize("name", WIDGETS)
@settings(
    max_examples=examples(4),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(texts=st.lists(PIECES, min_size=2, max_size=6))
def test_no_widget_lets_any_text_through(one_stage: OneStage, name: str, texts: list[str]) -> None:
    async def checks(pilot: Any) -> None:
        for text in texts:
            await check(pilot, name, text)

    one_stage.run(checks)


@pytest.mark.parametrize("name", WIDGETS)
def test_every_widget_draws_at_every_size(one_stage: OneStage, name: str) -> None:
    text = "some words, **some** `code` 漢字漢字\n\n- and a list"

    async def checks(pilot: Any) -> None:
        async with shown(pilot, name, text):
            for size in [(1, 1), (2, 3), (5, 2), (9, 40), (20, 6), (300, 3)]:
                await pilot.resize_terminal(*size)
                await look(pilot, f"at {size}")
                assert pilot.app.screen.size == size
                assert len(pilot.app.screen._compositor.render_strips()) == size[1]
        await pilot.resize_terminal(*SIZE)

    one_stage.run(checks)
