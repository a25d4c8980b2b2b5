"""Wording of numbers, and whether a name is written as it is judged."""

from __future__ import annotations

import unicodedata

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
