"""The words of the code and the documents: names that say something, sources that a reader can open."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = sorted(
    path
    for package in ("cockpit", "widgets", "themes")
    for path in (ROOT / package).rglob("*.py")
    if "data" not in path.relative_to(ROOT).parts
)
VAGUE = {"found", "told", "one", "made", "asked", "known", "said"}
_ANY = rf"\b_*(?:{'|'.join(sorted(VAGUE))})_*\b"
MAY_BIND = re.compile(rf"{_ANY}(?: *(?:[:,)\]]|[-+*/@&^%<>|]*=)| in\b)|\b(?:def|class) +{_ANY}")
"""Such a word where a name may be bound: prose has most of them elsewhere."""
MOST_MODULES = 20

# Spelled so that this file does not contain what it looks for.
UNREACHABLE = re.compile(
    r"RFC-0\d|RFC0\d\b|\bADR-?10\b|\bseeds? 00\d|[Dd]esign of [A-Z][a-z]+\b"
    r"|design of the (?:screen|faces|loop|records)|records page of"
)


def vague_names(path: Path, root: Path = ROOT) -> Iterator[str]:
    """Yield where ``path`` below ``root`` binds a name that says nothing."""
    text = path.read_text(encoding="utf-8")
    if not MAY_BIND.search(text):
        return  # without looking at each of its nodes
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = [node.id]
        elif isinstance(node, ast.arg):
            names = [node.arg]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names = [node.attr]
        for name in names:
            if name.strip("_") in VAGUE:
                yield f"{path.relative_to(root)}:{node.lineno}: {name}"


@pytest.mark.parametrize("path", PRODUCT, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_name_says_what_it_holds(path: Path) -> None:
    assert list(vague_names(path)) == []


@pytest.mark.parametrize(
    "line",
    [
        "one = 1",
        "one: int",
        "a, one = b",
        "[*one] = b",
        "_found += 1",
        "a.told = b",
        "a.told: int = b",
        "(one := 2)",
        "for one in a: ...",
        "for a, one in b: ...",
        "with a as one: ...",
        "[one for one in a]",
        "def found(): ...",
        "class made: ...",
        "def f(one): ...",
        "def f(a, *one): ...",
        "def f(\n    one=1,\n): ...",
        "lambda one: 1",
    ],
)
def test_a_name_that_says_nothing_is_noticed(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(f"# one of them\n{line}\n", encoding="utf-8")
    assert len(list(vague_names(path, tmp_path))) == 1


def test_no_folder_holds_more_modules_than_a_reader_can_scan() -> None:
    folders: dict[Path, int] = {}
    for path in PRODUCT:
        if path.name != "__init__.py":
            folders[path.parent] = folders.get(path.parent, 0) + 1
    crowded = {str(folder.relative_to(ROOT)): count for folder, count in folders.items()}
    assert {name: count for name, count in crowded.items() if count > MOST_MODULES} == {}


def tracked(*patterns: str) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


def test_nothing_cites_a_source_that_a_reader_cannot_open() -> None:
    # Not the migrations: a shipped one is never changed, its digest is in every store.
    files = tracked("*.py", "*.md", "*.toml", "*.tcss", "Makefile")
    cited = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in files
        if path != Path(__file__) and "snapshots" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if UNREACHABLE.search(line)
    ]
    assert cited == []


def test_every_page_that_a_docstring_names_exists() -> None:
    named = {
        match
        for path in tracked("*.py")
        for match in re.findall(r"docs/[a-z-]+/[a-z-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert sorted(name for name in named if not (ROOT / name).is_file()) == []
