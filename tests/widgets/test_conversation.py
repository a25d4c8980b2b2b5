"""The conversation streams, freezes, folds, scrolls and copies, and never jumps under a reader."""

from __future__ import annotations

from typing import Any

import pytest
import screens
from msgspec.structs import replace

from widgets.conversation import turn_list
from widgets.conversation.conversation import Conversation
from widgets.conversation.turn_lines import draw, stands_close
from widgets.views import LineView, TurnView

pytestmark = pytest.mark.slow


def turns(count: int, role: str = "agent") -> list[TurnView]:
    return [TurnView(f"t{n}", role, f"turn number {n}\n\nwords of {n}") for n in range(count)]


def grow(pane: Conversation, key: str, fragment: str) -> None:
    """Let the turn grow as a stream does: each later state has more text."""
    begun = TurnView(key, "agent", "", streaming=True)
    view = next((view for view in pane.turns if view.key == key), begun)
    pane.upsert(replace(view, text=view.text + fragment))


async def settled(pilot: Any) -> None:
    await screens.rest(pilot)


async def test_turns_are_drawn_by_role(stage):
    pane = Conversation(
        [
            TurnView("w", "wave", "wave 7 · decide"),
            TurnView("p", "person", "review **pr** 24"),
            TurnView("n", "note", lines=(LineView("◇", "packet 9f31c2", right="+3 facts"),)),
            TurnView("a", "agent", "I need **three** files", (LineView("↳", "asked", "good"),)),
            TurnView("e", "error", "rate limit"),
            TurnView("i", "agent", "cut short", interrupted=True),
        ]
    )
    async with stage(pane, size=(60, 30)) as pilot:
        await settled(pilot)
        text = pilot.app.drawn
        assert "─ wave 7 · decide ──" in text
        assert "review **pr** 24" in text  # a person's words are not Markdown
        assert "◇ packet 9f31c2" in text
        assert "+3 facts" in text
        assert "I need three files" in text
        assert "↳ asked" in text
        assert "✗ error" in text
        assert "interrupted" in text


async def test_what_was_thought_is_folded_until_the_reader_unfolds_it(stage):
    told = [
        TurnView("x", "thought", "so **this**\nis it", folded=True),
        TurnView("y", "thought", "", folded=True),
        TurnView("a", "agent", "Done."),
    ]
    pane = Conversation([*told, *turns(6), TurnView("z", "thought", "later words", folded=True)])
    async with stage(pane, size=(60, 200)) as pilot:
        await settled(pilot)
        assert "▸ thought: 4 words" in pilot.app.drawn
        assert "▸ thought, encrypted" in pilot.app.drawn
        assert "is it" not in pilot.app.drawn
        pane.focus()
        await pilot.press("right")
        await settled(pilot)
        assert "▾ thought: 4 words" in pilot.app.drawn
        assert "  so **this**" in pilot.app.drawn
        assert "later words" in pilot.app.drawn
        await pilot.press("j", "left")
        await settled(pilot)
        assert "later words" not in pilot.app.drawn
        assert "is it" in pilot.app.drawn


async def test_streaming_draws_what_rendering_at_once_draws(stage):
    source = (
        "# Head\n\ntext `code` and\n*more*\n\n- a\n- b\n\n```py\nx = 1\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | two |\n"
    )
    streamed, whole = Conversation(), Conversation([TurnView("a", "agent", source)])
    async with stage(whole, size=(50, 40)) as pilot:
        await settled(pilot)
        expected = pilot.app.rows
    async with stage(streamed, size=(50, 40)) as pilot:
        for start in range(0, len(source), 7):
            grow(streamed, "a", source[start : start + 7])
            await pilot.pause()
        await settled(pilot)
        assert "writing…" in pilot.app.drawn
        streamed.upsert(TurnView("a", "agent", source))
        await settled(pilot)
        assert "writing…" not in pilot.app.drawn
        assert pilot.app.rows == expected
        assert "a  b  " in pilot.app.drawn
        assert "1  two" in pilot.app.drawn
        # A changed text replaces the one that was drawn.
        streamed.upsert(TurnView("b", "agent", "one", streaming=True))
        streamed.upsert(TurnView("b", "agent", "other"))
        await settled(pilot)
        assert "other" in pilot.app.drawn
        assert "one" not in pilot.app.drawn


async def test_what_is_far_above_is_laid_out_no_more(stage, monkeypatch):
    monkeypatch.setattr(turn_list, "WINDOW", 10)
    pane = Conversation()
    async with stage(pane) as pilot:
        for view in turns(35):
            pane.upsert(view)
        await settled(pilot)
        assert [view.key for view in pane.turns] == [f"t{n}" for n in range(35)]
        assert "words of 34" in pilot.app.drawn
        assert pane.following
        assert pane.virtual_size.height < 20 * 5
        pane.focus()
        await pilot.press("g")
        await settled(pilot)
        assert "words of 0" in pilot.app.drawn


