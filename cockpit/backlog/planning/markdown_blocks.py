"""A Markdown text as the blocks that a plan is made of: headings, items of lists, and words."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from markdown_it.token import Token

_BOX = re.compile(r"\[([ xX])\]\s+")


class Item(Struct, frozen=True):
    """One item of a list. ``box`` is ``" "`` or ``"x"`` for one with a box, else empty; ``detail`` are
    the lines below its first one, ``line`` is the number of that."""

    words: str
    box: str
    detail: tuple[str, ...]
    line: int


class Block(Struct, frozen=True):
    """One block of the outermost level. ``level`` is a heading's, 1 to 6; ``source`` the lines as they
    are written, of which ``line`` is the first."""

    kind: Literal["heading", "items", "words"]
    line: int
    source: tuple[str, ...]
    level: int = 0
    words: str = ""
    items: tuple[Item, ...] = ()


def parse_blocks(text: str) -> list[Block]:
    """The blocks of ``text`` in order. Comments and front matter are none."""
    from markdown_it import MarkdownIt

    lines, skipped = _without_front_matter(text)
    tokens = MarkdownIt("commonmark").parse("\n".join(lines))
    return [
        block
        for opened in _outermost(tokens)
        if (block := _block(opened, lines, skipped + 1)) is not None
    ]


def _without_front_matter(text: str) -> tuple[list[str], int]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines and lines[0].rstrip() == "---":
        for place, line in enumerate(lines[1:], start=1):
            if line.rstrip() in ("---", "..."):
                return lines[place + 1 :], place + 1
    return lines, 0


def _outermost(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The tokens of each outermost block."""
    start = 0
    for place, token in enumerate(tokens):
        if token.level == 0 and token.nesting == 1:
            start = place
        elif token.level == 0:
            yield tokens[start if token.nesting == -1 else place : place + 1]


def _block(tokens: Sequence[Token], lines: Sequence[str], first: int) -> Block | None:
    head = tokens[0]
    begin, end = head.map or (0, 0)
    source = tuple(lines[begin:end])
    if head.type == "heading_open":
        return Block("heading", first + begin, source, int(head.tag[1:]), tokens[1].content)
    if head.type in ("bullet_list_open", "ordered_list_open"):
        return Block("items", first + begin, source, items=tuple(_items(tokens, lines, first)))
    if head.type == "html_block" and head.content.lstrip().startswith("<!--"):
        return None
    return None if head.type == "hr" else Block("words", first + begin, source)


def _items(tokens: Sequence[Token], lines: Sequence[str], first: int) -> Iterator[Item]:
    for place, token in enumerate(tokens):
        if token.type != "list_item_open" or token.level != 1:
            continue
        begin, end = token.map or (0, 0)
        holds_words = place + 2 < len(tokens) and tokens[place + 1].type == "paragraph_open"
        words = tokens[place + 2].content.split("\n")[0] if holds_words else ""
        box = _BOX.match(words)
        below = textwrap.dedent("\n".join(lines[begin + 1 : end])).rstrip().split("\n")
        yield Item(
            words[box.end() :] if box else words,
            box[1].lower() if box else "",
            tuple(below) if below != [""] else (),
            first + begin,
        )
