"""Tool calls of an external agent in the conversation: harmless, and folded until they are asked for."""

from __future__ import annotations

import pytest

from widgets.conversation.conversation import Conversation
from widgets.conversation.live_turn import Card
from widgets.conversation.static_turns import draw, stands_close
from widgets.views import LineView, TurnView

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


async def test_what_an_agent_does_stands_together_live_and_as_history(stage) -> None:
    """Blank lines are between messages, and none between the calls of one stretch of work."""
    async with stage(Conversation(_turns()), size=(60, 60)) as pilot:
        await pilot.pause()
        live = [int(each.styles.margin.top) for each in pilot.app.query(Card)]
        assert pilot.app.query(Card)
    rows = {turn.key: draw(turn, 60, close=close) for turn, close in _closes()}
    apart = [not rows[str(place)][0].plain.strip() for place in range(len(ROLES))]
    assert apart == list(APART)
    assert live == [int(each) for each, role in zip(APART, ROLES, strict=True) if role != "agent"]


def _closes() -> list[tuple[TurnView, bool]]:
    turns = _turns()
    return [
        (turn, stands_close(turn, turns[place - 1] if place else None))
        for place, turn in enumerate(turns)
    ]
