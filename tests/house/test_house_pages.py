"""The documents: short enough to be read, and plain. See ``CONTRIBUTING.md``, words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
MOST_WORDS = {"docs": 60_000, "README": 700}
MOST_CLAUSES = 10
"""Of "what" in 10,000 words: the thing itself says more than a clause about it."""
LONGEST_SENTENCE = 30

BLOCK = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def count(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").split())


def list_sentences(text: str) -> Iterator[str]:
    """Return the sentences of a page without its blocks, tables and headings."""
    lines = BLOCK.sub("", text).splitlines()
    prose = "\n".join("" if line.lstrip().startswith(("|", "#")) else line for line in lines)
    for part in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", LINK.sub(r"\1", CODE.sub("X", prose))):
        yield from re.split(r"(?<=[.!?:;])\s+|\s·\s", " ".join(part.split()))


def test_the_documents_are_short() -> None:
    assert count(README) <= MOST_WORDS["README"]
    assert sum(map(count, PAGES)) - count(README) <= MOST_WORDS["docs"]


def test_the_documents_name_things_in_short_sentences() -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    clauses = {
        page.name: found
        for page, text in texts.items()
        if (found := len(re.findall(r"\bwhat\b", CODE.sub("", BLOCK.sub("", text)), re.I)))
    }
    words = sum(len(text.split()) for text in texts.values())
    assert sum(clauses.values()) * 10_000 <= MOST_CLAUSES * words, clauses
    assert [
        f"{page.name}: {sentence[:80]}"
        for page, text in texts.items()
        for sentence in list_sentences(text)
        if len(sentence.split()) > LONGEST_SENTENCE
    ] == []
