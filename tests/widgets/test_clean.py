"""Nothing that acts on a terminal, and nothing that hides from a reader, passes the boundary."""

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from widgets.text.clean import StreamCleaner, clean, hidden

HOSTILE = st.text(
    alphabet=st.sampled_from(
        "\x1b\x9b\x9d\x90\x98\x9e\x9f\x9c\x07[]P^_X\\;0m8(B c\n\r\t\x00\x08\x7f\x18"
        "\u202e\u2066\u200b\ufeff\ud83d\u2028é漢a"
    ),
    max_size=60,
)

SEQUENCES = {
    "csi private": "\x1b[?1049h",
    "csi with intermediate": "\x1b[1 q",
    "csi 8-bit": "\x9b31m",
    "osc title": "\x1b]0;title\x07",
    "osc link": "\x1b]8;;http://evil\x1b\\",
    "osc clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "osc 8-bit": "\x9d52;c;cm0gLXJm\x9c",
    "dcs": "\x1bPq#0;2;0\x1b\\",
    "apc": "\x1b_Gf=24;AAAA\x1b\\",
    "pm": "\x1b^secret\x1b\\",
    "sos": "\x1bXsecret\x1b\\",
    "reset": "\x1bc",
    "charset": "\x1b(0",
    "override": "\u202e",
    "marks": "\u200e\u200f\u061c",
    "zero width": "\u200b\u200d\ufeff\u2060",
    "tags": "\U000e0041\U000e0042",
    "backspaces": "\x08\x08",
    "return": "\r",
    "nul": "\x00",
    "delete": "\x7f",
}


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_a_sequence_goes_as_a_whole(sequence):
    assert clean(f"before{sequence}after") == "beforeafter"
    assert hidden(f"before{sequence}after") == len(sequence)


def test_the_text_of_a_link_stays():
    assert clean("\x1b]8;;http://evil\x07click\x1b]8;;\x07") == "click"


def test_an_unterminated_string_hides_no_more_than_its_line():
    assert clean("one\x1b]52;c;AAAA\ntwo") == "one\ntwo"


def test_line_endings_tabs_and_lost_surrogates():
    assert clean("a\r\nb\tc\u2028d\ud83d") == "a\nb    c\nd\ufffd"
    assert clean("a\r\nb", newlines=False) == "a b"
    assert hidden("a\r\nb\tc") == 0


def test_ordinary_text_is_untouched():
    text = "naïve café 漢字 [bold]not markup[/] \\[ 100% — ✔ ⏎"
    assert clean(text) == text


@given(HOSTILE)
def test_what_is_left_is_visible(text):
    left = clean(text)
    assert all(char == "\n" or ord(char) >= 0x20 for char in left)
    assert not any(0x7F <= ord(char) < 0xA0 for char in left)
    assert not set(left) & set("\u202e\u2066\u200b\ufeff\u2028")
    left.encode()
    assert clean(left) == left
    assert hidden(left) == 0


@pytest.mark.search
@settings(max_examples=examples(50))
@given(HOSTILE, st.lists(st.integers(0, 60), max_size=8))
def test_cutting_a_text_into_fragments_changes_nothing(text, cuts):
    edges = sorted(min(cut, len(text)) for cut in cuts)
    cleaner = StreamCleaner()
    out = "".join(
        cleaner.feed(text[start:end])
        for start, end in zip([0, *edges], [*edges, len(text)], strict=True)
    )
    assert out + cleaner.end() == clean(text)


def test_an_endless_sequence_holds_no_memory():
    cleaner = StreamCleaner()
    cleaner.feed("\x1b]52;c;")
    for _ in range(1_000):
        assert cleaner.feed("A" * 1_000) == ""
    assert cleaner.feed("\x07free") == "free"


def test_a_stream_of_single_characters() -> None:
    text = "a\x1b]52;c;AAAA\x1b\\b\x9b31mc\x1b(0d\x1b[1 qe"
    cleaner = StreamCleaner()
    assert "".join(map(cleaner.feed, text)) + cleaner.end() == "abcde"
