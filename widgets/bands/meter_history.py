"""Below the bands: what they and their marks mean, and the packets of the waves before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rich.cells import cell_len
from textual.content import Content

from widgets.text.clean import clean
from widgets.text.numerals import tokens
from widgets.text.style_names import DIM, STRONG, Part, band, line
from widgets.views import MeterView, WaveUseView

MEANINGS = {
    "identity": "the rules: AGENTS.md and yours",
    "objectives": "task, plan and your messages",
    "capabilities": "tools and skills",
    "situational": "files, diffs and results",
    "exploration": "neighbours, documents, notes",
    "reserve": "room for the answer",
}
"""What each band holds."""
MEANING_CELLS = max(map(len, MEANINGS.values()))

_MARKS: tuple[tuple[Part, ...], ...] = (
    (("█", STRONG), (" used", DIM)),
    (("┃", STRONG), (" floor", DIM)),
    (("╎", STRONG), (" target", DIM)),
    (("│", DIM), (" ceiling", DIM)),
    (("▲", "bold $tone-warn"), (" full", DIM)),
    (("−n", STRONG), (" facts left out", DIM)),
    (("≈$", STRONG), (" a band's share of the call, estimated", DIM)),
)
_CACHE: tuple[tuple[Part, ...], ...] = (
    (("cached", STRONG), (" the provider had it", DIM)),
    (("new", STRONG), (" sent for the first time", DIM)),
)
_GAP = "   "
_BAR_LEAST, _BAR_MOST = 10, 72


def legend_of_marks(width: int) -> list[Content]:
    """Explain the marks of the bars and the numbers, on as many lines as ``width`` needs."""
    return list(_flow(_MARKS, width))


def legend_of_cache(width: int) -> list[Content]:
    """Explain what the line of the cache says."""
    return list(_flow(_CACHE, width))


def meanings(width: int, names: Sequence[str]) -> list[Content]:
    """Say what each of these bands holds, a line each."""
    cells = max(map(len, names), default=0)
    return [
        line((name.ljust(cells), band(name)), "  ", (MEANINGS.get(name, ""), DIM)).truncate(
            width, ellipsis=True
        )
        for name in names
    ]


def history(view: MeterView, width: int, rows: int) -> list[Content]:
    """Draw the newest packets in at most ``rows`` lines, a heading among them; none in fewer than two.

    A line has the wave, a bar whose parts are the bands, the tokens, how much the provider had, and the cost.
    """
    if rows < 2 or not view.history or width < _BAR_LEAST:
        return []
    shown = view.history[1 - rows :]
    number = max(2, len(str(shown[-1].wave)))
    texts = [_numbers(use) for use in shown]
    cells = max(cell_len(text) for text in texts)
    room = width - number - 4 - cells
    bar = min(room, _BAR_MOST) if room >= _BAR_LEAST else 0
    scale = max(1, view.token_budget, *(sum(count for _, count in use.used) for use in shown))
    earlier = len(view.history) - len(shown)
    more = f"  {earlier:,} earlier" if earlier else ""
    scales = f"  each bar of {tokens(view.token_budget)}" if bar else ""
    heads = (more + scales + "   ↻ compiled afresh", more + scales, more, "")
    head = next(text for text in heads if len(text) + 5 <= width or not text)
    lines = [line(("Waves", STRONG), (head, DIM))]
    for use, text in zip(shown, texts, strict=True):
        parts = [line((f"{use.wave:>{number}}", DIM), ("↻ " if use.is_fresh else "  ", DIM))]
        if bar:
            parts += [_stack(use, scale, bar), Content("  ")]
        parts.append(line((text, "")))
        lines.append(Content("").join(parts).truncate(width))
    return lines


def _numbers(use: WaveUseView) -> str:
    used = sum(count for _, count in use.used)
    parts = [f"{tokens(used):>6}"]
    if use.prompt > 0:
        share = f"{min(100, 100 * use.cached // use.prompt)}%"
        parts.append(f"{share:>4} cached")
    if use.cost:
        parts.append(clean(use.cost, newlines=False))
    return "  ".join(parts)


def _stack(use: WaveUseView, scale: int, cells: int) -> Content:
    """Draw the bands one after the other; each begins with its first letter."""
    edges, total = [0], 0
    for _, count in use.used:
        total += max(count, 0)
        edges.append(min(cells, (2 * total * cells + scale) // (2 * scale)))
    parts: list[Part] = []
    for (name, _), (start, end) in zip(use.used, pairwise(edges), strict=True):
        if end > start:
            accent = band(name)
            style = f"$background on {accent}" if accent else "reverse"
            parts.append(((clean(name, newlines=False)[:1] or " ").ljust(end - start), style))
    parts.append(("·" * (cells - edges[-1]), "$rule"))
    return line(*parts)


def _flow(entries: Sequence[Sequence[Part]], width: int) -> Iterator[Content]:
    """Put entries on lines of ``width``, none of them broken."""
    shown: Content | None = None
    for entry in entries:
        content = line(*entry)
        longer = content if shown is None else Content.assemble(shown, _GAP, content)
        if shown is not None and longer.cell_length > width:
            yield shown
            longer = content
        shown = longer
    if shown is not None:
        yield shown.truncate(width, ellipsis=True)
