"""Turns drawn as lines: speakers, words, receipts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.content import Content

from widgets.text.clean import clean
from widgets.text.markdown import draw_markdown
from widgets.text.style_names import ACCENT, BAD, DIM, GOOD, RULE, WARN, line, tone
from widgets.views import LineView, TurnView

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
            rows += draw_markdown(turn.text, width)
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
