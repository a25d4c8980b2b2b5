"""The label that goes onto a parcel, as text of a fixed width."""

from __future__ import annotations

from typing import List

from parcel.address import Address
from parcel.weight import shown
from parcel.zones import needs_declaration

WIDTH = 36


def label(number: str, to: Address, weight: int) -> str:
    """A label of WIDTH columns; lines that are too long are cut with an ellipsis."""
    rows: List[str] = [f"No. {number}", ""]
    rows += [_fit(line) for line in to.lines()]
    rows += ["", shown(weight)]
    if needs_declaration(to.country):
        rows.append("CN 22 enclosed")
    edge = "+" + "-" * (WIDTH + 2) + "+"
    return "\n".join([edge, *(f"| {row:<{WIDTH}} |" for row in rows), edge])


def _fit(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"
