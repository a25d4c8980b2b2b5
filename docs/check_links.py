"""Check every link of the project's Markdown files, and the sections that docstrings name: they must exist.

Run by ``make check``. Prints one line per broken link and exits with 1 if there is any. Links to the web are
only checked for their form, since a check must work without a network.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[1]
_PARSER = MarkdownIt("commonmark").enable("table")


def main() -> int:
    """Check all Markdown files that Git tracks or could track; return the exit code."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    pages = [ROOT / name for name in listing.stdout.splitlines()]
    problems = [
        f"{page.relative_to(ROOT)}: {problem}"
        for page in pages
        if page.exists() and "data" not in page.relative_to(ROOT).parts[:2]
        for problem in broken_links(page)
    ]
    problems += [
        f"{module.relative_to(ROOT)}: {problem}"
        for folder in ("cockpit", "widgets", "tests", "bench")
        for module in sorted((ROOT / folder).rglob("*.py"))
        for problem in stale_sections(module.read_text(encoding="utf-8"))
    ]
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


_SECTION = re.compile(r"``(docs/[a-z/-]+\.md)``, ([^.;:()`\"]{1,60})[.;:)\"]")
"""A page and a section of it, as docstrings name them."""


def stale_sections(text: str) -> Iterator[str]:
    """Yield one sentence for each section of a page that a module's ``text`` names in vain."""
    for name, section in _SECTION.findall(re.sub(r"\s+", " ", text)):
        page = ROOT / name
        known = anchors(page) if page.is_file() else frozenset()
        whole = _fragment(section)
        if whole not in known and not {_fragment(each) for each in section.split(" and ")} <= known:
            yield f"{name} has no section {section!r}"


def _fragment(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken_links(page: Path) -> Iterator[str]:
    """Yield one sentence for each link of ``page`` that leads nowhere."""
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            if parts.scheme not in {"https", "http", "mailto"} or not (parts.netloc or parts.path):
                yield f"{link} is not a web address"
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not target.exists():
            yield f"{link} does not exist"
        elif parts.fragment and target.suffix == ".md" and parts.fragment not in anchors(target):
            yield f"{link} has no such heading"


def links(page: Path) -> Iterator[str]:
    """Yield the targets of all links and images of ``page``."""
    for token in _tokens(page):
        for child in token.children or ():
            target = child.attrGet("href") if child.type == "link_open" else child.attrGet("src")
            if child.type in {"link_open", "image"} and target:
                yield str(target)
        if token.type == "html_block":
            yield from re.findall(r"(?:src|srcset|href)=\"([^\"]+)\"", token.content)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the fragment of every heading of ``page``, as GitHub writes it."""
    tokens = _tokens(page)
    headings = [
        tokens[number + 1].content
        for number, token in enumerate(tokens)
        if token.type == "heading_open"
    ]
    return frozenset(map(_fragment, headings))


@cache
def _tokens(page: Path) -> list[Token]:
    return _PARSER.parse(page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
