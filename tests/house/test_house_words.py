"""The words of the code and the documents: names that say something, sources that a reader can open."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = sorted(
    path
    for package in ("cockpit", "widgets", "themes")
    for path in (ROOT / package).rglob("*.py")
    if "data" not in path.relative_to(ROOT).parts
)
MOST_LINES, MOST_MODULES = 600, 20
VAGUE = {"found", "told", "one", "made", "asked", "known", "said"}
MAY_BIND = re.compile(rf"\b_*(?:{'|'.join(VAGUE)})_*(?: *(?:[:,)\]]|[-+*/@&^%<>|]*=)| in\b)")
"""Such a word where a name may be bound: prose has most of them elsewhere."""

# Spelled so that this file does not contain what it looks for.
HINTS = ("RFC", "ADR", "seed", "esign of ", "records page of")
"""What each of them has a part of: a search for words takes a hundredth of the time."""
UNREACHABLE = re.compile(
    r"RFC-0\d|RFC0\d\b|\bADR-?10\b|\bseeds? 00\d|[Dd]esign of [A-Z][a-z]+\b"
    r"|design of the (?:screen|faces|loop|records)|records page of"
)


def bound_names(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def test_a_module_is_short_and_its_names_say_what_they_are() -> None:
    faults = []
    for path in PRODUCT:
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        if text.count("\n") > MOST_LINES:
            faults.append(f"{name} has more than {MOST_LINES} lines")
        for line, bound in bound_names(text) if MAY_BIND.search(text) else ():
            if bound.strip("_") in VAGUE:
                faults.append(f"{name}:{line}: {bound}")
    folders = Counter(path.parent for path in PRODUCT if path.name != "__init__.py")
    faults += [str(folder) for folder, count in folders.items() if count > MOST_MODULES]
    assert faults == []


def tracked(*patterns: str) -> list[Path]:
    words = ("git", "ls-files", "-co", "--exclude-standard", *patterns)
    names = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.splitlines() if (ROOT / name).is_file()]


def test_nothing_cites_a_source_that_a_reader_cannot_open() -> None:
    # Not the migrations: a shipped one is never changed, its digest is in every store.
    faults, pages = [], set()
    for path in tracked("*.py", "*.md", "*.toml", "*.tcss", "Makefile"):
        if path == Path(__file__) or "snapshots" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        if any(hint in text for hint in HINTS):
            faults += [f"{path}: {match[0]}" for match in UNREACHABLE.finditer(text)]
        if path.suffix == ".py":
            pages |= set(re.findall(r"docs/[a-z-]+/[a-z-]+\.md", text))
    assert faults == []
    assert [page for page in sorted(pages) if not (ROOT / page).is_file()] == []
