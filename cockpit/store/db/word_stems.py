"""The stems of words, so that ``migrations`` and ``migration`` are one: those of SQLite's full-text index.

Documents, notes and skills are searched by the same stems. See ``docs/reference/knowledge.md``, search.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Sequence
from functools import cache

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""What the index cuts and stems text by."""
WORD = re.compile(r"[^\W_]+")
"""A word, as the tokenizer cuts text."""
_MOST_STEMS = 200_000

_STOP_WORDS = """
a about all also am an and any are as at be been but by can could did do does for from get give
had has have he her here him his how i if in into is it its just let like make me my no not of on
only or our out please she should so some such than that the their them then there these they this
those to up us use used using want was we were what when where which who why will with would you
your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing about a subject."""


class _Stemmer:
    """Stems words as the index does: by SQLite's own tokenizer, over a table in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stems: dict[str, str] = {}
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._connection.executescript(
            f"CREATE VIRTUAL TABLE words USING fts5(word, tokenize='{TOKENIZER}');"
            "CREATE VIRTUAL TABLE stems USING fts5vocab(words, 'instance');"
        )

    def stem_each(self, words: Sequence[str]) -> list[str]:
        with self._lock:
            unknown = {word for word in words if word not in self._stems}
            if unknown:
                if len(self._stems) > _MOST_STEMS:
                    self._stems.clear()
                    unknown = set(words)
                self._learn(sorted(unknown))
            return [self._stems[word] for word in words]

    def _learn(self, words: Sequence[str]) -> None:
        connection = self._connection
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO words(rowid, word) VALUES (?, ?)", enumerate(words))
        # A word of signs that the tokenizer leaves out is its own stem: no chunk has it.
        self._stems.update(zip(words, words, strict=True))
        for number, stem in connection.execute("SELECT doc, term FROM stems"):
            self._stems[words[number]] = stem
        connection.execute("ROLLBACK")


@cache
def _stemmer() -> _Stemmer:
    return _Stemmer()


def stem_each(words: Sequence[str]) -> list[str]:
    """Return the stem of each word, which :data:`WORD` matches. May be called from any thread."""
    return _stemmer().stem_each(words)
