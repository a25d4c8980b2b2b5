"""Turns drawn as lines, without a widget of their own.

Old turns of a conversation are only read. Here their Markdown is drawn cheaply, line by line, with
the same look as the live widgets: no parser, no layout, one list of lines per turn and width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from textual.content import Content

from widgets.text.clean import clean
from widgets.text.style_names import ACCENT, BAD, CODE, DIM, GOOD, RULE, STRONG, WARN, line, tone
from widgets.views import LineView, TurnView

_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*)")
_ITEM = re.compile(r"(\s*)(?:([-*+])|(\d{1,9}[.)]))\s+(.*)")
_QUOTE = re.compile(r"\s{0,3}>\s?(.*)")
_INLINE = re.compile(r"\*\*(?P<strong>[^*\n]+)\*\*|`(?P<code>[^`\n]+)`")
_LEAST = 8
_GROUPED = ("tool", "thought")
"""Roles whose turns stand directly below one another: what an agent does between two messages."""


def stands_close(turn: TurnView, before: TurnView | None) -> bool:
    """Whether a turn stands directly below the one ``before`` it, without a blank line."""
    return before is None or (turn.role in _GROUPED and before.role in _GROUPED)


def label(turn: TurnView) -> Content | None:
    """Return the first line of a turn: its speaker. None for a turn without one."""
    if turn.role == "person":
        return line((turn.speaker or "you", ACCENT))
    if turn.role == "agent":
        state = "writing…" if turn.streaming else "interrupted" if turn.interrupted else ""
        parts = [
            ("agent", GOOD),
            *([("  " + state, DIM if turn.streaming else WARN)] * bool(state)),
        ]
        return line(*parts)
    if turn.role == "error":
        return line(("✗ error", BAD))
    if turn.role == "thought":
        return line((f"{'▸' if turn.folded else '▾'} {_describe_thought(turn.text)}", DIM))
    return None


def _describe_thought(text: str) -> str:
    """Say how much was thought, as far as it can be read."""
    words = len(text.split())
    return (
        f"thought: {words:,} {'word' if words == 1 else 'words'}" if words else "thought, encrypted"
    )


def rule(text: str, width: int) -> Content:
    """Return a rule across the pane with ``text`` as its label."""
    name = line(("─ ", RULE), (text, DIM), " ").truncate(width, ellipsis=True)
    return Content.assemble(name, line(("─" * (width - name.cell_length), RULE)))


def details(lines: Sequence[LineView], width: int) -> list[Content]:
    """Draw the indented lines of a turn: sign, text, and text at the right."""
    rows: list[Content] = []
    for view in lines:
        style = tone(view.tone)
        sign = line("  ", (view.sign or "·", style), " ")
        indent = sign.cell_length
        right = line((view.right, style))
        room = max(_LEAST, width - indent)
        body = line((view.text, DIM if view.tone == "dim" else ""))
        fits = body.cell_length + right.cell_length + 2 <= room
        for place, piece in enumerate(body.wrap(room) or [Content("")]):
            row = Content.assemble(sign if place == 0 else " " * indent, piece)
            if place == 0 and fits and right:
                row = row.pad_right(width - row.cell_length - right.cell_length)
                row = Content.assemble(row, right)
            rows.append(row)
        if right and not fits:
            rows += [Content.assemble(" " * indent, piece) for piece in right.wrap(room)]
    return rows


def draw(turn: TurnView, width: int, *, close: bool = False) -> list[Content]:
    """Draw a whole turn in ``width`` cells, after a blank line unless it stands ``close``."""
    width = max(_LEAST, width)
    if turn.role == "tool":
        rows = _tool(turn, width)
    elif turn.role == "wave":
        rows = [rule(turn.text, width)]
    else:
        speaker = label(turn)
        rows = [] if speaker is None else [speaker]
        if turn.text and turn.role == "agent":
            rows += markdown(turn.text, width)
        elif turn.text and turn.role == "thought":
            shown = [] if turn.folded else plain(turn.text, max(_LEAST, width - 2))
            rows += [Content.assemble("  ", piece).stylize(DIM) for piece in shown]
        elif turn.text and turn.role != "note":
            rows += plain(turn.text, width)
    if turn.lines and turn.role != "tool":
        if turn.role in ("person", "agent", "error") and turn.text:
            rows.append(Content(""))
        rows += details(turn.lines, width)
    if rows and not close:
        rows.insert(0, Content(""))
    return rows


def _tool(turn: TurnView, width: int) -> list[Content]:
    """Draw a tool call: its lines, and what it changed or said below them where that is unfolded."""
    rows = details(turn.lines, width)
    if not turn.text or not rows:
        return rows
    rows[0] = Content.assemble((f"{'▸' if turn.folded else '▾'} ", DIM), rows[0][2:])
    if turn.folded:
        return rows
    return [*rows, *_indent(clean(turn.text), width)]


def _indent(text: str, width: int) -> Iterator[Content]:
    """Yield output or a diff, wrapped; the lines of a diff have its colours."""
    is_diff = "\n@@ " in f"\n{text}"
    for row in text.split("\n"):
        style = DIM
        if is_diff and row[:1] in "+-" and row[:3] not in ("+++", "---"):
            style = {"+": GOOD, "-": BAD}.get(row[:1], DIM)
        for piece in Content(row).fold(max(_LEAST, width - 4)) or [Content("")]:
            yield Content.assemble("    ", piece.stylize(style))


def plain(text: str, width: int) -> list[Content]:
    """Draw text without Markdown, wrapped."""
    return [piece for row in clean(text).split("\n") for piece in Content(row).wrap(width)]


def markdown(text: str, width: int) -> list[Content]:
    """Draw Markdown for reading: headings, lists, quotes, code, bold. Nothing is left out."""
    rows: list[Content] = []
    for kind, row in _rows(clean(text)):
        if kind == "blank":
            if rows and rows[-1].plain:
                rows.append(Content(""))
        elif kind == "code":
            rows += [
                Content.assemble(
                    "  ", piece.pad_right(max(0, width - 2 - piece.cell_length))
                ).stylize(CODE)
                for piece in Content(row).fold(max(2, width - 2))
            ]
        elif kind == "heading":
            rows += Content.styled(row, STRONG).wrap(width)
        elif kind == "item":
            rows += _item(row, width)
        elif kind == "quote":
            rows += [
                Content.assemble(("▌ ", RULE), piece)
                for piece in _inline(row).wrap(max(_LEAST, width - 2))
            ]
        else:
            rows += _inline(row).wrap(width)
    while rows and not rows[-1].plain.strip():
        rows.pop()
    return rows


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """Split Markdown into rows by kind; the lines of one paragraph are joined."""
    paragraph: list[str] = []
    fence = ""
    for row in text.split("\n"):
        opened = _FENCE.match(row)
        kind = "text"
        if fence:
            if opened and row.strip() == fence:
                fence = ""
                continue
            yield "code", row
            continue
        if opened:
            fence, kind = opened[1], "fence"
        elif not row.strip():
            kind = "blank"
        elif heading := _HEADING.match(row):
            kind, row = "heading", heading[1]
        elif _ITEM.match(row):
            kind = "item"
        elif quote := _QUOTE.match(row):
            kind, row = "quote", quote[1]
        elif row.lstrip().startswith("|"):
            kind = "table"
        if kind == "text":
            paragraph.append(row.strip())
            continue
        if paragraph:
            yield "text", " ".join(paragraph)
            paragraph.clear()
        if kind == "fence":
            if (info := row.strip().lstrip("`~").strip()) and not info.isalnum():
                yield "code", info
        else:
            yield kind, row
    if paragraph:
        yield "text", " ".join(paragraph)


def _item(row: str, width: int) -> list[Content]:
    match = _ITEM.match(row)
    assert match is not None  # noqa: S101 -- the same pattern decided the kind
    indent, bullet, number, text = match.groups()
    mark = "• " if bullet else f"{number} "
    margin = min(len(indent), width // 3)
    room = max(_LEAST, width - margin - len(mark))
    return [
        Content.assemble(" " * margin, mark if place == 0 else " " * len(mark), piece)
        for place, piece in enumerate(_inline(text).wrap(room))
    ]


def _inline(row: str) -> Content:
    parts: list[str | tuple[str, str]] = []
    at = 0
    for match in _INLINE.finditer(row):
        parts.append(row[at : match.start()])
        strong = match["strong"]
        parts.append((strong, STRONG) if strong is not None else (match["code"], CODE))
        at = match.end()
    parts.append(row[at:])
    return line(*(part for part in parts if part))
