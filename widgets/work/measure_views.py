"""What the list of measures draws."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasureView:
    """One measure: its ``value`` as it is written, what to aim at, and words about it. ``series`` are
    the numbers that it is made of, oldest first, and ``span`` says what they are. ``change`` tells of
    an earlier time, in ``tone`` (``good``, ``bad`` or none)."""

    name: str
    value: str
    aim: str = ""
    told: str = ""
    series: tuple[float, ...] = ()
    span: str = ""
    change: str = ""
    tone: str = ""
