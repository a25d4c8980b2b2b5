"""The one-line widgets: header, key bar, timeline."""

import pytest
from stage import settle

from widgets.frame.footer import KeyBar
from widgets.frame.header import HeaderBar
from widgets.frame.timeline import Timeline
from widgets.views import HeaderView, KeyHintView

pytestmark = pytest.mark.slow

VIEW = HeaderView(
    project="acme/api",
    branch="fix-login",
    task="T-42",
    task_type="review_pr",
    wave=7,
    phase="decide",
    model="sonnet",
    tokens=41_200,
    cost_usd=0.12,
    pending=2,
    state="waits for you",
)
HINTS = (
    KeyHintView("⏎", "approve", strong=True),
    KeyHintView("esc", "discuss", strong=True),
    KeyHintView("^p", "palette"),
    KeyHintView("f1", "help"),
)


ENDED = HeaderView(project="p", wave=3, phase="done", state="blocked", end_sign="■", end_tone="bad")
AGENT = HeaderView(
    project="acme/api", task="fix it", task_type="agent", agent="claude", turn=3, model="Sonnet",
    wave=2, phase="done", mode="Plan", context="19%", cost_usd=0.5, state="running",
)  # fmt: skip
WIDE = (
    *("acme/api ▸ fix-login", "T-42 review_pr", "wave 7", "DECIDE", "waits for you"),
    *("observe › orient › decide › act › learn", "sonnet 41.2k tok  $0.12", "● 2"),
)
OF_AGENT = ("claude", "turn 3", "running")
HEADERS = (
    (200, VIEW, WIDE, ()),
    (120, VIEW, ("acme/api", "DECIDE", "● 2"), ("observe ›",)),
    (60, VIEW, ("acme/api", "DECIDE", "● 2"), ("observe ›",)),
    # "✔ DONE" of the last wave beside "blocked" of the session would be two answers.
    (160, ENDED, ("■ BLOCKED",), ("DONE", "blocked")),
    (80, ENDED, ("■ BLOCKED",), ("DONE", "blocked")),
    # An agent's session has turns and no waves.
    (160, AGENT, (*OF_AGENT, "Sonnet · Plan", "context 19%", "$0.50"), ("wave", "observe", "DONE")),
    (80, AGENT, OF_AGENT, ("wave", "observe", "DONE")),
)


async def test_the_header_says_everything_or_what_waits(stage):
    async with stage(HeaderBar(), size=(200, 4)) as pilot:
        for width, view, words, not_there in HEADERS:
            await pilot.resize_terminal(width, 4)
            pilot.app.query_one(HeaderBar).show(view)
            await settle(pilot)
            drawn = pilot.app.rows[0]
            assert len(drawn) <= width
            assert [each for each in words if each not in drawn] == [], (width, drawn)
            assert [each for each in not_there if each in drawn] == [], (width, drawn)


async def test_the_key_bar_leaves_out_whole_hints(stage):
    whole = "   ".join(f"{hint.key} {hint.label}" for hint in HINTS)
    async with stage(KeyBar(), size=(4, 2)) as pilot:
        pilot.app.query_one(KeyBar).show(HINTS)
        for width in (4, 20, 35, 59):
            await pilot.resize_terminal(width, 2)
            await settle(pilot)
            assert pilot.app.screen.size.width == width
            drawn = pilot.app.rows[0].strip()
            assert drawn == whole or (drawn.endswith("…") and whole.startswith(drawn[:-1].rstrip()))
            if drawn != whole:
                kept = [hint for hint in HINTS if f"{hint.key} {hint.label}" in drawn]
                expected = [f"{hint.key} {hint.label}" for hint in kept]
                assert drawn == "   ".join([*expected, "…"])
                assert list(HINTS[: len(kept)]) == kept


async def test_the_scrubber_moves_by_keys(stage):
    bar = Timeline()
    async with stage(bar) as pilot:
        bar.show(40, 130, "wave 3 · seq 40")
        bar.focus()
        await pilot.press("right", "left", "left", "pagedown", "end", "right", "home", "left")
        moved = [each.position for each in pilot.app.got(Timeline.Moved)]
        assert moved == [41, 40, 39, 52, 130, 0]
