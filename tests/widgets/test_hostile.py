"""With any text in a view, no widget crashes or lets a control character reach the compositor."""

import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import screens
from examples import examples
from stage import staged
from widget_cases import WIDGETS

pytestmark = [pytest.mark.slow, pytest.mark.search]

SIZE = (70, 20)
SIZES = {(3, 2): "some words, **some** `code` 漢字漢字\n\n- and a list", (300, 3): ""}
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
}

MARKUP = ("# ", "- ", "> ", "```", "|", "|--|", "\n", "1. ", "[", "](", "**", "`", "words", "é漢🙂")


HOSTILE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
    "\u200b\u200e\u200f\u061c\ufeff\u2028\u2029]"
)
"""Controls but the line feed, directions, surrogates, and what takes no room."""


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


def choose_texts(dice: random.Random) -> list[str]:
    """Return each injection by itself where many examples are wanted, else a few texts that hold them all."""
    drawn = [
        "".join(dice.choices([*INJECTIONS.values(), *MARKUP], k=dice.randint(1, 12)))
        for _ in range(examples(1))
    ]
    if examples(1) > 1:
        return [*drawn, *(f"before {injection} after" for injection in INJECTIONS.values())]
    # One that takes in all that follows is last.
    last = INJECTIONS["unterminated"]
    rest = " and ".join(each for each in INJECTIONS.values() if each != last)
    return [f"{drawn[0]} {rest} and {last}"]


async def test_no_widget_lets_any_text_through_at_any_size():
    async with staged(size=SIZE) as pilot:
        for name in WIDGETS:
            for text in choose_texts(random.Random(name)):
                async with shown(pilot, name, text):
                    await look(pilot, f"{name}: {text}")
        for size, text in SIZES.items():
            await pilot.resize_terminal(*size)
            for name in WIDGETS:
                async with shown(pilot, name, text):
                    await look(pilot, f"{name} at {size}")
                    assert pilot.app.screen.size == size
                    assert len(pilot.app.screen._compositor.render_strips()) == size[1]
