"""Every word that is drawn stands out from what it is drawn on: WCAG 4.5:1, measured.

The widgets are drawn as a user sees them, and each segment of the picture is measured, whatever
rule or variable its colours came from.
"""

from functools import cache

import pytest
from gallery import Gallery
from rich.segment import Segment
from screens import rest
from textual.app import App
from textual.color import Color
from textual.theme import BUILTIN_THEMES

import themes
from widgets.conversation.conversation import Conversation
from widgets.forms.form import Form
from widgets.prompt.completions import Completions
from widgets.prompt.prompt import Prompt
from widgets.proposals.proposal_panel import ProposalPanel
from widgets.work.kanban import Kanban
from widgets.work.work_pane import WorkPane

pytestmark = pytest.mark.slow

LEAST = 4.5
FOCUSED = (Conversation, WorkPane, ProposalPanel, Kanban, Form)


@cache
def luminance(color: Color) -> float:
    def linear(value: int) -> float:
        part = value / 255
        return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)

    return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b)


@cache
def contrast(one: Color, other: Color) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def decoration(text: str) -> bool:
    """Bars, rules, dots and hatches carry no words: their meaning is in numerals beside them."""
    return not any(char.isalnum() or char in "+-−✔✗?!▶●◇↳Δ⏎" for char in text)


def segments(app: App[None]) -> list[Segment]:
    return [each for strip in app.screen._compositor.render_strips() for each in strip]


seen = cache(Color.from_rich_color)


def weak(drawn: list[Segment]) -> set[tuple[str, str, float]]:
    found = set()
    measured = 0
    for segment in drawn:
        style = segment.style
        if style is None or decoration(segment.text) or not style.color or not style.bgcolor:
            continue
        front, back = seen(style.color), seen(style.bgcolor)
        if style.reverse:
            front, back = back, front
        assert not style.dim
        measured += 1
        ratio = contrast(front, back)
        if ratio < LEAST:
            found.add((segment.text.strip(), f"{front.hex} on {back.hex}", round(ratio, 2)))
    assert measured > 300
    return found


async def test_text_stands_out_in_every_theme() -> None:
    """A change of theme recolours all that is drawn."""
    names = [theme.name for theme in themes.THEMES]
    app = Gallery(names[0])
    async with app.run_test(size=(330, 100)) as pilot:
        # One of both panels can be decided, and one cannot yet.
        app.query_one("#context", ProposalPanel).armed = True
        list(app.query(Prompt))[-1].focus()
        await pilot.press("/", "a")
        for name in names:
            app.theme = name
            await rest(pilot)
            assert any(each.open for each in app.query(Completions))
            drawn = segments(app)
            assert "strong" in "".join(segment.text for segment in drawn)
            assert app.screen.styles.background == Color.parse(app.theme_variables["background"])
            assert weak(drawn) == set(), name
        app.theme = names[0]
        for kind in FOCUSED:
            app.query(kind).first().focus()
            await pilot.press("k")
            await rest(pilot)
            assert weak(segments(app)) == set(), kind


def test_every_tone_stands_out_on_every_ground() -> None:
    grounds = ("cursor", "code", "diff-added", "diff-removed")
    mapped = [themes.find(name) for name in BUILTIN_THEMES if "ansi" not in name]
    for theme in (*themes.THEMES, *filter(None, mapped)):
        tones = [name for name in theme.variables if name.startswith(("tone-", "band-", "risk-"))]
        backs = [theme.background, theme.surface, theme.panel]
        backs += [theme.variables[f"{name}-background"] for name in grounds]
        weakest = min(
            (contrast(Color.parse(theme.variables[name]), Color.parse(back)), name, back)
            for name in (*tones, "text-muted")
            for back in backs
        )
        assert weakest[0] >= LEAST, (theme.name, weakest)
