"""Tool calls of an external agent in the conversation: harmless, and folded until they are asked for."""

from __future__ import annotations

import pytest

from widgets.conversation.static_turns import draw
from widgets.views import LineView, TurnView

BAD = "\x1b[2Jx\x9b31m\u202ey\r\nz\x07[bold]\n@@ -1 +1 @@\n-\x1b]0;a\x07old\n+new"


@pytest.mark.parametrize("folded", [True, False])
def test_nothing_that_a_tool_says_is_drawn_raw(folded):
    rows = draw(TurnView("k", "tool", BAD, (LineView("✔", BAD, "good", BAD),), folded=folded), 40)
    text = "".join(row.plain for row in rows)
    assert not [each for each in text if each < " " or "\x7f" <= each < "\xa0"]
    assert "\u202e" not in text
    assert rows[0].plain.startswith("▸" if folded else "▾")
    assert any(row.plain == "    +new" for row in rows) is not folded
