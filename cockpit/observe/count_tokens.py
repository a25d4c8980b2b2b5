"""Token counts of text, computed offline and the same on every machine.

Facts are counted with o200k_base, that of OpenAI's current models; prompts with the vocabulary of the
model, where it is published (:func:`vocabulary_for`). Both are mapped from files of the package at the first
count, in about 10 ms (:mod:`cockpit.core.token_vocabulary`). See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import functools
import re
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.core.token_vocabulary import Vocabulary

O200K = "o200k_base"
CL100K = "cl100k_base"
_FOLDER = Path(__file__).resolve().parent.parent / "data" / "vocabularies"
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
    return sum(map(_vocabulary(O200K).count, _pieces(text)))


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
        number = sum(map(_vocabulary(vocabulary).count, _pieces(text)))
        _counted[key] = number
        if len(_counted) > _REMEMBERED:
            _counted.popitem(last=False)
    return number


@functools.lru_cache(maxsize=65_536)
def _count_small(text: str) -> int:
    return _vocabulary(O200K).count(text) if text else 0


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
def _vocabulary(name: str) -> Vocabulary:
    from cockpit.core.token_vocabulary import Vocabulary

    try:
        return Vocabulary(name, _FOLDER)
    except (OSError, ValueError) as error:
        raise VocabularyMissing(
            f"Tokens cannot be counted: {error}. Install cockpit again."
        ) from error
