"""Sketches: one whole number that tells how alike two texts are, without the texts.

A sketch has sixteen digits of four bits. Of two texts, as many digits agree as they share of their
features (lines, or in short texts runs of three words): the Jaccard similarity, by one-permutation
minhash. Hashes are fixed, so that a text has the same sketch in every process.
Source: RFC-003 §10.1 step 4, §10.2 (novelty).
"""

from __future__ import annotations

from zlib import crc32

FEW_LINES = 8
"""Texts of fewer lines than this are compared by their words."""

_LEAST = 4
_MOST = 20_000
_DIGITS = 16
_SPREAD = 0x9E3779B1
_EMPTY = 1 << 32


def sketch(text: str) -> int:
    """The sketch of ``text`` as a signed 64-bit number; 0 where there is too little to compare."""
    lines = {line for raw in text.split("\n") if (line := raw.strip())}
    features = lines if len(lines) >= FEW_LINES else _runs(text)
    if len(features) < _LEAST:
        return 0
    least = [_EMPTY] * _DIGITS
    for feature in sorted(features)[:_MOST] if len(features) > _MOST else features:
        # The digit comes from the high bits, which the product mixes best.
        mixed = (crc32(feature.encode("utf-8", "replace")) * _SPREAD) & 0xFFFFFFFF
        digit, value = mixed >> 28, mixed & 0x0FFFFFFF
        if value < least[digit]:
            least[digit] = value
    number = 0
    for digit in range(_DIGITS):
        value = least[digit]
        step = 0
        while value == _EMPTY:
            # A digit without a feature borrows from the next one that has any.
            step += 1
            value = least[(digit + step) % _DIGITS]
        number = (number << 4) | (((value + step * 0x1F35) >> 4) & 0xF)
    return (number - (1 << 64) if number >> 63 else number) or 1


def _runs(text: str) -> set[str]:
    words = text.split()
    return {" ".join(words[at : at + 3]) for at in range(len(words) - 2)}
