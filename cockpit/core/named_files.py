"""The files that a text names, as commands, their output and scope items write them.

A name is known by its ending, so that ``np.array`` and ``3.11`` are none. See ``docs/reference/kernel.md``,
epochs.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

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

_HERE_DOCUMENT = re.compile(
    r"""<<-?[ \t]*(?P<quote>["']?)(?P<end>\w++)(?P=quote)(?P<line>[^\n]*+)"""
    r"""(?:\n.*?(?:^[ \t]*+(?P=end)[ \t]*+$|\Z))?+""",
    re.DOTALL | re.MULTILINE,
)


class FileNames(Struct, frozen=True):
    """The files that a fact names."""

    all: frozenset[str]
    called: frozenset[str]
    """Those that the agent's call itself is about."""
    used: frozenset[str]
    """Those of the call, with the ones in the texts that its command writes."""
    is_answered: bool = False
    """Whether this is a request of which all was granted: other facts hold what it asked for."""


def find_named_files(text: str) -> frozenset[str]:
    """Return the names of files in ``text``, without a leading ``./``; none of 300 characters or more."""
    return _find_in_short(text) if len(text) <= _SHORT else _find(text[:MAX_CHARS])


_SHORT = 200
"""Characters of a text whose names are remembered: calls ask for the same files again."""


@lru_cache(maxsize=2_048)
def _find_in_short(text: str) -> frozenset[str]:
    return _find(text)


def _find(text: str) -> frozenset[str]:
    return frozenset(name.removeprefix("./") for name in _NAME.findall(drop_long_runs(text)))


def drop_long_runs(text: str) -> str:
    """Return a text without what is too long to be the name of a file."""
    return _LONG_RUN.sub(" ", text)


def drop_here_documents(command: str) -> str:
    """Return a shell command without the texts of its here-documents."""
    return _HERE_DOCUMENT.sub(
        lambda match: match["line"] if "\n" in match[0] else match[0], command
    )
