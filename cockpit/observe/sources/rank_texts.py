"""Texts ranked by the words of a query (BM25), in whole numbers, so that equal inputs rank alike.

See ``docs/reference/loop.md``, scope items.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import log

_WORD = re.compile(r"[^\W_]+")
_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
_STEM_LENGTH = 5


def rank_texts(query: str, texts: Sequence[str], most: int) -> list[int]:
    """Return the places of the ``most`` texts that match best, the best first; none without a match."""
    wanted = set(_words(query))
    holders: dict[str, list[tuple[int, int]]] = {word: [] for word in wanted}
    lengths = []
    for at, text in enumerate(texts):
        words = _words(text)
        lengths.append(len(words))
        for word, often in Counter(filter(wanted.__contains__, words)).items():
            holders[word].append((at, often))
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    rooms = [1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length / (mean or 1.0) for length in lengths]
    scores = [0.0] * len(texts)
    # In the order of the words: sums of floats depend on theirs.
    for _, texts_with in sorted(holders.items()):
        if not texts_with:
            continue
        rarity = log(1 + (len(texts) - len(texts_with) + 0.5) / (len(texts_with) + 0.5))
        for at, often in texts_with:
            room = rooms[at]
            scores[at] += rarity * often * (_SATURATION + 1) / (often + _SATURATION * room)
    whole = [round(score * 1_000_000) for score in scores]
    ranked = sorted(range(len(texts)), key=lambda at: (-whole[at], at))
    return [at for at in ranked[:most] if whole[at] > 0]


def _words(text: str) -> list[str]:
    """Words in lower case; long ones by their beginning, so that ``retries`` finds ``retry``."""
    return [word[:_STEM_LENGTH] for word in _WORD.findall(text.lower()) if len(word) > 1]
