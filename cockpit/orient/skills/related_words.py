"""Words of developers that belong together, by which a task finds a skill that words it otherwise.

General vocabulary of one topic a group (names of tools, symptoms, other words for it), of no particular set
of skills or prompts, in ``data/related_words.txt``. See ``docs/reference/skills.md``, ranking.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from cockpit.orient.skills.stem_words import stem

_NEXT_GROUP = re.compile(r"\n(?! )")
"""A group goes on in lines that begin with a space."""


@cache
def related_stems() -> Mapping[str, frozenset[str]]:
    """Return, by stem, the stems that belong to it, itself not among them."""
    related: dict[str, set[str]] = {}
    file = resources.files("cockpit") / "data" / "related_words.txt"
    for words in _NEXT_GROUP.split(file.read_text("utf-8")):
        group = {stem(word) for word in words.split()}
        for word in group:
            related.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in related.items()}
