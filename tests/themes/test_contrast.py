"""Every word that is drawn stands out from what it is drawn on: WCAG 4.5:1, measured.

The widgets are drawn as a person sees them, and each segment of the picture is measured, whatever
rule or variable its colours came from.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.color import Color
from textual.containers import Horizontal, Vertical
from textual.theme import BUILTIN_THEMES

import themes
from widgets.bands.band_meter import BandMeter
from widgets.conversation import conversation
from widgets.conversation.conversation import Conversation
from widgets.forms.pick_list import PickList
from widgets.frame.footer import KeyBar
from widgets.frame.header import HeaderBar
from widgets.frame.timeline import Timeline
from widgets.prompt.completions import Completions
from widgets.prompt.prompt import Prompt
from widgets.proposals.proposal_panel import ProposalPanel
from widgets.views import (
    BandView,
    CacheView,
    CompletionView,
    FileDiffView,
    HeaderView,
    ItemView,
    KeyHintView,
    LineView,
    MeterView,
    ProposalView,
    QueueView,
    TurnView,
    WorkPaneView,
    WorkRowView,
)
from widgets.work.work_pane import WorkPane

pytestmark = pytest.mark.slow

LEAST = 4.5
NAMES = ("identity", "objectives", "capabilities", "situational", "exploration", "reserve")
TONES: tuple[Any, ...] = ("dim", "good", "bad", "warn", "accent")
MARKDOWN = """# Head

