"""Of another machine's output nothing reaches the terminal but what draws a screen, however it is cut."""

from __future__ import annotations

import itertools
import re

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.api.remote_screen.output_filter import LONGEST_STRING, OutputFilter

DRAWS = (
    "plain text, é 漢 ✔\r\n\t\x08",
    "\x1b[1;31m\x1b[38;2;1;2;3m\x1b[38:5:3m\x1b[m",
    "\x1b[H\x1b[2J\x1b[12;40H\x1b[3A\x1b[K\x1b[2 q\x1b[1;20r",
    "\x1b[?1049h\x1b[?25l\x1b[?1000;1006h\x1b[?2004h\x1b[?2026h\x1b[?2026l",
    "\x1b[?2026$p\x1b[?2048$p",
    "\x1b[>25u\x1b[<u",
    "\x1b[22;2t\x1b]2;cockpit · calc\x07\x1b[23;2t",
    "\x1b]9;cockpit: a proposal waits\x07\x1b]777;notify;cockpit;one waits\x1b\\",
    "\x07",
)
CONTROLS = (
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b]4;1;?\x07",
    "\x1b]8;;http://evil.example\x1b\\",
    "\x1b]1337;File=name=eA==:eA==\x07",
    f"\x1b]2;{'x' * (LONGEST_STRING + 1)}\x07",
    "\x1b[6n",
    "\x1b[c",
    "\x1b[18t",
    "\x1b[?1047h",
    "\x1b[4i",
    "\x1bc",
    "\x1b(0",
    "\x1bP+q544e\x1b\\",
    "\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\",
    "\x1b_Gf=24;AAAA\x1b\\",
    "\x05",
    "\x9b6n",
    "\x9d52;c;eA==\x9c",
)
ALLOWED = re.compile(
    r"\x1b\[(?:[\d;:]*[A-HJKLMPSTXdf@rm]|\d? q|\?[\d;]+[hl]|\?20(?:26|48)\$p|>\d{1,3}u|<\d*u|2[23];[02]t)"
    r"|\x1b\](?:[02];|9;|777;notify;)[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\)"
)


def harm(text: str) -> str:
    """What of a text is neither a character nor a sequence that draws."""
    rest = ALLOWED.sub("", text)
    return "".join(
        each for each in rest if ord(each) < 32 and each not in "\x07\x08\t\n\r"
    ) + "".join(each for each in rest if "\x7f" <= each <= "\x9f")


@pytest.mark.parametrize("text", DRAWS)
def test_what_draws_passes_whole(text: str) -> None:
    assert OutputFilter().take(text) == text


@pytest.mark.parametrize("text", CONTROLS)
def test_what_controls_more_than_the_screen_does_not_pass(text: str) -> None:
    for cut in range(len(text) + 1):
        passed = OutputFilter()
        shown = passed.take(f"a{text[:cut]}") + passed.take(f"{text[cut:]}z")
        assert harm(shown) == "", (cut, shown)
        assert shown.startswith("a") and shown.endswith("z")
        assert "]52" not in shown or "\x1b" not in shown


@settings(max_examples=examples(30))
@given(
    st.lists(
        st.one_of(
            st.sampled_from(DRAWS + CONTROLS),
            st.text(alphabet="\x1b[]P_\\?;:0159cmnhtuq$ \x07\x18\x9b\x9dé", max_size=12),
        ),
        max_size=12,
    ),
    st.lists(st.integers(0, 400), max_size=8),
)
def test_nothing_harmful_passes_however_it_is_cut(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    passed = OutputFilter()
    shown = "".join(passed.take(text[start:end]) for start, end in itertools.pairwise(places))
    assert harm(shown) == ""
    assert shown == OutputFilter().take(text)


def test_a_string_without_an_end_is_left_out_and_held_nowhere() -> None:
    passed = OutputFilter()
    assert passed.take("\x1b]52;c;") == ""
    for _ in range(100):
        assert passed.take("A" * 1_000) == ""
    assert len(passed._held) < 5_000
    assert passed.take("\x07seen") == "seen"
