"""Draw chain trees: the chain, its workers and their tasks, one line each."""

from __future__ import annotations

from textual.content import Content

from widgets.text.style_names import DIM, GOOD, STRONG, WARN, Part, line, spread, tone
from widgets.work.chain_tree_views import ChainRowView, ChainSessionView, ChainTaskView, ChainView
from widgets.work.task_cards import line_columns, task_line

BAR_CELLS = 10
BAR_LEAST = 4
ABOUT_LEAST = 8
ABOUT_MOST = 44

_TASK_INDENT = 4
_SPEND_FROM = 56
_TOKENS_FROM = 90
_GAP = "  "

Columns = tuple[int, int, int]


def columns(rows: tuple[ChainRowView, ...]) -> Columns:
    """Return the widths of the columns that the tasks of all chains share."""
    return line_columns(tuple(each.line for each in rows if isinstance(each, ChainTaskView)))


def chain_row(row: ChainRowView, width: int, shared: Columns) -> Content:
    """Draw one row of a chain's tree in at most ``width`` cells."""
    if isinstance(row, ChainView):
        return _head(row, width)
    if isinstance(row, ChainSessionView):
        return _chain_session(row, width)
    return _task(row, width, shared)


def bar(done: int, total: int, cells: int) -> list[Part]:
    """Return a progress bar: full only when all is done, empty only when nothing is."""
    if total < 1 or cells < BAR_LEAST:
        return []
    full = cells * done // total
    full = max(1, full) if done > 0 else 0
    full = min(cells, full)
    return [("█" * full, GOOD), ("·" * (cells - full), DIM)]


def _head(view: ChainView, width: int) -> Content:
    """Draw a chain. Parts get room in this order: name, workers, counts, state, text, spend, scope, bar,
    title of the scope."""
    name = line((view.sign or "·", tone(view.tone)), " ", (view.name, STRONG))
    marks: list[Part] = [(f"✔{view.earlier} ", DIM)] if view.earlier else []
    for place, mark in enumerate(view.marks):
        marks += [
            " " if place else "",
            (mark.sign, tone(mark.tone)),
            " ",
            (mark.label, tone(mark.tone)),
        ]
    sessions = line(*marks)
    count = line((f"{view.done:,}/{view.total:,}", STRONG)) if view.total else Content("")
    fold = line((" ▸" if view.folded else "", DIM))
    room = width - name.cell_length - fold.cell_length
    room -= sum(len(_GAP) + each.cell_length for each in (sessions, count) if each)

    def fitting(part: Content, gap: int = len(_GAP)) -> Content:
        nonlocal room
        if not part or part.cell_length + gap > room:
            return Content("")
        room -= part.cell_length + gap
        return part

    state = fitting(line((view.state, tone(view.state_tone) or DIM)))
    text = fitting(line((view.text, DIM)))
    spend = fitting(_spend(view.tokens, view.cost, width))
    scope = fitting(line((view.scope, DIM)), 1)
    progress = fitting(line(*bar(view.done, view.total, min(BAR_CELLS, room - 1))), 1)
    about = line((view.about, DIM))
    if scope and about and room - 1 >= min(ABOUT_LEAST, about.cell_length):
        cells = min(about.cell_length, room - 1, ABOUT_MOST)
        scope = Content.assemble(scope, " ", about.truncate(cells, ellipsis=True))
    first = Content.assemble(name, " " if scope else "", scope, fold)
    counted = Content.assemble(count, " ", progress) if progress else count
    content = Content(_GAP).join(
        part for part in (first, sessions, counted, state, text) if part.cell_length
    )
    return spread(content, spend, width) if spend else content.truncate(width, ellipsis=True)


def _chain_session(view: ChainSessionView, width: int) -> Content:
    content = line(
        _GAP,
        (view.sign or "·", tone(view.tone)),
        " ",
        (view.name, STRONG),
        _GAP if view.state else "",
        (view.state, tone(view.tone) if view.tone in ("bad", "accent") else DIM),
    )
    pressure = line((view.pressure, WARN if view.full else DIM))
    if pressure and content.cell_length + pressure.cell_length + 2 <= width:
        content = Content.assemble(content, _GAP, pressure)
    return _ended(content, _spend(view.tokens, view.cost, width), width)


def _task(view: ChainTaskView, width: int, shared: Columns) -> Content:
    key, phase, count = shared
    spend = _spend(view.tokens, view.cost, width)
    room = width - _TASK_INDENT - (spend.cell_length + len(_GAP) if spend else 0)
    content = task_line(view.line, max(1, room), key=key, phase=phase, count=count)
    indent = line(" " * (_TASK_INDENT - 2), "▸ " if view.current else "  ")
    return _ended(Content.assemble(indent, content), spend, width)


def _spend(tokens: str, cost: str, width: int) -> Content:
    """Draw tokens and cost: both on a wide screen, the cost alone on a medium one, nothing on a narrow."""
    if width < _SPEND_FROM:
        return Content("")
    shown = [tokens, cost] if width >= _TOKENS_FROM or not cost else [cost]
    return line((" · ".join(each for each in shown if each), DIM))


def _ended(content: Content, spend: Content, width: int) -> Content:
    return spread(content, spend, width) if spend else content.truncate(width, ellipsis=True)