Words with **strong**, *em*, ~~gone~~ and `code`, a [link](https://x.example).

## Second

- item
  1. inner

> quoted

| a | b |
|---|---|
| 1 | 2 |

```python
@decorator
def f(x: int = 1) -> str:  # comment
    '''doc'''
    return f"{x!r}" if not None else 'y' + 0.5
class C(Base): ...
```

```diff
--- a/x
+++ b/x
@@ -1 +1 @@
- gone
+ come
```
"""
CODE = "import os\n\n\ndef f(x):\n    # comment\n    return 'text', 1, None\n"
HINTS = (KeyHintView("⏎", "approve", strong=True), KeyHintView("n", "narrow"))


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


def turns(start: str) -> list[TurnView]:
    lines = tuple(LineView("↳", f"{tone} line", tone, tone) for tone in TONES)
    return [
        TurnView(f"{start}w", "wave", "wave 7 · decide"),
        TurnView(f"{start}p", "person", "words"),
        TurnView(f"{start}n", "note", lines=lines),
        TurnView(f"{start}i", "agent", "cut", interrupted=True),
        TurnView(f"{start}e", "error", "what happened"),
        TurnView(f"{start}a", "agent", MARKDOWN, lines),
    ]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freeze the first round of turns: each kind is drawn both ways, with no widget to spare."""
    monkeypatch.setattr(conversation, "LIVE", len(turns("live")))


class Gallery(App[None]):
    """All widgets at once, each with everything that it can show."""

    CSS_PATH = themes.STYLESHEET
    CSS = """
    #left { width: 2fr; } #right { width: 3fr; } #far { width: 2fr; }
    #context { height: 30; } #action { height: 1fr; } WorkPane { height: 12; }
    """

    def __init__(self, theme: str) -> None:
        super().__init__()
        for each in themes.THEMES:
            self.register_theme(each)
        self.theme = theme

    def get_theme(self, theme_name: str) -> Any:
        return themes.find(theme_name) or super().get_theme(theme_name)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.fallbacks(self.current_theme)

    def compose(self) -> ComposeResult:
        yield HeaderBar()
        with Horizontal():
            with Vertical(id="left"):
                yield Conversation([*turns("frozen"), *turns("live")])
                yield Prompt(placeholder="say what to change", id="empty")
                yield Prompt(complete=lambda kind, prefix: [CompletionView("/a", "hint")] * 3)
            with Vertical(id="right"):
                yield ProposalPanel(id="context")
                yield ProposalPanel(id="action")
            with Vertical(id="far"):
                yield BandMeter()
                yield WorkPane()
                yield PickList("pick", [("k", "row", "hint"), ("l", "other", "hint")])
        yield Timeline()
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(HeaderBar).show(
            HeaderView("p", "b", "T-1", "review", 7, "decide", "m", 9, 1.0, 2, "waits")
        )
        self.query_one(KeyBar).show(HINTS)
        self.query_one(Timeline).show(3, 9, "wave 3")
        bands = tuple(BandView(name, 9_000, 1_000, 2_000, 9_000, 3, 2) for name in NAMES)
        self.query_one(BandMeter).show(
            MeterView(bands, 9, 10, "abcdef12", 3, 2, "profile", 3, CacheView(7, 2, 1, "$1.00"))
        )
        rows = tuple(WorkRowView(tone, "▶", tone, "title", "state", "detail") for tone in TONES)
        self.query_one(WorkPane).show(WorkPaneView("summary", rows))
        items = (*(ItemView(f"file:{name}", 10, name, "outline") for name in NAMES),)
        refused = ItemView("file:x", 1, "reserve", refused="outside", note="noted")
        context = ProposalView(
            "p",
            "context",
            "title",
            "low",
            "d",
            purpose="why",
            question="what",
            escalation="else",
            items=(*items, refused),
            left_s=9,
            revises="p0",
            changes=("now",),
        )
        panel = self.query_one("#context", ProposalPanel)
        panel.show(QueueView(context, 0, 2), HINTS)
        panel.narrowing = True
        action = ProposalView(
            "q",
            "action",
            "title",
            "high",
            "d",
            session="s",
            age_s=3,
            fields=(("argv", "gh"),),
            notes=("noted",),
            body="a\u200b",
            diffs=(FileDiffView("a.py", CODE, CODE.replace("text", "words") + "new = 1\n"),),
        )
        panel = self.query_one("#action", ProposalPanel)
        panel.show(QueueView(action, 1, 2), HINTS)


def decoration(text: str) -> bool:
    """Bars, rules, dots and hatches carry no words: their meaning is in numerals beside them."""
    return not any(char.isalnum() or char in "+-−✔✗?!▶●◇↳Δ⏎" for char in text)


def segments(app: App[None]) -> Iterator[Segment]:
    for strip in app.screen._compositor.render_strips():
        yield from strip


seen = cache(Color.from_rich_color)


def weak(app: App[None]) -> set[tuple[str, str, float]]:
    found = set()
    measured = 0
    for segment in segments(app):
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


def test_this_test_would_see_it() -> None:
    assert round(contrast(Color.parse("#777777"), Color.parse("#ffffff")), 2) == 4.48
    assert contrast(Color.parse("black"), Color.parse("white")) == 21


async def pictures(theme: str) -> set[tuple[str, str, float]]:
    app = Gallery(theme)
    found: set[tuple[str, str, float]] = set()
    async with app.run_test(size=(220, 100)) as pilot:
        await pilot.pause()
        await pilot.pause()
        while not all(worker.is_finished for worker in app.workers):
            await app.workers.wait_for_complete()
            await pilot.pause()
        await pilot.pause()
        assert "strong" in "".join(segment.text for segment in segments(app))
        found |= weak(app)
        last = list(app.query(Prompt))[-1]
        last.focus()
        await pilot.press("/", "a")
        await pilot.pause()
        assert any(each.open for each in app.query(Completions))
        found |= weak(app)
        await pilot.press("escape", "shift+left")
        found |= weak(app)
        for kind in (Conversation, BandMeter, WorkPane, ProposalPanel, PickList):
            app.query(kind).first().focus()
            await pilot.press("k")
            await pilot.pause()
            found |= weak(app)
        for panel in app.query(ProposalPanel):
            assert not panel.armed
            panel.armed = True
            panel.focus()
            await pilot.pause()
            found |= weak(app)
    return found


@pytest.mark.parametrize(
    "theme", [*(theme.name for theme in themes.THEMES), "gruvbox", "catppuccin-latte"]
)
async def test_text_stands_out(theme: str) -> None:
    assert not await pictures(theme)


MAPPED = [themes.find(name) for name in BUILTIN_THEMES if "ansi" not in name]


@pytest.mark.parametrize("theme", [*themes.THEMES, *MAPPED], ids=lambda theme: theme.name)
def test_every_tone_stands_out_on_every_ground(theme: Any) -> None:
    names = [
        name
        for name in theme.variables
        if name.startswith(("tone-", "band-", "risk-")) or name == "text-muted"
    ]
    grounds = [
        "cursor-background",
        "code-background",
        "diff-added-background",
        "diff-removed-background",
    ]
    backs = [theme.background, theme.surface, theme.panel, *(theme.variables[g] for g in grounds)]
    weakest = min(
        (contrast(Color.parse(theme.variables[name]), Color.parse(back)), name, back)
        for name in names
        for back in backs
    )
    assert weakest[0] >= LEAST, weakest


async def test_themes_of_textual_work_too() -> None:
    first, *others = BUILTIN_THEMES
    app = Gallery(first)
    async with app.run_test(size=(220, 60)) as pilot:
        await pilot.pause()
        for theme in others:
            app.theme = theme
            await pilot.pause()
            assert "strong" in "".join(segment.text for segment in segments(app))
            assert app.screen.styles.background == Color.parse(app.theme_variables["background"])


async def test_a_change_of_theme_recolours_the_screen() -> None:
    app = Gallery("cockpit-dark")
    async with app.run_test(size=(220, 60)) as pilot:
        await pilot.pause()
        app.theme = "cockpit-light"
        await pilot.pause()
        await pilot.pause()
        dark, light = (Color.parse(str(theme.background)).hex for theme in themes.THEMES[:2])
        backs = {
            Color.from_rich_color(segment.style.bgcolor).hex
            for segment in segments(app)
            if segment.style and segment.style.bgcolor
        }
        assert light in backs
        assert dark not in backs
