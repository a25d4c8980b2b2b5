"""The quality of a text as context, whatever its topic: readable, not generated, not repetitive.

Pure, in whole numbers. Scores later combine it with the profile's weights for priority, risk, novelty
and age (:mod:`cockpit.orient.score_facts`).
"""

from __future__ import annotations

from cockpit.store.context.facts import UTILITY_MAX

LEAST = UTILITY_MAX // 4
"""The lowest quality: a text that the user approved is never worth nothing."""

_LONG_LINE = 2_000
_SAMPLE = 200_000


def measure_quality(text: str) -> int:
    """Measure the quality of ``text``, from :data:`LEAST` to ``UTILITY_MAX``.

    Deducts the share of unreadable characters, the share of characters in overlong lines (minified,
    generated, data), and the share of repeated lines beyond one half.
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
