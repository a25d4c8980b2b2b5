"""Values out of a few bytes, for properties whose examples are large.

What hypothesis draws, it pays for by the draw, often with more than what is checked. A few bytes of it for
each row or fact give as many different ones, and a failing example shrinks row by row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

_CHARACTERS = (
    *((0x20, 0x7E),) * 4,  # plain
    (0x00, 0x1F),
    (0x7F, 0xFF),
    (0x300, 0x36F),  # combining
    (0x200B, 0x206F),  # without width, directions
    (0x100, 0xD7FF),
    (0xE000, 0x10FFFF),
)
_NUMBERS = (0, 1, -1, 2**31, 2**53 + 1, -(2**63), 2**64, 10**40)
_FLOATS = (0.0, -0.0, 0.5, 1e-308, 1e308, -1e16, math.inf, -math.inf, math.nan)


class Dice:
    """Numbers, choices and JSON out of a seed."""

    def __init__(self, seed: bytes) -> None:
        self._random = Random(seed)

    def number(self, least: int, most: int) -> int:
        return least + int(self._random.random() * (most - least + 1))

    def one_of(self, *choices: T) -> T:
        return choices[self.number(0, len(choices) - 1)]

    def choice(self, choices: Sequence[T]) -> T:
        return choices[self.number(0, len(choices) - 1)]

    def text(self, most: int) -> str:
        """Up to so many characters of any kind."""
        size, random = self.number(0, most), self._random.random
        kinds = [_CHARACTERS[int(random() * len(_CHARACTERS))] for _ in range(size)]
        return "".join([chr(first + int(random() * (last - first + 1))) for first, last in kinds])

    def json(self, *, depth: int = 2, length: int = 20, width: int = 3) -> object:
        """Any value that JSON can tell, with texts of so many characters and lists of so many values."""
        kind = self.number(0, 7 if depth else 5)
        if kind == 0:
            return self.one_of(None, True, False)
        if kind == 1:
            return self.choice(_NUMBERS)
        if kind == 2:
            return self.number(-1_000, 1_000)
        if kind == 3:
            return self.choice(_FLOATS)
        if kind in (4, 5):
            return self.text(length)
        sizes = {"depth": depth - 1, "length": length, "width": width}
        if kind == 6:
            return [self.json(**sizes) for _ in range(self.number(0, width))]
        return {self.text(8): self.json(**sizes) for _ in range(self.number(0, width))}
