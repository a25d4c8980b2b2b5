"""What the offline rules can do, to say before a wave is spent on more.

Specified in ``docs/reference/screen.md``, offline rules.
"""

from __future__ import annotations

import re

_WITHIN = re.compile(r"\A/plan\b|\breview|\w\.{2,3}\w|#\d|/pull/\d", re.IGNORECASE)

LIMITS = "without a model, offline rules review changes, but write no code and answer no questions"
SETS_A_MODEL = "ANTHROPIC_API_KEY, OPENAI_API_KEY or --model sets a model."
ONE_LINE = f"{LIMITS[0].upper()}{LIMITS[1:]}. They look around and plan. {SETS_A_MODEL}"
"""The limits for a program that does not ask whether to start."""


def is_within_rules(text: str) -> bool:
    """Return whether ``text`` asks for a review or a plan, which the rules can do."""
    return _WITHIN.search(text.strip()) is not None
