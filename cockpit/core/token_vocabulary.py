"""Count tokens with a vocabulary that is mapped from a file, not built in memory.

tiktoken builds its vocabulary in every process: 0.35 s of CPU and 75 MiB. The files here are mapped
read-only, so that all processes share their pages, and the first count takes about 10 ms. Counts are the
same as tiktoken's. The files are written by ``docs/build_vocabularies.py``; see ``docs/reference/kernel.md``.

Layout of a vocabulary, little-endian 32-bit integers: after the eight bytes of :data:`MAGIC` the number of
tokens, of slots, and of bytes of all tokens; where each token's bytes begin, and the end of the last; a
hash table of slots; the bytes. A slot holds rank + 1 in its low 18 bits and bits of the token's CRC-32 in
the others; 0 is empty.
"""

from __future__ import annotations

import mmap
import re
import struct
import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache, partial
from heapq import heapify, heappop, heappush
from pathlib import Path

MAGIC = b"CKVOCAB1"
RANK_BITS = 18
NO_RANK = (1 << RANK_BITS) - 1
_HEADER = struct.Struct("<3I")
_REMEMBERED_PIECES = 20_000
_REMEMBERED_CHARACTERS = 4_096
_SHORT = 100

# Text is cut into pieces by character classes that Python's ``re`` does not have, and whose members differ
# between versions of Unicode. So each character is first replaced by an ASCII one of its class:
CLASSES = (
    ("A", r"[\p{Lu}\p{Lt}]"),
    ("a", r"\p{Ll}"),
    ("\x01", r"[\p{Lm}\p{Lo}]"),
    ("\x02", r"\p{M}"),
    ("0", r"\p{N}"),
    ("\t", r"\s"),
)
OTHER = "!"
_LONG_S = 0x17F  # also written \x03: it counts as an s where the case of letters is ignored
_SHADOWS = re.compile(r"[^\x00\x04-\x7f]")
_UPPER = r"A-Z\x01\x02"
_LOWER = r"a-z\x01\x02\x03"
_LETTER = r"A-Za-z\x01\x03"
_BLANK = r"\t-\r "
_WORD_END = r"(?:'(?:[sStTmMdD\x03]|[rR][eE]|[vV][eE]|[lL][lL]))?"
_PATTERNS = {
    "o200k_base": (
        rf"[^\r\n{_LETTER}0-9]?[{_UPPER}]*[{_LOWER}]+{_WORD_END}",
        rf"[^\r\n{_LETTER}0-9]?[{_UPPER}]+[{_LOWER}]*{_WORD_END}",
        r"[0-9]{1,3}",
        rf" ?[^{_BLANK}{_LETTER}0-9]+[\r\n/]*",
        rf"[{_BLANK}]*[\r\n]+",
        rf"[{_BLANK}]+(?![^{_BLANK}])",
        rf"[{_BLANK}]+",
    ),
    "cl100k_base": (
        r"'(?:[sdmtSDMT\x03]|[lL][lL]|[vV][eE]|[rR][eE])",
        rf"[^\r\n{_LETTER}0-9]?+[{_LETTER}]++",
        r"[0-9]{1,3}+",
        rf" ?[^{_BLANK}{_LETTER}0-9]++[\r\n]*+",
        rf"[{_BLANK}]++\Z",
        rf"[{_BLANK}]*[\r\n]",
        rf"[{_BLANK}]+(?![^{_BLANK}])",
        rf"[{_BLANK}]",
    ),
}


