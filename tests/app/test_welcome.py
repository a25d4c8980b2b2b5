"""The text before the first session: it says what is there, and tells of nothing that is not."""

from __future__ import annotations

import pytest

from cockpit.app.projection.welcome import build_welcome
from cockpit.loop.external_agents import AgentEntry
from widgets.text.detail import wrap_row
from widgets.views import WorkPaneView, WorkRowView

NOTHING = WorkPaneView()
LAST = WorkPaneView(
    summary="1 session", rows=(WorkRowView("s-1", "?", "accent", "fix\x1b[2J it", "waits"),)
)


def text(rows, width: int = 70) -> str:
    return "\n".join(piece.plain for row in rows for piece in wrap_row(row, width))


@pytest.mark.parametrize(
    ("model", "agents", "says", "says_not"),
    [
        ("", None, ["Model    …", "Agents   …"], ["none"]),
        ("offline rules", (), ["none: rules", "ANTHROPIC_API_KEY", "none installed"], ["explain"]),
        ("offline rules", ("Codex",), ["Codex", "/agent"], ["none installed"]),
        ("anthropic:x", (), ["anthropic:x", "explain", "/plan"], ["API_KEY"]),
        ("anthropic:x", tuple("abcdefg"), ["a, b, c, d and 3 more"], []),
    ],
)
def test_what_is_there(model, agents, says, says_not):
    shown = text(build_welcome(model, agents, NOTHING, 0))
    for words in ("You decide", "Try", "wave", *says):
        assert words in shown
    for words in says_not:
        assert words not in shown


@pytest.mark.parametrize(
    ("is_installed", "says"),
    [(True, "Claude Code has each new session"), (False, "Claude Code is not installed")],
)
def test_an_agent_has_new_sessions(is_installed, says):
    agent = AgentEntry("claude", "Claude Code", is_installed, True)
    shown = text(build_welcome("anthropic:x", ("Codex",), NOTHING, 0, agent))
    assert says in shown and "anthropic" not in shown and "/plan" not in shown


def test_sessions_stand_in_place_of_the_words():
    shown = text(build_welcome("anthropic:x", (), LAST, 2))
    assert "2 proposals wait" in shown and "1 session" in shown
    assert "one round of a task" not in shown


def test_foreign_text_is_clean():
    assert "\x1b" not in text(build_welcome("script:\x1b[2J", ("\x1b]0;x\x07",), LAST, 0))


@pytest.mark.parametrize("width", [12, 30, 44, 76, 120])
def test_every_line_fits(width):
    rows = build_welcome("offline rules", ("Claude Code",), LAST, 1)
    assert all(
        piece.cell_length <= max(width, 18) for row in rows for piece in wrap_row(row, width)
    )
