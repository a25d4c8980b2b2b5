"""Draw a task on one line or one card: sign, tests, phase and next step."""

from __future__ import annotations

from textual.content import Content

from widgets.text.style_names import BAD, DIM, GOOD, STRONG, Part, line, spread, tone
from widgets.work.task_card_views import CardView, ResultsView, TaskLineView

CARD_LINES = 4
"""Lines of a card with room: its id, its title, a note, and an empty one; one more lets titles wrap."""

_TITLE_LEAST = 24
_TITLE_MOST = 44
_WIDE = 100


def tests(view: ResultsView | None) -> list[Part]:
    """Return the parts of test counts, ``12✓ 1✗``; none without counts."""
    if view is None or not view.ran:
        return []
    if view.passed is None and view.failed is None:
        return []
    parts: list[Part] = []
    if view.passed is not None:
        parts.append((f"{view.passed:,}✓", GOOD))
    if view.failed:
        parts += [" ", (f"{view.failed:,}✗", BAD)] if parts else [(f"{view.failed:,}✗", BAD)]
    return parts


def draw_card(card: CardView, cells: int, *, tall: int) -> list[Content]:
    """Draw a card ``cells`` wide, on at most ``tall`` lines."""
    if card.heading:
        return _heading(card, tall)
    roomy = tall >= CARD_LINES
    counts = tests(card.tests)
    head: list[Part] = [(card.sign or "·", tone(card.tone)), " ", (card.key, STRONG)]
    if counts and not roomy:
        head += ["  ", *counts]
    mark = line((card.mark, DIM))
    first = spread(line(*head), mark, cells) if card.mark else line(*head)
    if not roomy:
        return [first, line("  ", card.title)]
    title = line(card.title)
    rows = title.wrap(max(1, cells - 2)) if tall > CARD_LINES else [title]
    if len(rows) > 2:
        rows = [rows[0], Content(" ").join(rows[1:])]
    lines = [first, *(Content.assemble("  ", row) for row in rows)]
    gap: list[Part] = ["  "] if counts and card.note else []
    note: Part = (card.note, tone(card.note_tone) or DIM)
    if counts or card.note:
        lines.append(line("  ", *counts, *gap, note))
    return lines


def _heading(card: CardView, tall: int) -> list[Content]:
    """Draw the name of a group right above its first card."""
    names = [line((card.heading, STRONG)), *([line((card.title, DIM))] if card.title else [])]
    return [Content("")] * (tall - len(names) - (tall > 2)) + names


def task_line(view: TaskLineView, width: int, *, key: int, phase: int, count: int) -> Content:
    """Draw one active task. ``key``, ``phase`` and ``count`` are the widths of columns shared by all lines.

    On a wide screen the title is between them and the text.
    """
    content = Content.assemble(
        line((view.key, STRONG)).truncate(key, ellipsis=True, pad=True),
        " ",
        line((view.sign or "·", tone(view.tone))),
        " ",
        line((view.phase, tone(view.tone) or DIM)).truncate(phase, ellipsis=True, pad=True),
    )
    if count:
        content = Content.assemble(
            content, "  ", line(*tests(view.tests)).truncate(count, pad=True)
        )
    if width >= _WIDE and view.title:
        room = max(_TITLE_LEAST, min(_TITLE_MOST, width // 3))
        title = line(view.title).truncate(room, ellipsis=True, pad=True)
        content = Content.assemble(content, "  ", title)
        return Content.assemble(content, "  ", line((view.text, DIM)))
    return Content.assemble(content, "  ", line((view.text or view.title, DIM)))


def line_columns(views: tuple[TaskLineView, ...]) -> tuple[int, int, int]:
    """Return the widths for :func:`task_line`: of ids, phases and test counts."""
    return (
        max((line(each.key).cell_length for each in views), default=0),
        min(14, max((line(each.phase).cell_length for each in views), default=0)),
        max((line(*tests(each.tests)).cell_length for each in views), default=0),
    )
