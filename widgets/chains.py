"""How chains are written: the head of a tree, its sessions, and their tasks, one line each."""

from __future__ import annotations

from textual.content import Content

from widgets.cards import line_columns, task_line
from widgets.chain_views import ChainRowView, ChainTaskView, ChainView, StretchView
from widgets.tone import DIM, GOOD, STRONG, WARN, Part, line, spread, tone

BAR_CELLS = 10
SCOPE_LEAST = 6
SCOPE_MOST = 40

_TASK_INDENT = 4
_SPEND_FROM = 56
_GAP = "  "

Columns = tuple[int, int, int]


def columns(rows: tuple[ChainRowView, ...]) -> Columns:
    """The widths of the columns that the tasks of all chains share."""
    return line_columns(tuple(each.line for each in rows if isinstance(each, ChainTaskView)))


def chain_row(row: ChainRowView, width: int, shared: Columns) -> Content:
    """One line of a chain's tree, at most ``width`` cells."""
    if isinstance(row, ChainView):
        return _head(row, width)
    if isinstance(row, StretchView):
        return _stretch(row, width)
    return _task(row, width, shared)


def bar(done: int, total: int, cells: int) -> list[Part]:
    """How much of a whole is done: full only when all of it is, empty only when nothing is."""
    if total < 1 or cells < 2:
        return []
    full = cells * done // total
    full = max(1, full) if done > 0 else 0
    full = min(cells, full)
    return [("█" * full, GOOD), ("·" * (cells - full), DIM)]


def _head(view: ChainView, width: int) -> Content:
    """What is told first has room first: name, sessions, tasks; then the words, what it cost, the
    bar, and the scope."""
    name = line((view.sign or "·", tone(view.tone)), " ", (view.name, STRONG))
    fold = line((" ▸" if view.folded else "", DIM))
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
    state = line((view.state, tone(view.state_tone) or DIM))
    words, spend = line((view.words, DIM)), line((view.spend, DIM))
    room = width - name.cell_length - fold.cell_length
    room -= sum(each.cell_length + len(_GAP) for each in (sessions, count) if each)

    def fits(part: Content) -> bool:
        nonlocal room
        there = bool(part) and part.cell_length + len(_GAP) <= room
        room -= part.cell_length + len(_GAP) if there else 0
        return there

    parts = {
        "state": state if fits(state) else None,
        "words": words if fits(words) else None,
        "spend": spend if fits(spend) else None,
    }
    drawn_bar = line(*bar(view.done, view.total, BAR_CELLS))
    with_bar = bool(drawn_bar) and drawn_bar.cell_length + 1 <= room
    room -= drawn_bar.cell_length + 1 if with_bar else 0
    scope = line((view.scope, DIM))
    cells = min(scope.cell_length, room - 1, SCOPE_MOST)
    whole = scope.cell_length <= cells
    left = [name]
    if scope and (whole or cells >= SCOPE_LEAST):
        left[0] = Content.assemble(name, " ", scope.truncate(cells, ellipsis=True))
    left[0] = Content.assemble(left[0], fold)
    if sessions:
        left.append(sessions)
    if count:
        left.append(Content.assemble(count, " ", drawn_bar) if with_bar else count)
    left += [part for part in (parts["state"], parts["words"]) if part is not None]
    drawn = Content(_GAP).join(left)
    if parts["spend"] is not None:
        return spread(drawn, spend, width)
    return drawn.truncate(width, ellipsis=True)


def _stretch(view: StretchView, width: int) -> Content:
    drawn = line(
        _GAP,
        (view.sign or "·", tone(view.tone)),
        " ",
        (view.name, STRONG),
        _GAP if view.state else "",
        (view.state, tone(view.tone) if view.tone in ("bad", "accent") else DIM),
    )
    pressure = line((view.pressure, WARN if view.full else DIM))
    if pressure and drawn.cell_length + pressure.cell_length + 2 <= width:
        drawn = Content.assemble(drawn, _GAP, pressure)
    return _with_spend(drawn, view.spend, width)


def _task(view: ChainTaskView, width: int, shared: Columns) -> Content:
    key, phase, count = shared
    spend = view.spend if width >= _SPEND_FROM else ""
    room = width - _TASK_INDENT - (len(spend) + 2 if spend else 0)
    told = task_line(view.line, max(1, room), key=key, phase=phase, count=count)
    indent = line(" " * (_TASK_INDENT - 2), "▸ " if view.current else "  ")
    drawn = Content.assemble(indent, told)
    return _with_spend(drawn, spend, width)


def _with_spend(drawn: Content, spend: str, width: int) -> Content:
    if not spend or width < _SPEND_FROM:
        return drawn.truncate(width, ellipsis=True)
    return spread(drawn, line((spend, DIM)), width)
