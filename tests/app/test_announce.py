"""The terminal's title and notes: only where they are known, and nothing foreign acts in them."""

from __future__ import annotations

import pytest
from textual.app import App

from cockpit.app.terminal.announce import has_title, note_sequence, title_sequence
from cockpit.app.terminal.terminal_app import TerminalApp


@pytest.mark.parametrize(
    ("environment", "note"),
    [
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "\x1b]9;cockpit: a;b waits\x07"),
        ({"TERM": "xterm-kitty"}, "\x1b]9;cockpit: a;b waits\x07"),
        ({"TERM": "foot"}, "\x1b]777;notify;cockpit;a,b waits\x07"),
        ({"TERM": "rxvt-unicode-256color"}, "\x1b]777;notify;cockpit;a,b waits\x07"),
        (
            {"TERM": "tmux-256color", "TMUX": "/tmp/x,1,0", "KITTY_WINDOW_ID": "1"},
            "\x1bPtmux;\x1b\x1b]9;cockpit: a;b waits\x07\x1b\\",
        ),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/x,1,0", "TERM_PROGRAM": "tmux"}, ""),
        ({"TERM": "xterm-256color"}, ""),
        ({"TERM": "linux"}, ""),
        ({}, ""),
    ],
)
def test_a_note_of_the_terminal(environment, note):
    assert note_sequence("a;b waits", environment) == note


def test_foreign_text_ends_no_sequence():
    hostile = "x\x07\x1b]52;c;aGk=\x07\x9b31m\u202e\ny" + "z" * 500
    for sequence in (title_sequence(hostile), note_sequence(hostile, {"TERM": "foot"})):
        assert sequence.startswith("\x1b]") and sequence.endswith("\x07")
        body = sequence[2:-1]
        assert body.isprintable() and "\u202e" not in body
        assert len(body) < 150


def test_foreign_text_ends_no_passage_through_tmux():
    hostile = "x\x1b\\\x1b]52;c;aGk=\x07y"
    sequence = note_sequence(hostile, {"TMUX": "1", "WEZTERM_PANE": "0"})
    assert sequence.startswith("\x1bPtmux;\x1b\x1b]9;")
    assert sequence.endswith("\x07\x1b\\")
    assert sequence[len("\x1bPtmux;\x1b\x1b]9;") : -3].isprintable()


@pytest.mark.parametrize("rings", [True, False])
def test_the_bell_rings_unless_the_user_said_no(monkeypatch, rings):
    rung = []
    monkeypatch.setattr(App, "bell", lambda app: rung.append(app))
    app = TerminalApp()
    app.rings_bell = rings
    app.bell()
    assert len(rung) == rings


def test_a_console_without_a_title_gets_none():
    assert not has_title({"TERM": "linux"})
    assert has_title({"TERM": "xterm"})
