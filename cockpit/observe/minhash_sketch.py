"""Sketches: a 64-bit number per text from which the similarity of two texts is estimated.

A sketch is a one-permutation minhash of sixteen 4-bit digits. The share of equal digits of two sketches
estimates the Jaccard similarity of the texts' features: their lines or, in short texts, runs of three
words. The hash is fixed, so that a text has the same sketch in every process. See
``docs/reference/kernel.md`` (novelty).
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


def sketch_text(text: str) -> int:
    """Return the sketch of ``text`` as a signed 64-bit number, or 0 for too little text to compare."""
    lines = {line for raw in text.split("\n") if (line := raw.strip())}
    features = lines if len(lines) >= FEW_LINES else _runs(text)
    if len(features) < _LEAST:
        return 0
    least = [_EMPTY] * _DIGITS
    for feature in sorted(features)[:_MOST] if len(features) > _MOST else features:
        # The multiplication mixes the high bits best, so they choose the digit.
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
