"""The words of a text that say something about which skill a task needs, stemmed as the index stems them.

See ``docs/reference/skills.md``, ranking.
"""

from __future__ import annotations

from functools import cache

from cockpit.store.db.word_stems import STOP_WORDS, WORD, stem_each

_LONGEST = 20_000
"""Characters of a text that are looked at."""
_IDLE_WORDS = """
above after again always anything back because before being below both cannot doing done down
during each either else etc ever every everything few further gets getting given go goes going got
having hello hers hi however instead keep kind look looks made makes making many may might more
most much must need needed needs never new nothing now off ok once one onto other over own part
place put same say says see seen several show shows since someone something still take takes tell
thank thanks thing things through too try two under until upon user users uses very wanted wants
way well whatever whether while whole whose within without work working works yes yet
"""
IDLE_WORDS = STOP_WORDS.union(_IDLE_WORDS.split())
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
    return [word for word in words if len(word) > 1 and word not in IDLE_WORDS]


def stem_words(text: str) -> set[str]:
    """Return the stems of :func:`split_words`."""
    return set(stem_each(split_words(text)))


@cache
def faint_stems() -> frozenset[str]:
    """Return the stems of :data:`FAINT_WORDS`."""
    return frozenset(stem_each(sorted(FAINT_WORDS)))
