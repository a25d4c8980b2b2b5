"""How good a text is as context, whatever it is about: readable, written by people, not repeated.

Pure, on whole numbers. What a fact is worth to a wave follows from it later: the rules of the profile
weigh priority, risk, novelty and age (:mod:`cockpit.orient.score_facts`). Source: RFC-003 §10.1 step 4.
"""

from __future__ import annotations

from cockpit.store.context.facts import UTILITY_MAX

LEAST = UTILITY_MAX // 4
"""No text is worth nothing: somebody approved it."""

_LONG_LINE = 2_000
_SAMPLE = 200_000


def quality(text: str) -> int:
    """0 to :data:`~cockpit.store.context.facts.UTILITY_MAX`.

    Taken off: the share of characters that could not be read, the share that stands in lines too long
    for a person (minified, generated, data), and the share of lines that repeat another, as far as it
    is more than half.
    """
    sample = text[:_SAMPLE]
    if not sample:
        return UTILITY_MAX
    size = len(sample)
    unreadable = 0 if sample.isascii() else sample.count("\ufffd") * UTILITY_MAX // size
    lines = sample.split("\n")
    dense = sum(len(line) for line in lines if len(line) > _LONG_LINE) * UTILITY_MAX // size
    written = [line for line in lines if len(line) > 8]
    repeated = 0
    if len(written) > 20:
        again = len(written) - 2 * len(set(written))
        repeated = max(0, again) * UTILITY_MAX // len(written)
    return max(LEAST, UTILITY_MAX - unreadable - dense - repeated)
