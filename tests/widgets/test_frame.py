"""The one-line widgets: header, key bar, timeline."""

from typing import Any

import pytest

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


async def header(stage: Any, width: int, view: HeaderView = VIEW) -> str:
    async with stage(HeaderBar(), size=(width, 4)) as pilot:
        pilot.app.query_one(HeaderBar).show(view)
        await pilot.pause()
        return pilot.app.rows[0]


async def test_a_wide_header_says_everything(stage):
    drawn = await header(stage, 200)
    for words in (
        "acme/api ▸ fix-login",
        "T-42 review_pr",
        "wave 7",
        "DECIDE",
        "observe › orient › decide › act › learn",
        "waits for you",
        "sonnet 41.2k tok  $0.12",
        "● 2",
    ):
        assert words in drawn


async def test_a_narrow_header_keeps_what_waits(stage):
    for width in (120, 60):
        drawn = await header(stage, width)
        assert len(drawn) <= width
        assert all(word in drawn for word in ("acme/api", "DECIDE", "● 2"))
        assert "observe ›" not in drawn


async def test_the_end_of_a_session_stands_in_the_place_of_the_phase(stage):
    """ "✔ DONE" of the last wave beside "blocked" of the session would be two answers."""
    view = HeaderView(
        project="p", wave=3, phase="done", state="blocked", end_sign="■", end_tone="bad"
    )
    for width in (160, 80):
        drawn = await header(stage, width, view)
        assert "■ BLOCKED" in drawn
        assert "DONE" not in drawn
        assert "blocked" not in drawn


async def test_the_key_bar_leaves_out_whole_hints(stage):
    whole = "   ".join(f"{hint.key} {hint.label}" for hint in HINTS)
    async with stage(KeyBar(), size=(4, 2)) as pilot:
        pilot.app.query_one(KeyBar).show(HINTS)
        for width in (4, 20, 35, 59):
            await pilot.resize_terminal(width, 2)
            await pilot.pause()
            assert pilot.app.screen.size.width == width
            drawn = pilot.app.rows[0].strip()
            assert drawn == whole or (drawn.endswith("…") and whole.startswith(drawn[:-1].rstrip()))
            if drawn != whole:
                kept = [hint for hint in HINTS if f"{hint.key} {hint.label}" in drawn]
                expected = [f"{hint.key} {hint.label}" for hint in kept]
                assert drawn == "   ".join([*expected, "…"])
                assert list(HINTS[: len(kept)]) == kept


@pytest.mark.parametrize("width", [160, 80])
async def test_an_agent_s_session_has_turns_and_no_waves(stage, width):
    view = HeaderView(
        project="acme/api", task="fix it", task_type="agent", agent="claude", turn=3, model="Sonnet",
        wave=2, phase="done", mode="Plan", context="19%", cost_usd=0.5, state="running",
    )  # fmt: skip
    drawn = await header(stage, width, view)
    assert "claude" in drawn and "turn 3" in drawn and "running" in drawn
    assert "wave" not in drawn and "observe" not in drawn and "DONE" not in drawn
    if width > 100:
        assert "Sonnet · Plan" in drawn and "context 19%" in drawn and "$0.50" in drawn


async def test_the_scrubber_moves_by_keys(stage):
    bar = Timeline()
    async with stage(bar) as pilot:
        bar.show(40, 130, "wave 3 · seq 40")
        bar.focus()
        await pilot.press("right", "left", "left", "pagedown", "end", "right", "home", "left")
        moved = [each.position for each in pilot.app.got(Timeline.Moved)]
        assert moved == [41, 40, 39, 52, 130, 0]
