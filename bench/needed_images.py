"""The curves of the bench of needed lines, as pictures: what prompts kept, and what they cost, by budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

WIDTH, HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 190, 44, 44
_COLORS = ("#1f6feb", "#d1242f", "#bf8700", "#8250df")

Curves = Mapping[str, Sequence[float]]
"""By name: a value for each budget."""


def draw_curves(path: Path, title: str, budgets: Sequence[int], curves: Curves, top: float) -> None:
    """Write a picture of ``curves`` over ``budgets``; the scale goes from 0 to ``top``."""
    wide, high = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
    places = [_LEFT + wide * at / (len(budgets) - 1) for at in range(len(budgets))]

    def height(value: float) -> float:
        return _TOP + high * (1 - min(value, top) / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' font-family="sans-serif" font-size="12"><title>{title}</title>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="22" font-size="14" font-weight="bold" fill="#1f2328">{title}</text>',
    ]
    for step in range(5):
        value = top * step / 4
        parts.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + wide}" y1="{height(value):.1f}" y2="{height(value):.1f}"'
            f' stroke="#d0d7de"/><text x="{_LEFT - 8}" y="{height(value) + 4:.1f}" text-anchor="end"'
            f' fill="#59636e">{value:g}</text>'
        )
    for place, budget in zip(places, budgets, strict=True):
        parts.append(
            f'<text x="{place:.1f}" y="{HEIGHT - _BOTTOM + 20}" text-anchor="middle" fill="#59636e">'
            f"{budget // 1_000}k</text>"
        )
    for number, (name, values) in enumerate(curves.items()):
        color = _COLORS[number % len(_COLORS)]
        points = " ".join(
            f"{x:.1f},{height(value):.1f}" for x, value in zip(places, values, strict=True)
        )
        row = _TOP + 18 * number + 6
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2.5"/>'
            f'<rect x="{_LEFT + wide + 16}" y="{row - 9}" width="10" height="10" fill="{color}"/>'
            f'<text x="{_LEFT + wide + 32}" y="{row}" fill="#1f2328">{name}</text>'
        )
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")
