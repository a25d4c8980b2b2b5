"""Long runs of letters and digits, which every secret of the kept rules has.

Specified in ``docs/reference/security.md``.
"""

from __future__ import annotations

import math
import re

_RUN = re.compile(r"[A-Za-z0-9_=~-]{15,}")
_DIGIT = re.compile(r"[0-9]")
_SHORT_SECRETS = ("curl", "q~", "contribsys", "hf_", "api_org_", "otpauth:")
"""Words before secrets that need not have a long run of characters, or no digit."""


def has_long_run(lowered: str) -> bool:
    """Whether a text has a long run of letters and digits, as every secret of the kept rules has.

    Few texts do, and only they meet the patterns of :mod:`cockpit.core.masking.secret_rules`.
    """
    for run in _RUN.finditer(lowered):
        if _DIGIT.search(lowered, run.start(), run.end()):
            return True
    return any(word in lowered for word in _SHORT_SECRETS)


def measure_entropy(text: str) -> float:
    """Return the entropy of a text's characters, in bits a character."""
    length = len(text)
    shares = [text.count(character) / length for character in set(text)]
    return -sum(share * math.log2(share) for share in shares)
