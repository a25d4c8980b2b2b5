"""Words of a text as stems: parts of identifiers, without endings, without words that say nothing.

See ``docs/reference/skills.md``, ranking.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

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

_ENDINGS = (
    *(
        "izations",
        "ization",
        "isations",
        "isation",
        "izers",
        "izer",
        "izing",
        "ising",
        "ized",
        "ised",
        "izes",
        "ises",
        "ize",
        "ise",
    ),
    *("ications", "ication"),
    *("ational", "ations", "ation", "ating", "ators", "ator", "ated", "ates", "ate"),
    *(
        "fulness",
        "ousness",
        "iveness",
        "ments",
        "ment",
        "ances",
        "ance",
        "ences",
        "ence",
        "ities",
        "ity",
    ),
    *("ings", "ing", "ions", "ion", "ers", "er", "ies", "ied", "ed", "es", "ly", "s"),
)
_INSTEAD = {
    **dict.fromkeys(
        ("izations", "ization", "isations", "isation", "izers", "izer", "izing", "ising"), "iz"
    ),
    **dict.fromkeys(("ized", "ised", "izes", "ises", "ize", "ise"), "iz"),
    **dict.fromkeys(("ications", "ication", "ies", "ied"), "y"),
    **dict.fromkeys(
        ("ational", "ations", "ation", "ating", "ators", "ator", "ated", "ates", "ate"), "at"
    ),
    **dict.fromkeys(("ities", "ity"), "it"),
}
_ENDINGS_BY_LETTER = {
    letter: tuple(ending for ending in _ENDINGS if ending[-1] == letter)
    for letter in {ending[-1] for ending in _ENDINGS}
}
"""By a word's last letter, so that a word is not compared with all endings."""
_SHORTEST = 3
_KEPT_ENDS = ("ss", "us", "is", "as", "os")
_ODD = {
    "wrote": "writ",
    "written": "writ",
    "broke": "break",
    "broken": "break",
    "ran": "run",
    "slower": "slow",
    "slowly": "slow",
    "data": "data",
    "lies": "lie",
    "docs": "doc",
    "indices": "index",
    "indexes": "index",
    "images": "imag",
    "analyse": "analys",
    "analyze": "analys",
    "analysis": "analys",
    "analyser": "analys",
    "colour": "color",
    "behaviour": "behavior",
    "tests": "test",
    "apps": "app",
    "user": "user",
    "number": "number",
    "server": "server",
    "servers": "server",
    "container": "contain",
    "docker": "docker",
    "order": "order",
    "header": "header",
    "news": "news",
    "aws": "aws",
    "ios": "ios",
    "css": "css",
    "redis": "redis",
    "kubernetes": "kubernetes",
}


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


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return the word without its ending, so that ``migrations`` and ``migrate`` are equal."""
    if word in _ODD:
        return _ODD[word]
    if len(word) <= _SHORTEST or not word.isascii() or not word.isalpha():
        return word
    for ending in _ENDINGS_BY_LETTER.get(word[-1], ()):
        if not word.endswith(ending):
            continue
        rest = word[: -len(ending)]
        shortest = _SHORTEST + ending.startswith("ment")  # a comment has nothing to do with "come"
        if len(rest) < shortest:
            continue
        if ending == "s" and word.endswith(_KEPT_ENDS):
            break
        if ending == "es" and not rest.endswith(("s", "x", "z", "ch", "sh")):
            rest += "e"
        word = rest + _INSTEAD.get(ending, "")
        break
    return _level_end(word)


def _level_end(word: str) -> str:
    """Undouble a final consonant, drop a final ``e`` and write a final ``y`` as ``i``."""
    if len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in "aeiousl":
        return word[:-1]
    if len(word) > _SHORTEST and word.endswith("e"):
        return word[:-1]
    return word[:-1] + "i" if len(word) > _SHORTEST and word.endswith("y") else word
