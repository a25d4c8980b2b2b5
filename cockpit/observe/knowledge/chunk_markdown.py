"""Cut prose into chunks along its structure: headings, paragraphs, lists and code fences.

Markdown is read by a CommonMark parser; reStructuredText, AsciiDoc and plain text by their headings and
empty lines. A fence or a table is kept whole up to :data:`LONGEST`. See ``docs/reference/knowledge.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from cockpit.observe.knowledge.passage import Chunk

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

TARGET = 1_200
"""Characters of a chunk: about what the embedding model reads. A block that begins before it may pass it."""
LONGEST = 6_000
"""Characters of the longest chunk: a longer block is cut between lines, and a longer line between words."""
MOST_CHUNKS = 5_000
"""Chunks of one document; the rest of a longer one is left out."""
_TITLE = 160
_SEPARATOR = " › "
_ATX = re.compile(r"={1,6} (\S.*)")
_UNDERLINE = re.compile(r"([=\-~^\"'`*+#.])\1{2,}\s*")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_MOST = 8_000

Block = tuple[int, int]
"""The lines of a paragraph, list, fence or such: the first from 0, and the one after the last."""
Section = tuple[tuple[str, ...], list[Block]]
"""Headings, outermost first, and the blocks below them. The heading's own lines are its first block."""


def chunk_markdown(text: str, title: str = "") -> list[Chunk]:
    """Cut Markdown into chunks; ``title`` stands above its headings."""
    lines = text.split("\n")
    return _collect(lines, _markdown_sections(text, lines), title)


def chunk_plain(text: str, title: str = "") -> list[Chunk]:
    """Cut reStructuredText, AsciiDoc or plain text into chunks."""
    lines = text.split("\n")
    return _collect(lines, _plain_sections(lines), title)


def join_title(*parts: str) -> str:
    """Join headings, each on one line and cut to a bearable length."""
    clean = (" ".join(part.split())[:_TITLE] for part in parts)
    return _SEPARATOR.join(part for part in clean if part)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Only the blocks: what stands in a line is not looked at, which takes most of the time.
    parser = MarkdownIt("commonmark", {"maxNesting": 40}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _markdown_sections(text: str, lines: Sequence[str]) -> Iterator[Section]:
    front = _FRONT_MATTER.match(text, 0, _FRONT_MOST)
    skipped = text.count("\n", 0, front.end()) if front else 0
    if front:
        yield (), [(0, skipped)]
    body = "\n".join(lines[skipped:])
    tokens = _parser().parse(body)
    headings: dict[int, str] = {}
    blocks: list[Block] = []
    for at, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        first, last = token.map[0] + skipped, token.map[1] + skipped
        if token.type == "heading_open":
            if blocks:
                yield tuple(headings.values()), blocks
            depth = int(token.tag[1:])
            headings = {level: name for level, name in headings.items() if level < depth}
            headings[depth] = tokens[at + 1].content
            blocks = [(first, last)]
        else:
            blocks += _split_block(tokens, at, (first, last), lines, skipped)
    if blocks:
        yield tuple(headings.values()), blocks


def _split_block(
    tokens: Sequence[Token], at: int, block: Block, lines: Sequence[str], skipped: int
) -> list[Block]:
    """Return the block, or the items of a list or quote that is longer than a chunk."""
    token = tokens[at]
    if token.type in ("fence", "code_block", "table_open") or _size(lines, block) <= TARGET:
        return [block]
    starts = {block[0]}
    for inner in tokens[at + 1 :]:
        if inner.level == 0:
            break
        if inner.level == 1 and inner.nesting >= 0 and inner.map is not None:
            starts.add(inner.map[0] + skipped)
    return list(pairwise([*sorted(starts), block[1]]))


def _plain_sections(lines: Sequence[str]) -> Iterator[Section]:
    headings: list[tuple[str, str]] = []
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        heading = _plain_heading(lines, at)
        if heading is not None:
            kind, name, after = heading
            if blocks:
                yield tuple(text for _, text in headings), blocks
            kinds = [style for style, _ in headings]
            depth = kinds.index(kind) if kind in kinds else len(headings)
            headings = [*headings[:depth], (kind, name)]
            blocks = [(at, after)]
            at = after
            continue
        end = at + 1
        if lines[at].strip():
            while end < len(lines) and lines[end].strip() and not _plain_heading(lines, end):
                end += 1
            blocks.append((at, end))
        at = end
    if blocks:
        yield tuple(text for _, text in headings), blocks


def _plain_heading(lines: Sequence[str], at: int) -> tuple[str, str, int] | None:
    """Return a heading's style, its text and the line after it, if one begins in this line."""
    line = lines[at]
    if match := _ATX.fullmatch(line):
        return line[: line.index(" ")], match[1], at + 1
    following = lines[at + 1] if at + 1 < len(lines) else ""
    if _UNDERLINE.fullmatch(line):
        under = lines[at + 2] if at + 2 < len(lines) else ""
        if following.strip() and under.rstrip() == line.rstrip():
            return f"over{line[0]}", following.strip(), at + 3
        return None
    is_text = line.strip() and not line.startswith((" ", "\t"))
    if is_text and _UNDERLINE.fullmatch(following) and len(following.rstrip()) + 2 >= len(line):
        return following[0], line.strip(), at + 2
    return None


def _collect(lines: Sequence[str], sections: Iterator[Section], title: str) -> list[Chunk]:
    chunks: list[Chunk] = []
    for headings, blocks in sections:
        # A document's first heading often repeats its title.
        names = headings[1:] if headings and headings[0] == title else headings
        name = join_title(title, *names)
        chunks += _pack(lines, blocks, name, has_heading=bool(headings))
        if len(chunks) >= MOST_CHUNKS:
            return chunks[:MOST_CHUNKS]
    return chunks


def _pack(
    lines: Sequence[str], blocks: Sequence[Block], title: str, *, has_heading: bool
) -> Iterator[Chunk]:
    """Put blocks together up to the target; a heading alone makes no chunk."""
    if has_heading and len(blocks) == 1:
        return
    first, end = blocks[0][0], blocks[0][0]
    size = 0
    for block in (part for whole in blocks for part in _bounded(lines, whole)):
        length = _size(lines, block)
        if size and size + length > TARGET:
            yield from _chunk(lines, first, end, title)
            first, size = block[0], 0
        end = block[1]
        size += length
    yield from _chunk(lines, first, end, title)


def _bounded(lines: Sequence[str], block: Block) -> Iterator[Block]:
    """Cut a block that is too long between its lines."""
    if _size(lines, block) <= LONGEST:
        yield block
        return
    first, size = block[0], 0
    for at in range(*block):
        length = min(len(lines[at]) + 1, LONGEST)
        if size and size + length > TARGET:
            yield first, at
            first, size = at, 0
        size += length
    yield first, block[1]


def _chunk(lines: Sequence[str], first: int, end: int, title: str) -> Iterator[Chunk]:
    while end > first and not lines[end - 1].strip():
        end -= 1
    while first < end and not lines[first].strip():
        first += 1
    for text in _cut_line("\n".join(lines[first:end])):
        yield Chunk(first + 1, end, title, text)


def _cut_line(text: str) -> Iterator[str]:
    """Cut what one long line makes too long: all pieces have the number of that line."""
    while len(text) > LONGEST:
        end = text.rfind(" ", LONGEST // 2, LONGEST) + 1 or LONGEST
        if text[:end].strip():
            yield text[:end]
        text = text[end:]
    if text.strip():
        yield text


def _size(lines: Sequence[str], block: Block) -> int:
    return sum(len(lines[at]) + 1 for at in range(*block))
