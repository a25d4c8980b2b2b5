"""The conversation streams, freezes, scrolls and copies, and never jumps under a reader."""

from typing import Any

import pytest
import screens
from msgspec.structs import replace

from widgets.conversation import conversation, scrollback
from widgets.conversation.conversation import Conversation
from widgets.conversation.live_turn import LONG
from widgets.conversation.markdown import SafeMarkdown
from widgets.views import LineView, TurnView

pytestmark = pytest.mark.slow
LIVE = 6


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep fewer turns live than people see: each is a dozen widgets, and one more follows the same rules."""
    monkeypatch.setattr(conversation, "LIVE", LIVE)
    monkeypatch.setattr(conversation, "_LIVE_MOST", 40)


def turns(count: int, role: str = "agent") -> list[TurnView]:
    return [TurnView(f"t{n}", role, f"turn number {n}\n\nwords of {n}") for n in range(count)]


def live(pilot: Any) -> list[str]:
    return [each.source for each in pilot.app.query(SafeMarkdown)]


def grow(pane: Conversation, key: str, fragment: str) -> None:
    """Let the turn grow as a stream does: each later state has more text."""
    begun = TurnView(key, "agent", "", streaming=True)
    view = next((view for view in pane.turns if view.key == key), begun)
    pane.upsert(replace(view, text=view.text + fragment))


async def settled(pilot: Any) -> None:
    await screens.rest(pilot)


async def test_turns_are_drawn_by_role(stage: Any) -> None:
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


async def test_what_was_thought_is_folded_until_the_reader_unfolds_it(stage: Any) -> None:
    told = [
        TurnView("x", "thought", "so **this**\nis it", folded=True),
        TurnView("y", "thought", "", folded=True),
        TurnView("a", "agent", "Done."),
    ]
    # Old turns are lines, new ones are widgets: both fold.
    pane = Conversation([*told, *turns(LIVE), TurnView("z", "thought", "later words", folded=True)])
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


async def test_a_thought_is_drawn_above_the_answer_that_streams(stage: Any) -> None:
    pane = Conversation([*turns(LIVE + 1)])
    async with stage(pane, size=(60, 200)) as pilot:
        grow(pane, "answer", "The answer")
        thought = TurnView("t", "thought", "so this", folded=True, before="answer")
        pane.upsert(thought)
        grow(pane, "answer", " is here.")
        pane.upsert(TurnView("last", "note", "", before="none of these"))
        await settled(pilot)
        assert [view.key for view in pane.turns][-3:] == ["t", "answer", "last"]
        rows = pilot.app.drawn
        assert rows.index("▸ thought: 2 words") < rows.index("The answer is here.")
        pane.focus()
        await pilot.press("right")
        await settled(pilot)
        assert pilot.app.drawn.index("▾ thought") < pilot.app.drawn.index("The answer is here.")


async def test_fragments_stream_into_one_turn(stage: Any) -> None:
    pane = Conversation()
    async with stage(pane) as pilot:
        for fragment in (
            "Here is ",
            "code:\n\n``",
            "`python\nx",
            " = 1\n`",
            "``\n\nand **mo",
            "re**",
        ):
            grow(pane, "a", fragment)
            await pilot.pause()
        await settled(pilot)
        assert live(pilot) == ["Here is code:\n\n```python\nx = 1\n```\n\nand **more**"]
        assert "writing…" in pilot.app.drawn
        assert "and more" in pilot.app.drawn
        pane.upsert(TurnView("a", "agent", pane.turns[0].text))
        await settled(pilot)
        assert "writing…" not in pilot.app.drawn
        assert len(live(pilot)) == 1


async def test_streaming_draws_what_rendering_at_once_draws(stage: Any) -> None:
    source = (
        "# Head\n\ntext `code` and\nmore\n\n- a\n- b\n\n```py\nx = 1\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    streamed, whole = Conversation(), Conversation([TurnView("a", "agent", source)])
    async with stage(whole, size=(50, 40)) as pilot:
        await settled(pilot)
        expected = pilot.app.rows
    async with stage(streamed, size=(50, 40)) as pilot:
        for char in source:
            grow(streamed, "a", char)
            await pilot.pause()
        streamed.upsert(TurnView("a", "agent", source))
        await settled(pilot)
        assert pilot.app.rows == expected


async def test_a_grown_text_is_added_and_a_changed_one_replaces(stage: Any) -> None:
    pane = Conversation([TurnView("a", "agent", "one", streaming=True)])
    async with stage(pane) as pilot:
        await settled(pilot)
        before = pilot.app.query_one(SafeMarkdown)
        pane.upsert(TurnView("a", "agent", "one two", streaming=True))
        await settled(pilot)
        assert pilot.app.query_one(SafeMarkdown) is before
        assert before.source == "one two"
        pane.upsert(TurnView("a", "agent", "other"))
        await settled(pilot)
        assert live(pilot) == ["other"]
        assert "one two" not in pilot.app.drawn


async def test_a_sequence_split_over_fragments_is_not_drawn(stage: Any) -> None:
    pane = Conversation()
    async with stage(pane) as pilot:
        for fragment in ("safe \x1b", "]52;c;", "QUJD", "\x07", "text"):
            grow(pane, "a", fragment)
        await settled(pilot)
        assert live(pilot) == ["safe text"]


async def test_a_row_that_turns_into_a_fence_ends_its_table(stage: Any) -> None:
    pane = Conversation()
    async with stage(pane) as pilot:
        for fragment in ("| a |\n|---|\n| 1 |\n`", "``\ncode\n```\n"):
            grow(pane, "a", fragment)
            await settled(pilot)
        assert "code" in pilot.app.drawn
        assert "`" not in pilot.app.drawn


async def test_old_turns_freeze_and_stay_readable(stage: Any) -> None:
    pane = Conversation(turns(LIVE * 3))
    async with stage(pane) as pilot:
        await settled(pilot)
        assert len(live(pilot)) == LIVE
        assert f"words of {LIVE * 3 - 1}" in pilot.app.drawn
        pane.focus()
        await pilot.press("g")
        await settled(pilot)
        assert "turn number 0" in pilot.app.drawn


async def test_new_turns_freeze_old_ones(stage: Any) -> None:
    pane = Conversation()
    async with stage(pane) as pilot:
        for view in turns(LIVE + 15):
            pane.upsert(view)
            await pilot.pause()
        await settled(pilot)
        assert len(live(pilot)) == LIVE
        assert [view.key for view in pane.turns] == [f"t{n}" for n in range(LIVE + 15)]
        assert f"words of {LIVE + 14}" in pilot.app.drawn
        assert pane.following


async def test_scrolled_up_means_no_jump(stage: Any) -> None:
    pane = Conversation(turns(60))
    async with stage(pane) as pilot:
        pane.focus()
        await settled(pilot)
        await pilot.press("pageup", "pageup")
        await settled(pilot)
        inside = pilot.app.rows[1:-1]
        for number in range(30):
            pane.upsert(TurnView(f"new{number}", "agent", "later words"))
        await settled(pilot)
        assert [row[:70] for row in pilot.app.rows[1:-1]] == [row[:70] for row in inside]
        assert "↓ 30 new" in pilot.app.drawn
        await pilot.press("G")
        await settled(pilot)
        assert "later words" in pilot.app.drawn
        assert "new ─" not in pilot.app.rows[-1]


async def test_a_flood_of_turns_below_a_reader_freezes_without_a_jump(stage: Any) -> None:
    pane = Conversation(turns(60))
    async with stage(pane) as pilot:
        pane.focus()
        await settled(pilot)
        await pilot.press("pageup")
        await settled(pilot)
        seen = [row[:70] for row in pilot.app.rows[1:-1]]
        most = 0
        for number in range(80):
            pane.upsert(TurnView(f"new{number}", "agent", "later words"))
            if number % 5 == 0:
                await pilot.pause()
                most = max(most, len(live(pilot)))
        await settled(pilot)
        assert LIVE < most <= 45
        assert len(live(pilot)) < 45
        assert [row[:70] for row in pilot.app.rows[1:-1]] == seen


async def test_at_the_bottom_it_follows(stage: Any) -> None:
    pane = Conversation(turns(30))
    async with stage(pane) as pilot:
        await settled(pilot)
        for number in range(20):
            grow(pane, "s", f"line {number}\n\n")
            await pilot.pause()
        await settled(pilot)
        assert "line 19" in pilot.app.drawn
        assert pane.following


async def test_a_short_conversation_begins_at_the_top(stage: Any) -> None:
    pane = Conversation([TurnView("a", "person", "hello")])
    async with stage(pane) as pilot:
        await settled(pilot)
        assert "you" in pilot.app.rows[1]
        assert "hello" in pilot.app.rows[2]
        pane.show(turns(60))
        await settled(pilot)
        pane.show([TurnView("b", "person", "again")])
        await settled(pilot)
        assert "again" in pilot.app.rows[2]


async def test_older_turns_load_on_the_way_up(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrollback, "WINDOW", 100)
    pane = Conversation(turns(300, "person"))
    async with stage(pane) as pilot:
        pane.focus()
        await settled(pilot)
        seen: list[int] = []
        for _ in range(400):
            await pilot.press("pageup")
            await pilot.pause()
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


async def test_keys_move_over_blocks_and_copy(stage: Any) -> None:
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


async def test_the_first_move_marks_what_is_in_view(stage: Any) -> None:
    pane = Conversation(turns(60))
    async with stage(pane) as pilot:
        pane.focus()
        await settled(pilot)
        await pilot.press("pageup", "pageup", "pageup")
        await settled(pilot)
        top = pane.scroll_offset.y
        await pilot.press("k", "y")
        await settled(pilot)
        number = pilot.app.got(Conversation.Copied)[-1].text.split("\n")[0]
        assert number in pilot.app.drawn
        assert abs(pane.scroll_offset.y - top) <= 4


async def test_escape_leaves_the_blocks_first(stage: Any) -> None:
    pane = Conversation(turns(3))
    async with stage(pane) as pilot:
        pane.focus()
        await pilot.press("k")
        assert pane.check_action("unmark", ())
        await pilot.press("escape")
        assert not pane.check_action("unmark", ())


async def test_nothing_to_show_and_nothing_to_copy(stage: Any) -> None:
    pane = Conversation()
    async with stage(pane) as pilot:
        pane.focus()
        await pilot.press("j", "k", "g", "G", "y", "escape", "pageup")
        assert not pilot.app.got(Conversation.Copied)
        pane.show([])
        await pilot.pause()
        assert "Conversation" in pilot.app.drawn


async def test_a_frozen_turn_can_still_change(stage: Any) -> None:
    pane = Conversation(turns(60))
    async with stage(pane) as pilot:
        pane.focus()
        pane.upsert(TurnView("t0", "agent", "changed later"))
        grow(pane, "t1", " and more")
        await pilot.press("g")
        await settled(pilot)
        assert "changed later" in pilot.app.drawn
        assert "words of 1 and more" in pilot.app.drawn


async def test_a_very_long_answer_is_drawn_whole(stage: Any) -> None:
    pane = Conversation([TurnView("a", "agent", "word " * LONG + "the end")])
    async with stage(pane) as pilot:
        await settled(pilot)
        assert "the end" in pilot.app.drawn
        assert not live(pilot)


async def test_a_new_width_lays_everything_out_anew(stage: Any) -> None:
    pane = Conversation(turns(60))
    async with stage(pane) as pilot:
        await settled(pilot)
        await pilot.resize_terminal(30, 12)
        await settled(pilot)
        assert "words of 59" in pilot.app.drawn
        assert pane.following
        pane.focus()
        await pilot.press("g")
        await settled(pilot)
        assert "turn number 0" in pilot.app.drawn


async def test_the_newest_line_stays_above_the_output_of_a_command(stage: Any) -> None:
    pane = Conversation(turns(12))
    async with stage(pane, size=(40, 16)) as pilot:
        await settled(pilot)
        assert "words of 11" in pilot.app.drawn
        for count in range(1, 9):
            pane.show_live("run pytest", [f"output {each}" for each in range(count)])
            await settled(pilot)
            assert "words of 11" in pilot.app.drawn
            assert f"output {count - 1}" in pilot.app.drawn
        pane.show_live("", ())
        await settled(pilot)
        assert "words of 11" in pilot.app.drawn
        assert "output" not in pilot.app.drawn
        pane.show_live("run pytest", ["output 0"])
        await settled(pilot)
        pane.upsert(TurnView("new", "note", lines=(LineView("?", "approved by you"),)))
        pane.show_live("run pytest", ["output 0", "output 1", "output 2"])
        await settled(pilot)
        assert "approved by you" in pilot.app.drawn