class Vocabulary:
    """A vocabulary of byte pairs, read from a mapped file."""

    def __init__(self, name: str, folder: Path) -> None:
        """Map ``folder/name.bin``; raises OSError or ValueError if it is missing or damaged."""
        with open(folder / f"{name}.bin", "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        view = memoryview(mapped)
        if view[: len(MAGIC)] != MAGIC:
            raise ValueError(f"{folder / name}.bin is not a vocabulary of this version")
        tokens, slots, size = _HEADER.unpack_from(view, len(MAGIC))
        begin = len(MAGIC) + _HEADER.size
        middle = begin + 4 * (tokens + 1)
        end = middle + 4 * slots
        if len(view) != end + size:
            raise ValueError(f"{folder / name}.bin is cut short")
        self.bounds = _read_integers(view[begin:middle])
        self._slots = _read_integers(view[middle:end])
        self.bytes = view[end:]
        pattern = re.compile("|".join(_PATTERNS[name]))
        self._split = pattern.findall
        self._spans = pattern.finditer
        self._shadow = _Shadow(folder)
        self._pieces = _Pieces(self._find_ranks())

    def count(self, text: str) -> int:
        """Count the tokens of ``text``; special tokens are plain text."""
        size = self._pieces.__getitem__
        if text.isascii() and not _SHADOWS.search(text):
            return sum(map(size, self._split(text)))
        try:
            text.encode()
        except UnicodeEncodeError:  # half a surrogate pair, which tiktoken replaces too
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        spans = self._spans(text.translate(self._shadow))
        return sum([size(text[span.start() : span.end()]) for span in spans])

    def _find_ranks(self) -> Callable[[bytes], int]:
        bounds, slots, tokens = self.bounds, self._slots, self.bytes
        mask = len(slots) - 1
        shift = mask.bit_length()
        crc32 = zlib.crc32

        def rank_of(token: bytes) -> int:
            code = crc32(token)
            place = code & mask
            code >>= shift
            while slot := slots[place]:
                if slot >> RANK_BITS == code:
                    rank = (slot & NO_RANK) - 1
                    if tokens[bounds[rank] : bounds[rank + 1]] == token:
                        return rank
                place = (place + 1) & mask
            return NO_RANK

        return rank_of


class _Shadow(dict[int, int]):
    """What ``str.translate`` writes for each character: one of its class, looked up once."""

    def __init__(self, folder: Path) -> None:
        raw = (folder / "characters.bin").read_bytes()
        runs = len(raw) // 5
        self._starts = _read_integers(memoryview(raw)[: 4 * runs])
        self._classes = raw[4 * runs :]

    def __missing__(self, character: int) -> int:
        if len(self) > _REMEMBERED_CHARACTERS:
            self.clear()
        if character == _LONG_S:
            shadow = 3
        elif character < 128 and character not in (1, 2, 3):
            shadow = character
        else:
            shadow = self._classes[bisect_right(self._starts, character) - 1]
        self[character] = shadow
        return shadow


class _Pieces(dict[str, int]):
    """The number of tokens of each piece; texts repeat most of theirs."""

    def __init__(self, rank_of: Callable[[bytes], int]) -> None:
        self._rank_of = rank_of
        self._merge_long = lru_cache(maxsize=64)(partial(_merge_long, rank_of=rank_of))

    def __missing__(self, piece: str) -> int:
        if len(self) > _REMEMBERED_PIECES:
            self.clear()
        raw = piece.encode()
        if len(raw) == 1 or self._rank_of(raw) != NO_RANK:
            number = 1
        elif len(raw) < _SHORT:
            number = _merge_short(raw, self._rank_of)
        else:
            number = self._merge_long(raw)
        if len(raw) < _SHORT:
            self[piece] = number
        return number


def _merge_short(raw: bytes, rank_of: Callable[[bytes], int]) -> int:
    """Merge the pair of lowest rank, the first of equals, until none is left; returns the tokens."""
    cuts = list(range(len(raw) + 1))
    ranks = [rank_of(raw[at : at + 2]) for at in range(len(raw) - 1)]
    while ranks:
        lowest = min(ranks)
        if lowest == NO_RANK:
            break
        at = ranks.index(lowest)
        del cuts[at + 1], ranks[at]
        if at:
            ranks[at - 1] = rank_of(raw[cuts[at - 1] : cuts[at + 1]])
        if at < len(ranks):
            ranks[at] = rank_of(raw[cuts[at] : cuts[at + 2]])
    return len(cuts) - 1


def _merge_long(raw: bytes, rank_of: Callable[[bytes], int]) -> int:
    """Merge as :func:`_merge_short` does, in a time that grows as the length times its logarithm."""
    size = len(raw)
    after = list(range(1, size + 2))
    before = list(range(-1, size))
    ranks = [rank_of(raw[at : at + 2]) for at in range(size - 1)] + [NO_RANK]
    heap = [rank * size + at for at, rank in enumerate(ranks) if rank != NO_RANK]
    heapify(heap)
    tokens = size
    while heap:
        rank, at = divmod(heappop(heap), size)
        if ranks[at] != rank:
            continue  # merged, or merged with its neighbour, since
        merged = after[at]
        following = after[at] = after[merged]
        ranks[merged] = -1
        tokens -= 1
        if following < size:
            before[following] = at
            ranks[at] = rank = rank_of(raw[at : after[following]])
            if rank != NO_RANK:
                heappush(heap, rank * size + at)
        else:
            ranks[at] = NO_RANK
        at = before[at]
        if at >= 0:
            ranks[at] = rank = rank_of(raw[at:following])
            if rank != NO_RANK:
                heappush(heap, rank * size + at)
    return tokens


def _read_integers(view: memoryview) -> memoryview | array[int]:
    if sys.byteorder == "little":
        return view.cast("I")
    integers = array("I", view.tobytes())
    integers.byteswap()
    return integers
