"""Wording of numbers, whether a name is written as it is judged, and where texts differ."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from operator import eq

_INVISIBLE = ("Cf", "Cc", "Co", "Cn", "Zl", "Zp")
_ALIKE = frozenset(["LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"])
"""Alphabets with letters that look like those of another."""


def pluralize(count: int, noun: str) -> str:
    """``1 line``, ``2 lines``, ``1,200 lines``; for nouns that take an s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def end_sentence(text: str) -> str:
    """Return words that may be a sentence already, with a full stop where they have no end."""
    text = text.rstrip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def keep_ends(text: str, most: int, dropped: int = 0) -> str:
    """Return ``text``, or a quarter of ``most`` characters from its start and the rest from its end.

    What matters of long output stands at its end: a status, a failing test, the last question.
    ``dropped`` characters of its middle, which would be left out, are not in ``text`` any more.
    """
    if len(text) <= most:
        return text
    start = most // 4
    left_out = len(text) - most + dropped
    return f"{text[:start]}\n[… {left_out:,} characters are left out …]\n{text[start - most :]}"


def is_plain(text: str) -> bool:
    """Whether ``text`` is written as it would be judged.

    That is without spaces around it, invisible letters, and letters that Unicode holds to be another form
    of others (NFKC: full-width letters, ligatures, no-break spaces).
    """
    visible = "".join(letter for letter in text if unicodedata.category(letter) not in _INVISIBLE)
    return unicodedata.normalize("NFKC", visible).strip() == text


def mixes_scripts(text: str) -> bool:
    """Whether a word has letters of more than one alphabet, such as a Cyrillic ``а`` in a Latin word."""
    return any(
        len(_ALIKE & {unicodedata.name(letter, "").split(" ")[0] for letter in word}) > 1
        for word in text.split()
        if not word.isascii()
    )


@lru_cache(maxsize=2)
def changes_in_several_places(before: str, after: str) -> bool:
    """Return whether a line between the first and the last change is in both texts."""
    old, new = before.splitlines(), after.splitlines()
    start = _count_same(old, new)
    old, new = old[start:], new[start:]
    end = _count_same(old[::-1], new[::-1])
    return not set(old[: len(old) - end]).isdisjoint(new[: len(new) - end])


def _count_same(some: Sequence[str], others: Sequence[str]) -> int:
    """Count the lines at the start of both that are the same."""
    return sum(takewhile(bool, map(eq, some, others)))


def format_size(tokens: int | None) -> str:
    """Return an estimated size as text; None is unknown."""
    return "size unknown" if tokens is None else f"{tokens:,} tokens"


def format_total(sizes: Sequence[int | None]) -> str:
    """Return the sum of estimated sizes as text; it says how many of them are unknown."""
    known_sizes = [tokens for tokens in sizes if tokens is not None]
    unknown = len(sizes) - len(known_sizes)
    if unknown and not known_sizes:
        return "size unknown"
    more = f", and {pluralize(unknown, 'item')} of unknown size" if unknown else ""
    return f"about {sum(known_sizes):,} tokens{more}"
