"""Wrapping of indented lines: the rest of a line begins below its text and not at the edge."""

from __future__ import annotations

from textual.content import Content

_LEAST = 8


def wrap_line(content: Content, width: int, hang: int | None = None) -> list[Content]:
    """Return the pieces of a line without line breaks, each at most ``width`` cells wide; at least one.

    Further pieces begin below the character number ``hang``; without it, below the first that is not a space.
    Where that leaves too little room they begin at the edge.
    """
    if content.cell_length <= width:
        return [content]
    plain = content.plain
    lead = len(plain) - len(plain.lstrip(" ")) if hang is None else hang
    first, rest = content[:lead], content[lead:]
    cells = first.cell_length
    if not lead or width - cells < _LEAST:
        return content.wrap(max(1, width)) or [Content("")]
    space = Content(" " * cells)
    return [
        Content.assemble(space if place else first, piece)
        for place, piece in enumerate(rest.wrap(width - cells) or [Content("")])
    ]