async def test_scrolled_up_means_no_jump(stage):
    pane = Conversation(turns(60))
    async with stage(pane) as pilot:
        pane.focus()
        await settled(pilot)
        await pilot.press("pageup", "pageup")
        await settled(pilot)
        inside = pilot.app.rows[1:-1]
        for number in range(9):
            pane.upsert(TurnView(f"new{number}", "agent", "later words"))
        await settled(pilot)
        assert [row[:70] for row in pilot.app.rows[1:-1]] == [row[:70] for row in inside]
        assert not pane.following
        assert "↓ 9 new" in pilot.app.drawn
        await pilot.press("G")
        await settled(pilot)
        assert "later words" in pilot.app.drawn
        assert "new ─" not in pilot.app.rows[-1]
        # An old turn can still change.
        pane.upsert(TurnView("t0", "agent", "changed later"))
        grow(pane, "t1", " and more")
        await pilot.press("g")
        await settled(pilot)
        assert "changed later" in pilot.app.drawn
        assert "words of 1 and more" in pilot.app.drawn


async def test_older_turns_load_on_the_way_up(stage, monkeypatch):
    monkeypatch.setattr(turn_list, "WINDOW", 30)
    pane = Conversation(turns(70, "person"))
    async with stage(pane) as pilot:
        pane.focus()
        await settled(pilot)
        seen: list[int] = []
        for _ in range(400):
            await pilot.press("pageup")
            await settled(pilot)
            numbers = [
                int(row.split("turn number ")[1].split()[0])
                for row in pilot.app.rows
                if "turn number " in row
            ]
            assert numbers == sorted(numbers)
            if seen:
                # Never a gap between what was seen and what is seen next.
                assert numbers[-1] >= seen[0] - 2
                assert numbers[0] <= seen[0]
            seen = numbers
            if seen[0] == 0:
                break
        assert seen[0] == 0


async def test_keys_move_over_blocks_and_copy(stage):
    hostile = "last \x1b[31mred"
    pane = Conversation([*turns(40), TurnView("z", "agent", hostile)])
    async with stage(pane) as pilot:
        pane.focus()
        await settled(pilot)
        await pilot.press("k", "y", "k", "y", "j", "j", "y")
        texts = [each.text for each in pilot.app.got(Conversation.Copied)]
        assert texts == [hostile, "turn number 39\n\nwords of 39", hostile]
        await pilot.press("g")
        await settled(pilot)
        await pilot.press("y")
        assert pilot.app.got(Conversation.Copied)[-1].text == "turn number 0\n\nwords of 0"
        await pilot.press(*["j"] * 5, "y")
        await settled(pilot)
        assert pilot.app.got(Conversation.Copied)[-1].text.startswith("turn number 5")
        assert "turn number 5" in pilot.app.drawn


BAD = "\x1b[2Jx\x9b31m\u202ey\r\nz\x07[bold]\n@@ -1 +1 @@\n-\x1b]0;a\x07old\n+new"


@pytest.mark.parametrize("folded", [True, False])
def test_nothing_that_a_tool_says_is_drawn_raw(folded):
    rows = draw(
        TurnView("k", "tool", BAD, (LineView("✔", BAD, "good", BAD),), folded=folded),
        40,
        close=True,
    )
    text = "".join(row.plain for row in rows)
    assert not [each for each in text if each < " " or "\x7f" <= each < "\xa0"]
    assert "\u202e" not in text
    assert rows[0].plain.startswith("▸" if folded else "▾")
    assert any(row.plain == "    +new" for row in rows) is not folded


ROLES = ("person", "thought", "tool", "tool", "thought", "tool", "agent", "tool", "note", "note")
APART = (False, True, False, False, False, False, True, True, True, True)


def _turns() -> list[TurnView]:
    lines = (LineView("✔", "did it"),)
    return [
        TurnView(str(place), role, "" if role == "note" else "x", lines)
        for place, role in enumerate(ROLES)
    ]


def test_what_an_agent_does_stands_together():
    """Blank lines are between messages, and none between the calls of one stretch of work."""
    rows = {turn.key: draw(turn, 60, close=close) for turn, close in _closes()}
    apart = [not rows[str(place)][0].plain.strip() for place in range(len(ROLES))]
    assert apart == list(APART)


def _closes() -> list[tuple[TurnView, bool]]:
    turns = _turns()
    return [
        (turn, stands_close(turn, turns[place - 1] if place else None))
        for place, turn in enumerate(turns)
    ]


async def test_the_newest_line_stays_above_the_output_of_a_command(stage):
    pane = Conversation(turns(12))
    async with stage(pane, size=(40, 16)) as pilot:
        for count in (1, 8):
            pane.show_live("run pytest", [f"output {each}" for each in range(count)])
            await settled(pilot)
            assert "words of 11" in pilot.app.drawn
            assert f"output {count - 1}" in pilot.app.drawn
        pane.show_live("", ())
        await settled(pilot)
        assert "output" not in pilot.app.drawn
