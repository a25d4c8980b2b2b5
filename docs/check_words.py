"""Count the words of the documents, clauses that begin with *what*, and sentences that are too long.

Run by ``make check``. Prints a line per fault and exits with 1 if there is any. Code, addresses, headings and
tables' bars are not words of ours.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent
MOST_WORDS = 60_000
MOST_CLAUSES = 10
"""Clauses with *what* or *whatever* in 10,000 words."""
LONGEST = 30
"""Words of one sentence."""

_CODE = re.compile(r"^ *```.*?^ *```|<!--.*?-->|^#[^\n]*", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_PART = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) )|\|| · ")
"""Where a text ends without a full stop: paragraphs, items, cells, links in a row."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\"c])")
_NAMES = re.compile(r"`[^`]*`(?:(?:, | and | or |, and )`[^`]*`)*")
"""Names in code, which count as one word also where they stand in a row."""
_CLAUSE = re.compile(r"\bwhat(?:ever)?\b", re.IGNORECASE)


def prose(text: str) -> Iterator[str]:
    """Yield the sentences of a page, without code blocks, headings and the addresses of links."""
    for part in _PART.split(_LINK.sub(r"\1", _CODE.sub("\n\n", text))):
        yield from _SENTENCE.split(" ".join(part.split()))


def main() -> int:
    """Check all pages below ``docs``; return the exit code."""
    faults, words, clauses = [], 0, 0
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        words += len(text.split())
        for sentence in prose(text):
            spoken = _NAMES.sub("names", sentence)
            length = len(spoken.split())
            clauses += len(_CLAUSE.findall(spoken))
            if length > LONGEST:
                faults.append(f"{page.relative_to(DOCS)}: {length} words: {sentence[:80]}…")
    if words > MOST_WORDS:
        faults.append(f"the pages have {words:,} words, more than {MOST_WORDS:,}")
    if clauses * 10_000 > MOST_CLAUSES * words:
        faults.append(
            f"the pages have {clauses} clauses with what, more than {MOST_CLAUSES} in 10,000 words"
        )
    print("\n".join(faults), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
