"""The terminal's title, in which nothing foreign acts, and keys as terminals send them."""

from __future__ import annotations

import pytest

from cockpit.app.terminal.announce import title_sequence
from cockpit.app.terminal.key_parser import PAUSE_S, KeyParser, PasteFinder


def test_foreign_text_ends_no_title():
    sequence = title_sequence("x\x07\x1b]52;c;aGk=\x07\x9b31m\u202e\ny" + "z" * 500)
    assert sequence.startswith("\x1b]2;") and sequence.endswith("\x07")
    body = sequence[2:-1]
    assert body.isprintable() and "\u202e" not in body
    assert len(body) < 150


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ("\x1b\r", "alt+enter"),  # Textual: "enter", which approves
        ("\x1b[13;3u", "alt+enter"),
        ("\x1b[27;3;13~", "alt+enter"),
        ("\x1b[27;2;13~", "shift+enter"),
        ("\x1b[27;5;117~", "ctrl+u"),
        ("\x1b\x7f", "ctrl+w"),
        ("\r", "enter"),
        ("\x1f", "ctrl+underscore"),
    ],
)
def test_a_key(sent, key):
    assert [event.key for event in KeyParser().feed(sent)] == [key]


def test_alt_with_a_character_types_nothing_also_in_a_row():
    events = list(KeyParser().feed("\x1bn\x1bn\x1b.\x1bNx\x1bé"))
    keys = ["alt+n", "alt+n", "alt+full_stop", "alt+shift+n", "x", "alt+é"]
    assert [event.key for event in events] == keys
    assert [event.character for event in events if event.character] == ["x"]


@pytest.mark.parametrize("sent", ["one\rtwo", "one\r\ntwo\r\n", "\ry", "def f():\n\treturn 1\n"])
def test_text_with_a_line_break_inside_was_pasted(sent):
    finder = PasteFinder()
    assert finder.take(sent, 0.0) == ("", "")
    assert finder.end() == sent
    assert not finder.is_waiting


@pytest.mark.parametrize("key", ["\x1b\r", "\x1b[A", "\x15"])
def test_a_paste_behind_a_key_is_still_one(key):
    finder = PasteFinder()
    assert finder.take(f"{key}one\rtwo", 0.0) == ("", key)
    assert finder.end() == "one\rtwo"


@pytest.mark.parametrize("sent", ["one", "one\r", "\r", "\r\r", "\tword"])
def test_keys_are_keys(sent):
    finder = PasteFinder()
    assert finder.take(sent, 0.0) == ("", sent)
    assert not finder.is_waiting


def test_a_long_paste_comes_in_pieces_and_is_one():
    finder = PasteFinder()
    pieces = ["x" * 1_023 + "\r", "one long line", " that ends\r", "last\r"]
    kept = [finder.take(piece, number * PAUSE_S / 2) for number, piece in enumerate(pieces)]
    assert kept == [("", "")] * 4
    assert finder.take("\x1b[Aone\rtwo", 0.1) == ("".join(pieces), "\x1b[A")
    assert finder.end() == "one\rtwo"
    assert finder.take("typed\r", 1.0) == ("", "typed\r")
