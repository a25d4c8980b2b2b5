"""The files that a text names, as commands, their output and scope items write them.

A name is known by its ending, so that ``np.array`` and ``3.11`` are none. See ``docs/reference/kernel.md``,
epochs.
"""

from __future__ import annotations

import re

MAX_CHARS = 48_000
"""Characters of a text that are read: its beginning."""

_ENDINGS = (
    "py pyi ipynb js jsx mjs cjs ts tsx vue svelte go rs java kt kts scala c h cc cpp cxx hpp hh cs fs"
    " rb php pl pm lua r R jl swift m mm dart ex exs erl hs ml clj sql sh bash zsh fish ps1 bat html htm"
    " css scss sass less xml xsl svg json jsonl yaml yml toml ini cfg conf env properties md rst txt"
    " adoc tex csv tsv proto graphql tf gradle cmake mk lock diff patch log"
)
_BARE = "Makefile Dockerfile Containerfile Gemfile Rakefile Procfile Justfile"
_NAME = re.compile(
    rf"(?<![\w./+-])[\w./+-]*[\w+-]\.(?:{'|'.join(_ENDINGS.split())})\b(?![\w.(])"
    rf"|(?:[\w.+-]++/)*\b(?:{'|'.join(_BARE.split())})\b"
)

_LONG_RUN = re.compile(r"(?<![\w./@+-])[\w./@+-]{300,}+")
"""No name: encoded data, or minified code. To look for a name in it takes time that grows with its square."""


def find_named_files(text: str) -> frozenset[str]:
    """Return the names of files in ``text``, without a leading ``./``; none of 300 characters or more."""
    short = drop_long_runs(text[:MAX_CHARS])
    return frozenset(name.removeprefix("./") for name in _NAME.findall(short))


def drop_long_runs(text: str) -> str:
    """Return a text without what is too long to be the name of a file."""
    return _LONG_RUN.sub(" ", text)
