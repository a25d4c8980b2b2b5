"""Words of a text as stems: parts of identifiers, without endings, without words that say nothing.

See ``docs/reference/skills.md``, ranking.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from cockpit.store.db import word_stems

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+[a-z]*|[^\W\d_a-zA-Z]+")
_WORD = re.compile(r"\w+(?:[+#](?!\w)+)?")
_MIXED = re.compile(r"[a-z]*\d+[a-z]+|[a-z]+\d+[a-z]*", re.ASCII)
_GO = re.compile(r"(?<=[\w,] )Go(?= )")
"""The language, in the middle of a sentence; its name is a word that says nothing."""
_LONGEST = 20_000
"""Characters of a text that are looked at."""

_STOP_WORDS = """
a about above after again all also always am an and any anything are as at back be because been
before being below both but by can cannot could did do does doing done down during each either else
etc ever every everything few for from further get gets getting give given go goes going got had has
have having he hello her here hers hi him his how however i if in instead into is it its just keep
kind let like look looks made make makes making many may me might more most much must my need needed
needs never new no not nothing now of off ok on once one only onto or other our out over own part
place please put same say says see seen several she should show shows since so some someone
something still such take takes tell than thank thanks that the their them then there these they
thing things this those through to too try two under until up upon us use used user users uses using
very want wanted wants was way we well were what whatever when where whether which while who whole
whose why will with within without work working works would yes yet you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing about which skill a task needs."""

_FAINT_WORDS = """
add allow answer application apply argument array base basic big bring build button call case change
check choose class code command common complete configuration configure contain content control copy
correct count create current customer day default define delete describe detail develop different
directory display download edit element email enable end enter entry exist explain expose extra
field file fill find first fix folder follow format full function group handle handler help id
implement import improve include increase input insert install item job join keep key last left
level library limit line link list live local long lower mail manage match menu message method
minute mode module month move name next number object old open option order output page parameter
parse part path people place point port prepare print process product program project provide public
question quick read real reduce remove repair report request require reset result return right root
row rule run save screen second section select send service set setting share short side simple
single site size small sort source space start state step stop store string structure support switch
system table task team text third time title together tool top total turn type unused update upload
value variable view wait web wide window word write year
"""
FAINT_WORDS = frozenset(_FAINT_WORDS.split())
"""Words that nearly every task may have: they say a little, where nothing else does."""

_SHORTEST = 3


def stem_words(text: str) -> list[str]:
    """Return the stems of the words of ``text`` that say something, in their order."""
    words = _WORD.findall(_GO.sub("golang", text[:_LONGEST].replace("'", "")))
    return [each for word in words for each in _stem_parts(word)]


@lru_cache(maxsize=20_000)
def _stem_parts(word: str) -> tuple[str, ...]:
    """Return the stems of a word as a text has it: an identifier's are of the whole and of its parts."""
    lower = word.lower()
    parts = [part.lower() for part in _PART.findall(word)]
    words: list[str] = []
    if len(parts) > 1 and (_MIXED.fullmatch(lower) or "_" not in word):
        words.append(lower.strip("_"))
    words += parts if len(parts) > 1 or lower[-1] not in "+#" else [lower]
    return tuple(stem(part) for part in words if part not in STOP_WORDS and len(part) > 1)


@cache
def faint_stems() -> frozenset[str]:
    """Return the stems of :data:`FAINT_WORDS`."""
    return frozenset(map(stem, FAINT_WORDS))


def stem(word: str) -> str:
    """Return the word without its ending, so that ``migrations`` and ``migrate`` are equal."""
    if len(word) <= _SHORTEST or not word.isascii() or not word.isalpha():
        return word
    return word_stems.stem_each([word])[0]
