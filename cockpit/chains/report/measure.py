"""One measure of chains: a name, a number, an aim and the single values; and two of them compared.

The command line, the screen and JSON show this record. See ``docs/reference/measures.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct

from cockpit.core.text import pluralize

NOTHING = "–"
_Unit = Literal["share", "number", "mean", "money", "time"]


class Measure(Struct, frozen=True):
    """One measure."""

    name: str
    value: float | None
    """None where nothing was measured; a share is 0 to 1, time in seconds, money in US dollars."""
    unit: _Unit
    series: Sequence[float] = ()
    """The single values, oldest first."""
    each: str = "worker"
    """What one value of the series belongs to: a worker, a chain or a day."""
    detail: str = ""
    """What the number is made of."""
    aim: str = ""
    """The value to aim at, as text."""
    meets: Callable[[float], bool] | None = None
    """Whether a value meets the aim."""
    more_is_better: bool | None = None
    """None where neither direction is better."""

    @property
    def is_met(self) -> bool | None:
        """Whether the aim is met; None without an aim, or where nothing was measured."""
        return None if self.value is None or self.meets is None else self.meets(self.value)

    @property
    def shown(self) -> str:
        """The number as text: ``94%``, ``6.5``, ``3``."""
        return format_measure(self.value, self.unit)

    @property
    def span(self) -> str:
        """The range and length of the series as text; empty without one."""
        if not self.series:
            return ""
        unit: _Unit = "number" if self.unit == "mean" else self.unit
        low, high = format_measure(min(self.series), unit), format_measure(max(self.series), unit)
        between = low if low == high else f"{low} to {high}"
        return f"{between} · {pluralize(len(self.series), self.each)}"

    def body(self) -> dict[str, Any]:
        """Return the measure as JSON values."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "each": list(self.series),
            "detail": self.detail,
            "aim": self.aim,
            "met": self.is_met,
        }

    def change_since(self, before: Measure) -> tuple[str, bool | None]:
        """Return how the value changed, as text (shares by percentage points), and whether for the better."""
        if before.value is None or self.value is None:
            return NOTHING, None
        difference = self.value - before.value
        text = f"{100 * difference:+.0f} points" if self.unit == "share" else f"{difference:+.1f}"
        if self.unit == "number":
            text = f"{difference:+,.0f}"
        if self.unit in ("money", "time"):
            text = ("-" if difference < 0 else "+") + format_measure(abs(difference), self.unit)
        if self.more_is_better is None or not difference:
            return text, None
        return text, (difference > 0) == self.more_is_better


def format_measure(value: float | None, unit: _Unit) -> str:
    """Return the number with its unit; a dash for None."""
    if value is None:
        return NOTHING
    if unit == "share":
        return f"{100 * value:.0f}%"
    if unit == "money":
        return f"${value:,.2f}"
    if unit == "time":
        minutes, rest = divmod(round(value), 60)
        hours, minutes = divmod(minutes, 60)
        if hours:
            return f"{hours:,} h {minutes} min"
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{value:.1f}" if unit == "mean" else f"{value:,.0f}"
