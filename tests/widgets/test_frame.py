"""The one-line widgets: header, key bar, timeline."""

from typing import Any

import msgspec
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


async def test_a_wide_header_says_everything(stage: Any) -> None:
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


@pytest.mark.parametrize("width", [300, 200, 150, 120, 100, 80, 60])
async def test_the_header_fits_and_keeps_what_waits(stage: Any, width: int) -> None:
    drawn = await header(stage, width)
    assert len(drawn) <= width
    assert "acme/api" in drawn
    assert "DECIDE" in drawn
    assert "● 2" in drawn


async def test_the_strip_goes_before_the_spend(stage: Any) -> None:
    drawn = await header(stage, 120)
    assert "observe ›" not in drawn
    assert "$0.12" in drawn


@pytest.mark.parametrize(("phase", "sign"), [("done", "✔ DONE"), ("failed", "✗ FAILED")])
async def test_an_end_has_a_sign(stage: Any, phase: Any, sign: str) -> None:
    view = HeaderView(project="p", wave=1, phase=phase)
    assert sign in await header(stage, 80, view)


async def test_the_end_of_a_session_stands_in_the_place_of_the_phase(stage: Any) -> None:
    """ "✔ DONE" of the last wave beside "blocked" of the session would be two answers."""
    view = HeaderView(
        project="p", wave=3, phase="done", state="blocked", end_sign="■", end_tone="bad"
    )
    for width in (160, 80):
        drawn = await header(stage, width, view)
        assert "■ BLOCKED" in drawn
        assert "DONE" not in drawn
        assert "blocked" not in drawn


async def test_the_likely_number_of_waves_stands_behind_the_wave_until_it_is_passed(
    stage: Any,
) -> None:
    likely = msgspec.structs.replace(VIEW, of_waves=9)
    assert "wave 7 of ~9" in await header(stage, 200, likely)
    assert "of ~9" not in await header(stage, 60, likely), "it goes before what matters more"
    passed = msgspec.structs.replace(VIEW, of_waves=6)
    assert " of ~" not in await header(stage, 200, passed)


async def test_the_key_bar_leaves_out_whole_hints(stage: Any) -> None:
    whole = "   ".join(f"{hint.key} {hint.label}" for hint in HINTS)
    async with stage(KeyBar(), size=(4, 2)) as pilot:
        pilot.app.query_one(KeyBar).show(HINTS)
        for width in range(4, 60):
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


async def test_the_scrubber_moves_by_keys(stage: Any) -> None:
    bar = Timeline()
    async with stage(bar) as pilot:
        bar.show(40, 130, "wave 3 · seq 40")
        bar.focus()
        await pilot.pause()
        assert "40 / 130" in pilot.app.rows[0]
        assert "wave 3 · seq 40" in pilot.app.rows[0]
        for key in ("right", "left", "left", "pagedown", "end", "right", "home", "left"):
            await pilot.press(key)
        moved = [each.position for each in pilot.app.got(Timeline.Moved)]
        assert moved == [41, 40, 39, 52, 130, 0]


async def test_the_scrubber_moves_by_click(stage: Any) -> None:
    bar = Timeline()
    async with stage(bar) as pilot:
        bar.show(0, 100)
        await pilot.pause()
        rail = pilot.app.rows[0]
        await pilot.click(bar, offset=(len(rail) - len(rail.split("▸")[1]) - 3, 0))
        assert pilot.app.got(Timeline.Moved)[-1].position == 100


async def test_an_empty_replay_is_drawn(stage: Any) -> None:
    bar = Timeline()
    async with stage(bar) as pilot:
        bar.focus()
        await pilot.press("right", "end", "pagedown")
        assert "0 / 0" in pilot.app.rows[0]
        assert not pilot.app.got(Timeline.Moved)


@pytest.mark.parametrize("width", [160, 100, 80])
async def test_an_agent_s_session_has_turns_and_no_waves(stage: Any, width: int) -> None:
    view = HeaderView(
        project="acme/api", task="fix it", task_type="agent", agent="claude", turn=3, model="Sonnet",
        wave=2, phase="done", mode="Plan", context="19%", cost_usd=0.5, state="running",
    )  # fmt: skip
    drawn = await header(stage, width, view)
    assert "claude" in drawn and "turn 3" in drawn and "running" in drawn
    assert "wave" not in drawn and "observe" not in drawn and "DONE" not in drawn
    if width > 100:
        assert "Sonnet · Plan" in drawn and "context 19%" in drawn and "$0.50" in drawn
