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


Role = Literal["epic", "story", "group", "task", "prose", "title", ""]

_TASK = re.compile(r"Task\s+#?(\d+)\s*[:.–—-]\s*(?P<words>.+)", re.IGNORECASE)
_EPIC = re.compile(r"Epic(?:\s+#?\d+)?\s*[:–—-]\s*(?P<words>.+)", re.IGNORECASE)
_STORY = re.compile(r"(?:User\s+)?Story(?:\s+#?\d+)?\s*[:–—-]\s*(?P<words>.+)", re.IGNORECASE)
_NAMED = (_TASK, _EPIC, _STORY)
_PROSE = frozenset(
    {
        *("background", "goals", "non-goals", "goal", "context", "notes", "risks", "assumptions"),
        *("references", "overview", "summary", "motivation", "scope", "out of scope", "glossary"),
        *("open questions", "definition of done", "acceptance criteria", "see also", "appendix"),
    }
)
"""Sections whose lists are not tasks, unless their items have boxes."""


class Headings(Struct, frozen=True):
    """The blocks of a plan with what their headings mean. ``ends`` has for each heading the place where
    what stands under it ends; ``by`` says what tasks are written as."""

    blocks: Sequence[Block]
    roles: Sequence[Role]
    ends: Sequence[int]
    by: Literal["headings", "boxes", "items"]
    epic_level: int | None
    story_level: int | None

    def named(self, place: int) -> str:
        """The words of a heading, without ``Epic:``, ``Story:`` or ``Task 3:`` in front."""
        words = self.blocks[place].words
        for pattern in _NAMED:
            if (match := pattern.fullmatch(words)) is not None:
                return match["words"]
        return words

    def number(self, place: int) -> int:
        """The number of a heading that is a task."""
        match = _TASK.fullmatch(self.blocks[place].words)
        return int(match[1]) if match is not None else 0

    def is_task(self, item: Item) -> bool:
        """Whether an item of a list, outside prose, is a task."""
        return bool(item.box) if self.by == "boxes" else self.by == "items" and bool(item.words)


def classify_headings(blocks: Sequence[Block]) -> Headings:
    """Say of each heading what it is: by its words (``Epic: …``), else by its level among those under
    which tasks stand: of one level a single heading is an epic and several are stories; of more, the
    first are epics, the second stories, and deeper ones group the tasks of a story."""
    ends = _ends(blocks)
    by = _written_as(blocks)
    prose = [False] * len(blocks)
    if by == "items":
        for place, block in enumerate(blocks):
            named = block.kind == "heading" and block.words.strip(" :").casefold() in _PROSE
            if named and not prose[place]:
                prose[place : ends[place]] = [True] * (ends[place] - place)
    # How many blocks before each place hold a task: whether any lies between two is a subtraction.
    tasks = [0]
    for block, left_out in zip(blocks, prose, strict=True):
        tasks.append(tasks[-1] + (not left_out and _has_task(block, by)))
    holds = [
        block.kind == "heading"
        and not (by == "headings" and _TASK.fullmatch(block.words))
        and tasks[ends[place]] > tasks[place + 1]
        for place, block in enumerate(blocks)
    ]
    epic_level, story_level = _levels(
        [each for each, held in zip(blocks, holds, strict=True) if held]
    )
    roles = [
        _role(block, held, by, epic_level, story_level)
        for block, held in zip(blocks, holds, strict=True)
    ]
    return Headings(blocks, roles, ends, by, epic_level, story_level)


def _ends(blocks: Sequence[Block]) -> list[int]:
    """For each heading the place of the next one that is not below it."""
    ends, open_ones = [len(blocks)] * len(blocks), list[int]()
    for place, block in enumerate(blocks):
        if block.kind == "heading":
            while open_ones and blocks[open_ones[-1]].level >= block.level:
                ends[open_ones.pop()] = place
            open_ones.append(place)
    return ends


def _written_as(blocks: Sequence[Block]) -> Literal["headings", "boxes", "items"]:
    if any(block.kind == "heading" and _TASK.fullmatch(block.words) for block in blocks):
        return "headings"
    boxes = any(item.box for block in blocks for item in block.items)
    return "boxes" if boxes else "items"


def _has_task(block: Block, by: str) -> bool:
    if by == "headings":
        return block.kind == "heading" and _TASK.fullmatch(block.words) is not None
    return any(item.box or by == "items" for item in block.items)


def _levels(holding: Sequence[Block]) -> tuple[int | None, int | None]:
    """The level of headings that are epics, and of those that are stories."""
    levels = sorted({block.level for block in holding})
    epics = [block.level for block in holding if _EPIC.fullmatch(block.words)]
    stories = [block.level for block in holding if _STORY.fullmatch(block.words)]
    if epics or stories:
        epic = (
            min(epics)
            if epics
            else max((level for level in levels if level < min(stories)), default=None)
        )
        deeper = [level for level in levels if epic is None or level > epic]
        return epic, min(stories) if stories else min(deeper, default=None)
    if len(levels) == 1:
        return (levels[0], None) if len(holding) == 1 else (None, levels[0])
    return (levels[0], levels[1]) if levels else (None, None)


def _role(block: Block, held: bool, by: str, epic: int | None, story: int | None) -> Role:
    if block.kind != "heading":
        return ""
    if by == "headings" and _TASK.fullmatch(block.words):
        return "task"
    if not held:
        return "prose"
    if epic is not None and block.level == epic:
        return "epic"
    if story is not None and block.level == story:
        return "story"
    outermost = min(level for level in (epic, story) if level is not None)
    return "title" if block.level < outermost else "group"
