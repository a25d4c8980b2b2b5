"""The words of a text that say something about which skill a task needs, stemmed as the index stems them.

See ``docs/reference/skills.md``, ranking.
"""

from __future__ import annotations

from functools import cache

from cockpit.store.db.word_stems import WORD, stem_each

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


def split_words(text: str) -> list[str]:
    """Return the words of ``text`` that say something, in lower case and in their order."""
    words = WORD.findall(text[:_LONGEST].lower().replace("'", ""))
    return [word for word in words if len(word) > 1 and word not in STOP_WORDS]


def stem_words(text: str) -> set[str]:
    """Return the stems of :func:`split_words`."""
    return set(stem_each(split_words(text)))


@cache
def faint_stems() -> frozenset[str]:
    """Return the stems of :data:`FAINT_WORDS`."""
    return frozenset(stem_each(sorted(FAINT_WORDS)))
