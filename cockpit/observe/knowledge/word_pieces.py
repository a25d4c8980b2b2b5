"""Cut text into the word pieces that the embedding model reads: BERT's uncased vocabulary.

The same pieces as the published tokenizer cuts, which would bring a client of a model hub with it. The
vocabulary ships with cockpit; ``docs/build_vocabularies.py`` says where it comes from. See
``docs/reference/knowledge.md``, vectors.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib import resources

BEGIN, END, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
VOCABULARY = "wordpiece_uncased.txt"
_LONGEST_WORD = 100
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_ASCII_SIGNS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def cut_text(text: str, most: int) -> list[int]:
    """Return the ids of the pieces of ``text``, at most ``most``, with those of its beginning and end."""
    ids = _vocabulary()
    pieces = [ids[BEGIN]]
    # A piece has at least one character, and a character rarely more than one: the rest is not read.
    for word in _split(text[: 16 * most]):
        pieces += _cut_word(word, ids)
        if len(pieces) >= most:
            break
    return [*pieces[: most - 1], ids[END]]


@cache
def _vocabulary() -> dict[str, int]:
    file = resources.files("cockpit.data") / "vocabularies" / VOCABULARY
    lines = file.read_text("utf-8").removesuffix("\n").split("\n")
    return {piece: number for number, piece in enumerate(lines)}


def _split(text: str) -> list[str]:
    """Split into words and single signs, in lower case and without accents."""
    if text.isascii():
        letters = [
            f" {sign} " if sign in _ASCII_SIGNS else sign if " " <= sign != "\x7f" else _blank(sign)
            for sign in text.lower()
        ]
        return "".join(letters).split()
    cleaned = "".join(_clean(sign) for sign in text)
    # Accents come off before letters become small, as the published tokenizer does it.
    bare = "".join(
        sign for sign in unicodedata.normalize("NFD", cleaned) if unicodedata.category(sign) != "Mn"
    )
    return "".join(f" {sign} " if _is_sign(sign) else sign for sign in bare.lower()).split()


def _blank(sign: str) -> str:
    return " " if sign in "\t\n\r" else ""


def _clean(sign: str) -> str:
    if sign in "\t\n\r" or unicodedata.category(sign) == "Zs":
        return " "
    if sign == "\ufffd" or unicodedata.category(sign) in ("Cc", "Cf", "Co"):
        return ""
    code = ord(sign)
    return f" {sign} " if any(first <= code <= last for first, last in _IDEOGRAPHS) else sign


def _is_sign(sign: str) -> bool:
    return sign in _ASCII_SIGNS or unicodedata.category(sign).startswith("P")


def _cut_word(word: str, ids: dict[str, int]) -> tuple[int, ...] | list[int]:
    return (ids[word],) if word in ids else _cut_greedily(word, ids)


def _cut_greedily(word: str, ids: dict[str, int]) -> list[int]:
    """Cut a word into the longest pieces from its beginning; a word that cannot be cut is unknown."""
    if len(word) > _LONGEST_WORD:
        return [ids[UNKNOWN]]
    pieces: list[int] = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ids.get(word[start:end] if not start else f"##{word[start:end]}")
            if piece is not None:
                pieces.append(piece)
                start = end
                break
        else:
            return [ids[UNKNOWN]]
    return pieces
